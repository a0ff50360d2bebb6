"""The whole sealed gate: honest work passes, and what is no fix does not."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.sealed import gate, sandbox
from interlock.gates.sealed.execution import Execution, Workspace, execute
from interlock.gates.sealed.gate import Work, judge, run_sealed_gate
from tests.gates.sealed.sealing import FILES, RIGHT, TESTS, WRONG, Sealed, kinds, no_namespaces, project, write
from tests.gates.support import BINDING
from tests.refusals import raises_code

CODE = "src/calc.py"
TEST = "tests/test_calc.py"

ROW = "from src.calc import double\n\n\ndef test_row(row):\n    assert double(row) == 14\n"
FIXTURE = """
import pathlib, pytest
@pytest.fixture
def row(): return int((pathlib.Path(__file__).parent / "row").read_text())
"""
HONEST: dict[str, tuple[Mapping[str, str | None], list[str], int]] = {
    # the work, what of it is product, the number of new tests
    "a fix": ({CODE: RIGHT}, [CODE], 0),
    "a new module with its tests": (
        {
            CODE: "from src.util import double\n\n\ndef half(x):\n    return x / 2\n",
            "src/util.py": "def double(x):\n    return x * 2\n",
            "tests/test_util.py": TESTS,
        },
        [CODE, "src/util.py"],
        4,
    ),
    "a test that was moved": ({CODE: RIGHT, TEST: None, "tests/deep/test_calc.py": TESTS}, [CODE], 4),
    "new tests with a conftest file and data of their own": (
        {CODE: RIGHT, "tests/new/conftest.py": FIXTURE, "tests/new/row": "7", "tests/new/test_row.py": ROW},
        [CODE],
        1,
    ),
    "new tests in the product": ({CODE: RIGHT, "src/test_more.py": TESTS}, [CODE], 4),
    "a test that is written on": (
        {CODE: RIGHT, TEST: TESTS + "\n\ndef test_more():\n    assert half(2) == 1\n"},
        [CODE],
        0,
    ),
}


@pytest.mark.sample("a new module with its tests")
@pytest.mark.parametrize("name", HONEST)
def test_honest_work_passes(calc: Sealed, name: str) -> None:
    work, product, new = HONEST[name]
    run = calc.judge(work)
    assert (kinds(run), [*run.choice.taken], len(run.comparison.new)) == ([], product, new)
    assert Counter(case.outcome for case in run.tests.cases) == {"passed": 4 + new}
    assert calc.case.store.differing(calc.frozen.base, run.tree).keys() == {*product}


PASS_ALL = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    made = yield
    made.get_result().outcome = "passed"
"""
EQUAL = """
class Any(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def double(x): return Any(0)
def half(x): return x / 2
"""
CHEATS: dict[str, tuple[Mapping[str, str | None], list[str]]] = {
    "nothing": ({}, ["still_failing"]),
    "weaker tests": ({TEST: "def test_double(): pass\ndef test_half(): pass\n"}, ["still_failing"]),
    "no tests": ({TEST: None}, ["still_failing"]),
    "a conftest file that passes all": ({"conftest.py": PASS_ALL}, ["still_failing"]),
    "a conftest file in the product": ({"src/conftest.py": PASS_ALL}, ["still_failing"]),
    "other settings": ({"pytest.ini": "[pytest]\naddopts = -k half\n", "tox.ini": "[pytest]\n"}, ["still_failing"]),
    "another pytest": ({"pytest.py": "print('4 passed')\n"}, ["still_failing"]),
    "a module that Python imports by itself": ({"sitecustomize.py": "import os; os._exit(0)\n"}, ["still_failing"]),
    "an exit at import": ({CODE: "import os; os._exit(0)\n"}, ["incomplete"]),
    "an exit in a test": ({CODE: "import os\n" + WRONG.replace("x + 2", "os._exit(0)")}, ["incomplete", "failed"]),
    "a skip at import": ({CODE: "import pytest; pytest.skip('x', allow_module_level=True)\n"}, ["missing"]),
    "a skip in a test": ({CODE: "import pytest\n" + WRONG.replace("x + 2", "pytest.skip('x')")}, ["skipped"]),
    "an expected failure": ({CODE: "import pytest\n" + WRONG.replace("x + 2", "pytest.xfail('x')")}, ["xfailed"]),
    "a result that equals everything": ({CODE: EQUAL}, ["equals"]),
    "a status of its own": ({CODE: "import atexit, os; atexit.register(os._exit, 3)\n" + RIGHT}, ["exit_status"]),
    "an error at import": ({CODE: "def double(x:\n"}, ["not_collected"]),
    "another test broken": ({CODE: RIGHT.replace("x / 2", "x")}, ["failed"]),
    "a module removed": ({CODE: None}, ["not_collected"]),
    "a new test that fails": ({CODE: RIGHT, "tests/test_new.py": "def test_new():\n    assert 0\n"}, ["failed"]),
    "a test that the product writes": ({CODE: "open('tests/test_calc.py', 'w')\n" + RIGHT}, ["not_collected"]),
    "a file of the base that the product writes": ({CODE: "open('.gitignore', 'w')\n" + RIGHT}, ["rewritten"]),
}


