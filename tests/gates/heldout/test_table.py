"""What held-out checks may be, who must not reach them, and what a refusal says."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.heldout import HeldOutFolder, HeldOutTable, load_held_out
from tests.refusals import raises_code


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder beside a checkout, with a file in each."""
    monkeypatch.chdir(tmp_path)
    Path("checkout/src").mkdir(parents=True)
    Path("checkout/src/test_b.py").write_text("b")
    Path("secret").mkdir()
    Path("secret/test_a.py").write_text("a")
    return tmp_path / "secret"


def load(path: str | Path, recorded: str = "") -> HeldOutFolder | HeldOutTable:
    return load_held_out(Path(path), checkout=Path("checkout"), recorded=recorded)


def table_of(path: Path) -> HeldOutTable:
    table = load(path)
    assert isinstance(table, HeldOutTable)
    return table


def test_a_folder_is_read_with_its_modes_and_digest(secret: Path) -> None:
    for name in ("deep/test_b.py", "__pycache__/x.pyc"):
        (secret / name).parent.mkdir(exist_ok=True)
        (secret / name).write_text(name)
    for name, target in {"python": sys.executable, "broken": "nowhere", "circle": "circle"}.items():
        Path("checkout", name).symlink_to(target)
    first = load(secret)
    assert isinstance(first, HeldOutFolder)
    assert first.files == {"deep/test_b.py": (b"deep/test_b.py", False), "test_a.py": (b"a", False)}
    (secret / "test_a.py").chmod(0o755)
    assert load(secret, load(secret).digest) == load(secret)
    with raises_code(CollectorError, "HELD108"):
        load(secret, first.digest)


LINKS = {"src/to": "../../secret/test_a.py", "to": "..", ".git/to": "../../secret", "too": "../checkout/../secret"}


@pytest.mark.parametrize("link", LINKS)
def test_held_out_checks_in_or_around_the_checkout_or_behind_a_link_are_refused(link: str, secret: Path) -> None:
    Path("checkout", link).parent.mkdir(exist_ok=True)
    Path("checkout", link).symlink_to(LINKS[link])
    for path in (secret, "checkout/src", "checkout", "."):
        with raises_code(CollectorError, "HELD102"):
            load(path)


ODD_FILES: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda path, other: path.symlink_to(other),
    "a second link": lambda path, other: path.hardlink_to(other),
    "a pipe": lambda path, _: os.mkfifo(path),
    "no file": lambda path, _: path.with_name("test_a.py").unlink(),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_a_folder_of_anything_but_regular_files_is_refused(name: str, secret: Path) -> None:
    ODD_FILES[name](secret / "test_c.py", Path("checkout/src/test_b.py").resolve())
    with raises_code(CollectorError, "HELD101"):
        load(secret)


def test_cases_come_as_toml_or_json(secret: Path) -> None:
    (secret / "a.toml").write_text(
        'function = "src/it.py:it"\ntolerance = 0.05\n[[cases]]\nargs = [1]\nexpected = nan\n'
    )
    cases = [{"args": [1], "expected": None}, {"args": [2], "raises": "ValueError"}]
    (secret / "b.json").write_text(json.dumps({"function": "src/it.py:it", "cases": cases}))
    one, two = table_of(secret / "a.toml"), table_of(secret / "b.json")
    assert (one.function, one.language, one.timeout_seconds, one.tolerance) == ("src/it.py:it", "python", 20.0, 0.05)
    rows = [(case.args, case.expected, case.raises) for case in two.cases]
    assert rows == [([1], None, ""), ([2], None, "ValueError")]


MANY_LEVELS = json.loads("[" * 300 + "]" * 300)
NO_FUNCTIONS = "src/s3cret.rb:it ../s3cret.py:it src/../s3cret.py:it /s3cret.py:it s3cret.py"
MALFORMED: dict[str, tuple[dict[str, object], str]] = {
    "no cases": ({"cases": ()}, "`cases`."),
    "cases elsewhere": ({"cases": "s3cret.jsonl"}, "`cases`"),
    "an unknown key": ({"s3cret": 1}, ": an unknown key."),
    "endless time": ({"timeout_seconds": float("nan")}, "`timeout_seconds`"),
    "a case that is text": ({"cases": [{"args": [1], "expected": 1}, "s3cret"]}, "case 2."),
    "arguments that are no list": ({"cases": [{"args": "s3cret", "expected": 1}]}, "case 1, `args`."),
    "neither value nor error": ({"cases": [{"args": [1]}]}, "case 1."),
    "a value and an error": ({"cases": [{"args": [1], "expected": 1, "raises": "s3cret"}]}, "case 1."),
    "an error without a name": ({"cases": [{"args": [1], "raises": ""}]}, "case 1, `raises`."),
    "an unknown key of a case": ({"cases": [{"args": [1], "expected": 2, "s3cret": 1}]}, "case 1, an unknown key."),
    "a value of many levels": ({"cases": [{"args": [], "expected": MANY_LEVELS}]}, "case 1, `expected`."),
    **{f"{value}": ({"tolerance": value}, "`tolerance`.") for value in (-1, 0.1, float("nan"))},
    **{value: ({"function": value}, "`function`.") for value in NO_FUNCTIONS.split()},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_table_is_refused_with_number_and_key_alone(name: str, secret: Path) -> None:
    change, said = MALFORMED[name]
    good = {"function": "src/it.py:it", "cases": [{"args": [1], "expected": "s3cret"}]}
    (secret / "s3cret.json").write_text(json.dumps(good | change))
    with raises_code(CollectorError, "HELD104", said) as caught:
        table_of(secret / "s3cret.json")
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"


UNREADABLE: dict[str, tuple[str, dict[str, str]]] = {
    "deep": ("HELD104", {"s3cret.json": "[" * 100_000}),
    "no UTF-8": ("HELD104", {"s3cret.toml": "\xff"}),
    "a circle of links": ("HELD101", {}),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_table_is_refused_without_its_text(name: str, secret: Path) -> None:
    code, files = UNREADABLE[name]
    for path, text in files.items():
        (secret / path).write_text(text, encoding="latin-1")
    (secret / "circle").symlink_to("circle")
    with raises_code(CollectorError, code) as caught:
        table_of(secret / next(iter(files), "circle"))
    assert "s3cret" not in str(caught.value)
