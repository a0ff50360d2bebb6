"""The base before anything is spent: what the seal breaks is its own fault, and said with the key that helps."""

import socket
from pathlib import Path

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.sealed import preflight
from interlock.gates.sealed.outcomes import TestCase, TestRun
from interlock.gates.sealed.preflight import (
    _faults,  # pyright: ignore[reportPrivateUsage]
    check_base,
)
from tests.gates.sealed.sealing import FILES, LEAN, RIGHT, Sealed, make, needs_namespaces, write
from tests.refusals import raises_code

pytestmark = pytest.mark.usefixtures("no_packages")


NEEDS = """
import os, pathlib, socket, sys
from src.calc import double

def test_needs_data():
    assert pathlib.Path("data.txt").read_text() == "x"

def test_needs_a_variable():
    assert os.environ["LC_CTYPE"] == "C.UTF-8"

def test_needs_a_module():
    sys.path.insert(0, "lib")
    import local_dependency

def test_needs_the_network():
    socket.create_connection(("127.0.0.1", PORT), 2).close()

def test_fails_everywhere():
    assert double(5) == 10

def test_works():
    assert double(2) == 4
"""


@pytest.mark.long
def test_what_fails_only_sealed_is_named_with_a_key_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_namespaces()
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        tests = NEEDS.replace("PORT", str(server.getsockname()[1]))
        broken = make(tmp_path / "p", {**FILES, ".gitignore": "data.txt\nlib/\n", "tests/test_calc.py": tests})
        write(broken.root, {"data.txt": "x", "lib/local_dependency.py": ""})
        check = check_base(broken.case, progress=said.append)
    keys = {fault.message.partition("::")[2].partition(" ")[0]: fault.field for fault in check.faults}
    assert keys == {
        "test_needs_data": "prepare", "test_needs_a_variable": "env", "test_needs_a_module": "keep",
        "test_needs_the_network": "network",
    }  # fmt: skip
    assert [line.rpartition(" ")[2] for line in said] == ["copy", "sealed"]
    assert "test_needs_data" in Path(check.log).read_text()
    assert check.tests.allow_line.startswith('allow_failing = ["tests/test_calc.py::')
    assert "test_fails_everywhere" in check.tests.allow_line
    assert not check_base(broken.case, bare=False).cached, "a sealing fault may be of the moment"


@pytest.mark.long
def test_the_base_is_known_afterwards_by_tree_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(tmp_path / "p")
    check = check_base(made.case)
    assert (check.cached, check.faults, check.note) == (False, (), "")
    assert check.tests.allow_line == (
        'allow_failing = ["tests/test_calc.py::test_double[5-10]", "tests/test_calc.py::test_double[-1--2]"]'
    )
    again = check_base(made.case)
    assert again.cached
    assert (again.tests, again.bare, again.log) == (check.tests, check.bare, check.log)

    def run(*_: object, **__: object) -> None:
        raise AssertionError("the base runs again")

    monkeypatch.setattr(preflight, "execute", run)
    assert check_base(made.case).cached
    other = Sealed(made.root, made.seal, (*made.command, "-v"))
    with pytest.raises(AssertionError, match="runs again"):
        check_base(other.case)
    write(made.root, {"src/calc.py": RIGHT})
    later = Sealed(made.root, made.seal, made.command)
    with pytest.raises(AssertionError, match="runs again"):
        check_base(later.case)


def test_what_is_kept_of_a_base_and_cannot_be_read_is_not_believed(tmp_path: Path) -> None:
    made = make(tmp_path / "p", {**FILES, "check.sh": "exit 0\n"}, command=("sh", "check.sh"))
    check = check_base(made.case)
    assert check.note.startswith("Tests not parsed")
    results = list((made.case.base.store.folder / "results").glob("*.json"))
    for path in results:
        path.write_text('{"tests": {}}')
    assert len(results) == 1
    assert not check_base(made.case).cached


@pytest.mark.parametrize(("status", "faults"), [(0, 1), (1, 0)])
def test_a_command_that_is_not_parsed_counts_by_its_status(tmp_path: Path, status: int, faults: int) -> None:
    script = f"test -e data.txt && exit {status}; echo no such data; exit 9\n"
    made = make(tmp_path / "p", {**FILES, "check.sh": script}, command=("sh", "check.sh"))
    write(made.root, {"data.txt": ""})
    check = check_base(made.case)
    assert [fault.field for fault in check.faults] == ["keep"] * faults
    assert not check.tests.allow_line