@pytest.mark.sample(
    "weaker tests",
    "a conftest file in the product",
    "an exit at import",
    "a skip in a test",
    "a new test that fails",
    "a file of the base that the product writes",
)
@pytest.mark.parametrize("name", CHEATS)
def test_what_is_no_fix_does_not_pass_and_says_why(calc: Sealed, name: str) -> None:
    work, expected = CHEATS[name]
    assert kinds(calc.judge(work)) == expected


def test_the_evidence_says_what_was_judged_and_what_was_not(calc: Sealed) -> None:
    work = Work(("src/**", "tests/**"), outside=("notes.md",))
    calc.put({CODE: RIGHT, "tests/test_new.py": TESTS, "conftest.py": PASS_ALL})
    made = run_sealed_gate(calc.case, work, calc.check, binding=BINDING)
    assert (made.ok, made.findings) == (True, ())
    log = (calc.root / made.files[0].path).read_bytes().partition(b"\n")
    sealed = json.loads(log[0])["sealed"]
    assert b"8 passed" in log[2]
    assert (sealed["level"], sealed["runner"], sealed["observed"]) == (sandbox.level(), "pytest", True)
    assert (sealed["base"], sealed["counts"], sealed["taken"]) == (calc.frozen.base, {"passed": 8}, [CODE])
    assert (len(sealed["new"]), sealed["held_back"]) == (4, [])
    results = json.loads((calc.root / made.files[1].path).read_bytes())
    assert [row["outcome"] for row in results["tests"]] == ["passed"] * 8
    write(calc.root, {CODE: WRONG, TEST: "def test_double(): pass\n"})
    made = run_sealed_gate(calc.case, work, calc.check, binding=BINDING)
    assert [finding.code for finding in made.findings] == ["EVD574", "EVD574", "EVD590", "EVD591"]


@pytest.mark.long
def test_tests_that_may_change_are_judged_as_they_are_now(calc: Sealed) -> None:
    fewer = {CODE: RIGHT, TEST: TESTS.replace("test_half", "test_other")}
    run = calc.judge(fewer, may_change=(TEST,))
    assert kinds(run) == []
    assert (run.comparison.gone, run.comparison.new) == ((f"{TEST}::test_half",), (f"{TEST}::test_other",))
    assert [*calc.judge(fewer).choice.held] == [TEST]
    wrong = {CODE: RIGHT, TEST: TESTS.replace("== expected", "== expected + 1")}
    assert kinds(calc.judge(wrong, may_change=(TEST,))) == ["failed", "still_failing"]


@pytest.mark.long
def test_a_file_that_cannot_be_collected_may_be_allowed_and_the_others_run(tmp_path: Path) -> None:
    files = {**FILES, "tests/test_other.py": "import missing_here\n"}
    made = project(tmp_path / "p", files, allow_failing=("tests/test_other.py",))
    assert [kinds(made.judge(work)) for work in ({CODE: RIGHT}, {})] == [[], ["still_failing"]]


@pytest.mark.long
def test_the_tests_run_again_as_often_as_the_gate_says(calc: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Execution] = []

    def fails_first(here: Workspace, **more: bool) -> Execution:
        done = execute(here, **more)
        runs.append(done)
        first, *others = done.tests.cases
        tests = replace(done.tests, cases=(replace(first, outcome="failed"), *others), exit_status=1)
        return replace(done, tests=tests) if len(runs) == 1 else done

    again = calc.with_seal(retries=1)
    assert again.check
    monkeypatch.setattr(gate, "execute", fails_first)
    run = again.judge({CODE: RIGHT})
    assert (kinds(run), run.tries, len(runs)) == ([], 2, 2)
    run = again.judge({})
    assert (kinds(run), run.tries, len(runs)) == (["still_failing"], 2, 4)


