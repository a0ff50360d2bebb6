"""The export: exactly the base, with only what the work may change laid over it."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest

from interlock.gates.sealed import export
from interlock.gates.sealed.base import FILE, PROGRAM, Base, keep_base
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.export import BASE_TIME_NS, Plan, forget, plan_of, touched, write_export
from interlock.gates.sealed.protect import kind_of, protection
from interlock.gates.tree import tree_files
from tests.gates.sealed.sealing import write as put
from tests.refusals import raises_code
from tests.table import each_row

BASE = {
    "src/calc.py": "wrong", "src/old.py": "old", "src/tests/test_calc.py": "base test", "src/tests/data.json": "base",
    "src/test_beside.py": "beside", "conftest.py": "base", "pyproject.toml": "base", "README": "base",
    "src/calc_test.go": "base", "src/odd_name.py": "collected",
}  # fmt: skip
SCOPE = ("src/**", "conftest.py", "pyproject.toml")


def base_of(root: Path) -> Base:
    """Lay out the base, and freeze it."""
    put(root, BASE)
    return keep_base(root, {name: (FILE, text.encode()) for name, text in BASE.items()})


def plan(
    root: Path, work: Mapping[str, str | None], *, may_change: tuple[str, ...] = (), protect: tuple[str, ...] = ()
) -> Plan:
    """Freeze the base, do some work in the tree, and return the plan."""
    base = base_of(root)
    put(root, work)
    return plan_of(base, tree_files(root, SCOPE), SCOPE, protection(protect, may_change, {"src/odd_name.py"}))


def listed(folder: Path) -> dict[str, str]:
    """Return every file and link of a folder, empty folders too."""
    found: dict[str, str] = {}
    for at, folders, files in os.walk(folder):
        for name in (*files, *(each for each in folders if (Path(at) / each).is_symlink())):
            path = Path(at) / name
            found[os.path.relpath(path, folder)] = f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        if not files and not folders:
            found[f"{os.path.relpath(at, folder)}/"] = ""
    return found


def test_only_the_scope_is_laid_over_and_protected_files_keep_the_base(tmp_path: Path) -> None:
    work = {
        "src/calc.py": "right", "src/new.py": "new", "src/old.py": None, "README": "changed outside",
        "sitecustomize.py": "planted outside", "src/tests/test_calc.py": "cheat", "src/tests/data.json": None,
        "src/test_beside.py": "cheat", "conftest.py": "cheat", "pyproject.toml": None, "src/calc_test.go": "cheat",
        "src/odd_name.py": "cheat",
    }  # fmt: skip
    made = plan(tmp_path / "p", work)
    folder = tmp_path / "export"
    write_export(made, folder)
    expected = BASE | {"src/calc.py": "right", "src/new.py": "new"}
    del expected["src/old.py"]
    assert listed(folder) == expected
    assert (made.removed, made.added) == (("src/old.py",), ("src/new.py",))
    assert made.laid_over == {"src/calc.py", "src/new.py"}
    assert set(made.held_back) == {
        "src/tests/test_calc.py", "src/tests/data.json", "src/test_beside.py", "conftest.py", "pyproject.toml",
        "src/calc_test.go", "src/odd_name.py",
    }  # fmt: skip


NEW_FILES = {
    "a new test": ("src/tests/test_more.py", True),
    "new data of a test": ("src/tests/more.json", True),
    "code": ("src/util.py", True),
    "a conftest": ("src/conftest.py", True),
    "settings of pytest": ("src/pytest.ini", False),
    "a site module": ("src/sitecustomize.py", False),
    "a path file": ("src/x.pth", False),
    "code in a folder of tests": ("src/tests/calc.py", True),
    "an installed package": ("src/node_modules/chk/index.js", False),
    "vendored packages of go": ("src/vendor/modules.txt", False),
    "settings of another runner": ("src/vitest.config.mjs", False),
    "a build file": ("src/Makefile", False),
}


@pytest.mark.parametrize("what", NEW_FILES)
def test_new_files_are_taken_unless_they_have_a_say_in_the_gate(tmp_path: Path, what: str) -> None:
    path, taken = NEW_FILES[what]
    made = plan(tmp_path, {path: "new"})
    assert (path in made.files, made.added, made.held_back) == (taken, (path,) * taken, (path,) * (not taken))


def test_new_files_beside_tests_can_be_left_out_of_a_plan(tmp_path: Path) -> None:
    names = ["src/a.py", "src/tests/helper", "src/test_b.py", "src/checks/data", "src/conftest.py",
             "src/tests/free"]  # fmt: skip
    work: dict[str, str | None] = dict.fromkeys(names, "new")
    made = plan(tmp_path, work)
    kept = protection((), ("src/tests/free",), (), ("src/checks",))
    beside = [path for path in made.added if kept.beside_tests(path)]
    assert set(beside) == {"src/tests/helper", "src/test_b.py", "src/checks/data", "src/conftest.py"}
    first = made.without(beside)
    assert (set(first.added), set(first.laid_over)) == ({"src/a.py", "src/tests/free"}, {"src/a.py", "src/tests/free"})
    assert made.files.keys() - first.files.keys() == set(beside)
    assert first.scope_digest != made.scope_digest


def test_may_change_frees_and_protect_holds(tmp_path: Path) -> None:
    work = {"src/tests/test_calc.py": "mine", "conftest.py": "mine", "src/calc.py": "mine", "src/test_beside.py": None}
    made = plan(tmp_path, work, may_change=("src/tests/**", "src/test_beside.py"), protect=("src/calc.py",))
    assert (made.held_back, made.laid_over) == (("conftest.py", "src/calc.py"), {"src/tests/test_calc.py"})
    assert made.removed == ("src/test_beside.py",)


def test_a_mode_is_work_and_a_link_is_laid_over_as_one(tmp_path: Path) -> None:
    root = tmp_path / "p"
    base = base_of(root)
    (root / "src/calc.py").chmod(0o755)
    (root / "src/old.py").unlink()
    (root / "src/old.py").symlink_to("/etc/passwd")
    made = plan_of(base, tree_files(root, SCOPE), SCOPE, protection((), ()))
    assert made.files["src/calc.py"].mode == PROGRAM
    folder = tmp_path / "export"
    write_export(made, folder)
    assert str((folder / "src/old.py").readlink()) == "/etc/passwd"
    assert stat.S_IMODE((folder / "src/calc.py").stat().st_mode) == 0o755


def test_the_digest_of_the_scope_is_of_what_was_laid_over(tmp_path: Path) -> None:
    rows: list[dict[str, str | None]] = [{}, {"src/calc.py": "right"}, {"src/old.py": None}, {"conftest.py": "cheat"}]
    digests = [plan(tmp_path / str(at), work).scope_digest for at, work in enumerate(rows)]
    assert (digests[0], len(set(digests))) == (digests[3], 3)


@pytest.mark.parametrize(
    ("gone", "planted"), [("src/tests", "src/tests"), ("src/odd_name.py", "src/odd_name.py/x.txt")]
)
def test_a_file_where_the_base_needs_a_folder_is_refused(tmp_path: Path, gone: str, planted: str) -> None:
    base = base_of(tmp_path)
    (tmp_path / gone).rename(tmp_path / "gone")
    put(tmp_path, {planted: "x"})
    with raises_code(SealError, "SEAL120"):
        plan_of(base, tree_files(tmp_path, SCOPE), SCOPE, protection((), (), {"src/odd_name.py"}))


def test_what_tested_code_left_behind_is_gone_from_the_next_export(tmp_path: Path) -> None:
    made, folder = plan(tmp_path / "p", {"src/calc.py": "right"}), tmp_path / "export"
    write_export(made, folder)
    before = listed(folder)
    (folder / "src/calc.py").write_text("other")
    readme = folder / "README"
    readme.write_text("eviL")
    os.utime(readme, ns=(BASE_TIME_NS, BASE_TIME_NS))
    (folder / "src/tests/test_calc.py").chmod(0o777)
    (folder / "src/old.py").unlink()
    os.link(folder / "src/test_beside.py", tmp_path / "second name")
    (folder / "conftest.py").unlink()
    (folder / "conftest.py").symlink_to(tmp_path / "p/conftest.py")
    put(folder, {"src/__pycache__/calc.pyc": "", "pytest.py": "", "pyproject.toml": None, "locked/in/x": ""})
    (folder / "pyproject.toml").mkdir()
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o750)
    (folder / "locked/in/out").symlink_to(kept)
    (folder / "locked/in").chmod(0)
    (folder / "locked").chmod(0)
    (folder / "src/tests/data.json").chmod(0)
    os.mkfifo(folder / "pipe")
    write_export(made, folder)
    assert listed(folder) == before
    assert (kept.stat().st_mode & 0o777, (folder / "src/test_beside.py").stat().st_nlink) == (0o750, 1)
    assert not (folder / "conftest.py").is_symlink()


@pytest.mark.parametrize("timed", [True, False])
def test_a_file_that_was_open_for_writing_is_read_again_where_most_writes_set_a_time(
    tmp_path: Path, timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, folder = plan(tmp_path / "p", {}), tmp_path / "export"
    write_export(made, folder)
    monkeypatch.setattr(export, "mmap_sets_ctime", Mock(return_value=timed))
    monkeypatch.setattr(export, "stamp_of", Mock(return_value=(1, 2, 3, 4)))  # no write has a time
    known = export._written[str(folder)]  # pyright: ignore[reportPrivateUsage]
    known |= {path: ((1, 2, 3, 4), entry) for path, (_, entry) in known.items()}
    (folder / "README").write_text("eviL")
    os.utime(folder / "README", ns=(BASE_TIME_NS, BASE_TIME_NS))
    assert touched(made, folder) == ()
    assert set(touched(made, folder, {"README", "conftest.py"})) == {"README", *(() if timed else ("conftest.py",))}
    forget(folder, {"README"})
    assert touched(made, folder) == ("README",)
    write_export(made, folder)
    assert listed(folder) == BASE


def test_an_export_in_the_place_of_a_link_never_writes_through_it(tmp_path: Path) -> None:
    made, target = plan(tmp_path / "p", {}), tmp_path / "target"
    put(target, {"precious": "x"})
    (tmp_path / "export").symlink_to(target)
    write_export(made, tmp_path / "export")
    assert listed(target) == {"precious": "x"}
    assert listed(tmp_path / "export") == BASE
    (tmp_path / "export/src/old.py").unlink()
    (tmp_path / "export/src/tests").rename(tmp_path / "moved")
    (tmp_path / "export/src/tests").symlink_to(target)
    write_export(made, tmp_path / "export")
    assert (listed(target), listed(tmp_path / "export")) == ({"precious": "x"}, BASE)


def test_files_of_the_base_have_one_time_and_laid_over_ones_another(tmp_path: Path) -> None:
    made, folder = plan(tmp_path / "p", {"src/calc.py": "right"}), tmp_path / "export"
    write_export(made, folder)
    times = {name: (folder / name).stat().st_mtime_ns == BASE_TIME_NS for name in made.files}
    assert times == {name: name != "src/calc.py" for name in BASE}


def test_work_that_changes_while_the_gate_runs_is_refused(tmp_path: Path) -> None:
    made = plan(tmp_path / "p", {"src/calc.py": "right"})
    (tmp_path / "p/src/calc.py").write_text("later")
    with raises_code(SealError, "SEAL121"):
        write_export(made, tmp_path / "export")


def test_an_export_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    made = plan(tmp_path / "p", {})
    (tmp_path / "file").write_text("")
    with raises_code(SealError, "SEAL122"):
        write_export(made, tmp_path / "file" / "export")


@each_row(
    ("path", "kind"),
    [
        ("src/app.py", ""), ("src/contest.py", ""), ("src/latest.py", ""), ("src/testing.py", ""),
        ("a/b/conftest.py", "decides"), (".github/workflows/x.txt", "decides"), ("sub/.cargo/config.toml", "decides"),
        ("requirements-dev.txt", "decides"), ("web/vitest.config.ts", "decides"), ("src/x.test.tsx", "test"),
        ("pkg/a_test.go", "test"), ("src/tests/__init__.py", "support"), ("x/__snapshots__/a.snap", "support"),
        ("testdata/a.golden", "support"), ("src/ruff.toml", "decides"), ("mypy.ini", "decides"), (".flake8", "decides"),
        ("web/eslint.config.mjs", "decides"), ("biome.json", "decides"), (".golangci.yml", "decides"),
        ("clippy.toml", "decides"), ("evil-1.0.dist-info/entry_points.txt", "decides"),
        ("src/x.egg-info/entry_points.txt", "decides"),
    ],
)  # fmt: skip
def test_a_name_says_what_a_file_is(path: str, kind: str) -> None:
    assert kind_of(path) == kind
