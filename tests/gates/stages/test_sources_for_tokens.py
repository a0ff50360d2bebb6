"""No line of a file comes back to somebody who may not read it, and nothing is said of files that are not shared."""

from pathlib import Path
from typing import Any

import pytest

from interlock.core.finding import Finding
from interlock.gates.shared import is_shared, reaches_more
from interlock.gates.stages import Observed, Surroundings, artifact_records
from interlock.reservations import Authors
from tests.child import git
from tests.gates.stages.support import GOOD, codes, gathered, item, judged, put

SECRET = "STRIPE_SECRET=sk_live_abcdefgh"
CODE = "def charge(card, amount):\n    return stripe.charge(card, amount, key=SECRET_FROM_VAULT)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    put(root, "src/pay.py", CODE)
    put(root, "docs/notes.md", "The quarter went badly, say nothing.\n")
    put(root, ".gitignore", ".env\nbuild/\n*.pem\n")
    put(root, ".github/ci.yml", "on: push\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    for path in (".env", "src/.env", "build/keys.txt", "src/server.pem", "src/info-excluded.txt", ".netrc"):
        put(root, path, f"A=1\n{SECRET}\n")
    put(root, ".git/info/exclude", "src/info-excluded.txt\n")
    put(tmp_path, "outside.txt", f"{SECRET}\n")
    (root / "src/link.txt").symlink_to("../.env")
    (root / "linked").symlink_to("build")
    (root / "deep").symlink_to("build/deep")
    (root / "build/deep").mkdir()
    return root


TARGETS = {"retrieval_targets": ["repo:src/**"]}
EVERYTHING = {"retrieval_targets": ["repo:**", "repo:.env"]}
HIDDEN = (
    ".env:2",
    "src/server.pem:2",
    "src/info-excluded.txt:2",
    ".netrc:2",
    "src/link.txt:2",
    "src/none.pem:1",
)


def of(root: Path, locator: str, snippet: str, *, remote: bool, known: dict[str, Any]) -> tuple[Finding, ...]:
    return gathered(Surroundings(root, remote=remote), item("e", locator, snippet), known=known)


@pytest.mark.parametrize("locator", HIDDEN)
@pytest.mark.parametrize("guess", ["STRIPE_SECRET=sk_live_guess", SECRET])
def test_a_caller_with_a_token_learns_nothing_of_a_hidden_file(root: Path, locator: str, guess: str) -> None:
    (found,) = of(root, locator, guess, remote=True, known=EVERYTHING)
    (absent,) = of(root, "src/no-such.pem:1", guess, remote=True, known=EVERYTHING)
    path, missing = locator.partition(":")[0], "src/no-such.pem"
    assert (found.code, found.fix) == ("STG304", absent.fix)
    assert found.message.replace(path, "") == absent.message.replace(missing, "")


def test_a_caller_with_a_token_cites_whole_lines_of_what_its_targets_cover(root: Path) -> None:
    line = CODE.splitlines()[1]
    assert not of(root, "src/pay.py:2", line.strip(), remote=True, known=TARGETS)
    assert codes(of(root, "docs/notes.md:1", "The quarter", remote=True, known=TARGETS)) == ["STG304"]
    assert not of(root, ".github/ci.yml:1", "on: push", remote=True, known=EVERYTHING)


@pytest.mark.parametrize(
    "guess",
    [
        "return stripe.charge(card",
        "def charge(card, amount):\n    return stripe",
        "def charge(card, amount):\nwrong",
    ],
)
def test_a_line_cannot_be_found_out_piece_by_piece(root: Path, guess: str) -> None:
    (found,) = of(root, "src/pay.py:1-2", guess, remote=True, known=TARGETS)
    (wrong,) = of(root, "src/pay.py:1-2", "nothing of it at all", remote=True, known=TARGETS)
    assert (found.code, found.fix, found.message) == (wrong.code, wrong.fix, wrong.message)
    assert "VAULT" not in f"{found.message} {found.expected} {found.fix}"


@pytest.mark.parametrize("locator", [".env:2", "src/.env:2", "build/keys.txt:2", "src/info-excluded.txt:2"])
def test_an_ignored_file_is_no_source_for_anybody(root: Path, locator: str) -> None:
    (found,) = of(root, locator, "STRIPE_SECRET=sk_live_guess", remote=False, known=EVERYTHING)
    assert (found.code, "sk_live_abc" in str(found)) == ("STG304", False)


@pytest.mark.parametrize(
    ("path", "is_known"),
    [
        ("src/pay.py", True),
        (".github/ci.yml", True),
        ("artifacts/a11y/T-1/1/x.json", True),
        (".env", False),
        ("../outside.txt", False),
        ("src/link.txt", False),
        (".git/config", False),
        (".interlock/tokens.json", False),
        ("artifacts/interlock/events.jsonl", False),
    ],
)
def test_whether_a_file_is_shared_depends_on_its_name(root: Path, path: str, is_known: bool) -> None:
    assert is_shared(root, path) is is_known


def test_a_repository_inside_has_rules_of_its_own(root: Path) -> None:
    put(root, "lib/.gitignore", "*.key\n")
    put(root, "lib/a.key", "x")
    git(root / "lib", "init", "--quiet")
    assert not is_shared(root, "lib/a.key")
    assert is_shared(root, "lib/a.py")


def test_without_git_names_with_a_dot_are_not_shared(tmp_path: Path) -> None:
    assert is_shared(tmp_path, "app.py")
    assert not is_shared(tmp_path, ".env")


@pytest.mark.parametrize(
    ("scope", "more"),
    [
        (["src/*.py"], False),
        (["docs/**"], False),
        (["src/**"], True),
        (["src/**", "!src/.env", "!src/*.pem", "!src/info-excluded.txt", "!src/link.txt"], False),
        ([".env"], True),
        ([".en?"], True),
    ],
)
def test_a_scope_reaches_more_when_it_holds_what_is_not_shared(root: Path, scope: list[str], more: bool) -> None:
    assert reaches_more(root, scope) is more


@pytest.mark.parametrize(
    "text",
    [
        "src/server.pem",
        "build/keys.txt",
        "src/link.txt",
        "src/../build/keys.txt",
        "See src/server.pem",
        "build/",
        ".netrc",
        "deep/../keys.txt",
    ],
)
def test_a_hidden_file_is_no_artifact_of_a_caller_with_a_token(root: Path, text: str) -> None:
    def said(text: str, *, remote: bool = True) -> list[tuple[str, str]]:
        payload = {"artifacts": ["src/pay.py", text], "final_summary": "Done.", "outcome": "success"}
        around = Surroundings(root, remote=remote)
        assert not remote or [row["path"] for row in artifact_records(around, payload)] == ["src/pay.py"]
        return [(row.code, row.message) for row in judged("record_and_finalize", payload, around)]

    text = text.format(root=root)
    found = said(text)
    for path in (root / "build/keys.txt", root / "src/server.pem", root / ".netrc", root / "src/.env"):
        path.unlink()
    (root / "build/deep").rmdir()
    (root / "build").rmdir()
    (root / "linked").unlink()
    (root / "src/link.txt").unlink()
    assert said(text) == found
    assert all(row == ("STG702", row[1]) and row[1].endswith("is no file or folder of the project.") for row in found)
    assert not said("src/pay.py", remote=False)


def test_changes_of_hidden_files_are_counted_for_a_caller_with_a_token(root: Path) -> None:
    before, now = {"src/pay.py": "1", ".netrc": "1"}, {"src/pay.py": "2", ".netrc": "2", "src/info-excluded.txt": "1"}
    whose = Authors(own=frozenset({"src/pay.py"}), others={".netrc": "held by ann"})
    hidden = ("netrc", "info-excluded")

    def said(remote: bool, allowed: str) -> list[tuple[str, bool]]:
        seen = Observed(before, now, (allowed,), unattributed="warn", authors=lambda _paths: whose)
        found = judged("act_via_tools", GOOD["act_via_tools"], Surroundings(root, seen, remote=remote))
        texts = [f"{row.message} {row.found} {row.fix}" for row in found]
        return [(row.code, any(name in text for name in hidden)) for row, text in zip(found, texts, strict=True)]

    assert said(True, "src/pay.py") == [("STG605", False)]
    assert said(True, "docs/**") == [("STG601", False), ("STG605", False)]
    assert said(False, "src/pay.py") == [("STG605", True)]