def test_commands_that_prepare_run_in_each_export_and_must_succeed(calc: Sealed) -> None:
    script = "open('src/made.py', 'w').write('def double(x): return x * 2')"
    work = {CODE: "from src.made import double\n\n\ndef half(x):\n    return x / 2\n"}
    made = calc.with_seal(prepare=((".venv/bin/python", "-c", script),))
    assert kinds(made.judge(work)) == []
    assert not (calc.root / "src/made.py").exists()
    run = calc.with_seal(prepare=(("sh", "-c", "echo no compiler; exit 2"),)).judge(work)
    assert (kinds(run), b"no compiler" in run.execution.output.finish()[0]) == (["prepare"], True)


def test_commands_see_a_small_environment_and_nothing_of_this_machine(
    calc: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_SOMEBODY", "secret")
    monkeypatch.setenv("PASSED", "on")
    (tmp_path / "secret").touch()
    look = f"import os, pathlib\nprint('ENV', dict(os.environ), pathlib.Path({str(tmp_path)!r}).exists())\n"
    made = calc.with_seal(env={"ADDED": "yes", "PYTEST_ADDOPTS": "-s"}, pass_env=("PASSED",))
    run = made.judge({CODE: look + RIGHT})
    shown = run.execution.output.finish()[0].decode().partition("ENV ")[2].splitlines()[0]
    words = ("'yes'", "'on'", "KEY_OF_SOMEBODY", "True", "INTERLOCK")
    of_machine = ["True"] if sandbox.level() == "none" else []
    assert (kinds(run), [word for word in words if word in shown]) == ([], ["'yes'", "'on'", *of_machine])
    monkeypatch.delenv("PASSED")
    with raises_code(CollectorError, "SEAL106"):
        made.judge({CODE: RIGHT})


def test_new_comments_that_silence_a_checker_are_named_and_may_be_forbidden(calc: Sealed) -> None:
    run = calc.with_seal(forbid_new=("suppressions",)).judge({CODE: RIGHT.replace("x * 2", "x * 2  # type: ignore")})
    assert (kinds(run), run.suppressions) == (["suppression"], (f"{CODE}:2 # type: ignore",))


VISIBLE = "def double(x):\n    return {2: 4, 5: 10, -1: -2}[x]\n\n\ndef half(x):\n    return x / 2\n"
HELD_TESTS = """
from src.calc import double
def test_a(): assert double(5) == 10
def test_zyx(): assert double(31337) == 62674
"""
HELD_TABLE = """
function = "src/calc.py:double"
cases = [{args = [5], expected = 10}, {args = [31337], expected = 62674}]
"""


@pytest.mark.sample("held.toml")
@pytest.mark.parametrize("place", ["held/checks/test_zyx.py", "held.toml"])
def test_of_held_out_checks_only_counts_come_out(calc: Sealed, tmp_path: Path, place: str) -> None:
    write(tmp_path, {place: HELD_TABLE if place.endswith("toml") else HELD_TESTS})
    made = calc.with_seal(heldout=str(tmp_path / place.partition("/")[0]))
    run = made.judge({CODE: VISIBLE})
    assert (kinds(run), run.heldout) == (["heldout"], {"total": 2, "passed": 1})
    said = repr((run.faults, run.execution.output.finish(), run.tests))
    assert [word for word in ("31337", "62674", "zyx") if word in said] == []
    run = made.judge({CODE: RIGHT})
    assert (kinds(run), run.heldout) == ([], {"total": 2, "passed": 2})


@pytest.mark.long
def test_without_namespaces_a_fix_passes_and_a_cheat_does_not(calc: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    no_namespaces(monkeypatch)
    made = calc.with_seal()
    del made.check
    run = made.judge({CODE: RIGHT})
    assert (kinds(run), run.execution.level) == ([], "none")
    assert kinds(made.judge({TEST: "def test_double(): pass\n", "conftest.py": PASS_ALL})) == ["still_failing"]


@pytest.mark.long
def test_a_generated_file_beside_modules_is_seen_as_it_was_and_a_new_one_is_not(tmp_path: Path) -> None:
    code = "from src._made import factor\n" + RIGHT.replace("x * 2", "x * factor")
    write(tmp_path / "p", {"src/_made.py": "factor = 2\n"})
    files = {**FILES, ".gitignore": ".venv\nsrc/_[mn]*.py\n", "src/__init__.py": "", CODE: code}
    made = project(tmp_path / "p", files)
    assert (made.check.faults, made.check.tests.failing()) == ((), ())
    write(made.root, {CODE: code.replace("_made", "_new"), "src/_new.py": "factor = 2\n"})
    assert kinds(judge(made.case, Work(("**",)), made.check)) == ["not_collected"]
    write(made.root, {CODE: code, "src/_made.py": "factor = 3\n"})
    with raises_code(CollectorError, "SEAL201", "src/_made.py"):
        judge(made.case, Work(("**",)), made.check)