def test_a_step_that_prepares_may_take_a_fault_away(tmp_path: Path) -> None:
    files = {**FILES, "check.sh": "test -e data.txt\n"}
    made = make(tmp_path / "p", files, command=("sh", "check.sh"), prepare=(("touch", "data.txt"),))
    assert check_base(made.case).faults == ()
    bad = make(tmp_path / "q", files, command=("sh", "check.sh"), prepare=(("sh", "-c", "test -f .git/HEAD"),))
    write(bad.root, {"data.txt": ""})
    check = check_base(bad.case)
    assert len(check.faults) == 1
    assert "test -f .git/HEAD" in check.faults[0].message


@pytest.mark.long
def test_a_command_under_which_no_test_can_run_is_an_error_and_a_project_without_tests_is_not(tmp_path: Path) -> None:
    conftest = {**FILES, "tests/conftest.py": "import a_package_of_another_environment\n"}
    (found,) = check_base(make(tmp_path / "p", conftest).case).faults
    assert (found.code, found.field) == ("SEAL408", "command")
    assert "No module named 'a_package_of_another_environment'" in found.message
    assert check_base(make(tmp_path / "q", {**FILES, "tests/test_calc.py": ""}).case).faults == ()


def test_a_step_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    made = make(tmp_path / "p", prepare=(("sh", "-c", "echo no such target; exit 2"),))
    (found,) = check_base(made.case).faults
    assert (found.code, found.field) == ("SEAL410", "prepare")
    assert "no such target" in found.message


@pytest.mark.long
def test_checking_a_base_makes_nothing_in_the_checkout(tmp_path: Path) -> None:
    made = make(tmp_path / "p", prepare=(("touch", "src/made.py"),))
    assert check_base(made.case).faults == ()
    assert not (made.root / "src/made.py").exists()


@pytest.mark.long
def test_code_of_another_checkout_is_found_before_anything_is_spent_and_in_each_judgement(tmp_path: Path) -> None:
    files = {
        **FILES,
        "tests/test_calc.py": "from calc import double\n\ndef test_double():\n    assert double(5) == 10\n",
    }
    made = make(
        tmp_path / "p", {**files, ".venv/other/src/calc.py": RIGHT}, env={**LEAN, "PYTHONPATH": ".venv/other/src"}
    )
    needs_namespaces()
    (found,) = check_base(made.case).faults
    assert (found.code, found.field) == ("SEAL302", "command")
    assert ".venv/other/src/calc.py was loaded in place of src/calc.py" in found.message
    with raises_code(CollectorError, "SEAL302"):
        made.run()


def test_a_program_that_is_missing_is_no_fault_of_the_work(tmp_path: Path) -> None:
    made = make(tmp_path / "p", command=("no-such-program-here",))
    with raises_code(CollectorError, "COL202"):
        check_base(made.case)


def test_held_out_checks_that_cannot_be_used_are_found_before_anything_runs(tmp_path: Path) -> None:
    with raises_code(CollectorError, "HELD102"):
        make(tmp_path / "p", heldout="tests")


GOOD = TestRun("pytest", (TestCase("test_a.py::test_one", "passed"),), exit_status=0)
UNCOLLECTED = TestRun("pytest", broken=(("test_a.py", "No module named 'cart'"),), exit_status=2)


def test_a_project_whose_tests_cannot_be_collected_in_the_checkout_has_no_sealing_fault() -> None:
    assert _faults(UNCOLLECTED, UNCOLLECTED, "", "") == []


def test_tests_that_are_collected_in_the_checkout_alone_are_a_sealing_fault_with_the_key_that_helps() -> None:
    found = _faults(GOOD, UNCOLLECTED, "", '".venv", "build"')
    assert found
    assert "keep" in {row.field for row in found}
    assert any('keep = [".venv", "build"]' in row.fix for row in found)


def test_the_end_of_the_output_names_the_key_where_the_runner_came_to_no_test() -> None:
    bare, sealed = TestRun("go", GOOD.cases), TestRun("go", problem="go left no report", exit_status=1)
    (found,) = _faults(bare, sealed, "missing go.sum entry for module providing package x", '"vendor"')
    assert (found.field, 'keep = ["vendor"]' in found.fix) == ("keep", True)
