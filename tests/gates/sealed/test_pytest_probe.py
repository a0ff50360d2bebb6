"""pytest with the probe in it: outcomes, canaries that nobody sees, and code under test that attacks its runner."""

import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from interlock.gates.sealed.outcomes import run_from_json
from interlock.gates.sealed.runners.python import PYTEST_CANARIES, PythonRunner
from tests.gates.sealed.launching import PYTEST, Ran, judged, start
from tests.gates.sealed.sealing import write
from tests.gates.sealed.tricks import MORE_TRICKS, RIGHT, TESTS, TRICKS, WRONG

ALL_OUTCOMES = """
import unittest
import pytest

@pytest.mark.parametrize("x", [1, 2])
def test_param(x):
    assert x == 1

@pytest.mark.skip(reason="later")
def test_skip(): ...

@pytest.mark.xfail
def test_expected(): assert 0

@pytest.mark.xfail
def test_unexpected(): assert 1

@pytest.fixture
def bad(): raise ValueError("no database")

def test_setup(bad): ...

class TestClass:
    def test_method(self):
        with pytest.raises(KeyError):
            {}[1]

class TestUnit(unittest.TestCase):
    def test_fails(self): self.assertEqual(1, 2)
    def test_sub(self):
        for i in range(2):
            with self.subTest(i=i): self.assertEqual(i, i)
"""
EXPECTED = {
    "test_all.py::test_param[1]": "passed",
    "test_all.py::test_param[2]": "failed",
    "test_all.py::test_skip": "skipped",
    "test_all.py::test_expected": "xfailed",
    "test_all.py::test_unexpected": "xpassed",
    "test_all.py::test_setup": "error",
    "test_all.py::TestClass::test_method": "passed",
    "test_all.py::TestUnit::test_fails": "failed",
    "test_all.py::TestUnit::test_sub": "passed",
}


def runner(*options: str) -> PythonRunner:
    return PythonRunner("pytest", (sys.executable,), ("-p", "no:cacheprovider", *options), True, {})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return start(PYTEST, write(tmp_path_factory.mktemp("base") / "p", {"calc.py": WRONG, "test_calc.py": TESTS}))


@pytest.mark.sample("alone")
@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_each_outcome_is_seen_and_canaries_appear_in_no_report(tmp_path: Path, options: tuple[str, ...]) -> None:
    root = write(tmp_path / "p", {"test_all.py": ALL_OUTCOMES, "test_broken.py": "import nothing_of_this_name\n"})
    junit = tmp_path / "junit.xml"
    ran = start(runner("--continue-on-collection-errors", f"--junitxml={junit}", *options), root)
    assert (ran.outcomes, set(ran.run.collected)) == (EXPECTED, set(EXPECTED))
    assert [path for path, _ in ran.run.broken] == ["test_broken.py"]
    assert (ran.run.complete, ran.run.exit_status, ran.run.judge) == (True, 1, "")
    assert ran.run.canaries == len(PYTEST_CANARIES)
    assert "2 failed, 3 passed, 1 skipped, 1 xfailed, 1 xpassed, 2 errors" in ran.output
    assert junit.read_text().count("<testcase") == len(EXPECTED) + 1
    assert str(root / "test_all.py") in ran.run.loaded
    assert run_from_json(asdict(ran.run)) == ran.run


COUNTS = """
import pytest

begun = []

def pytest_runtest_setup(item):
    begun.append(item.nodeid)

def pytest_sessionfinish(session):
    assert len(begun) == session.testscollected, begun

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    assert item in item.session.items
    yield
"""
NEAR = """
def pytest_runtest_setup(item):
    assert item.name == "test_near"
"""
NEAR_TESTS = "def test_near(): ...\n"


@pytest.mark.sample("alone")
@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_hooks_that_count_do_not_see_canaries(tmp_path: Path, options: tuple[str, ...]) -> None:
    files = {"sub/test_near.py": NEAR_TESTS, "sub/conftest.py": NEAR, "conftest.py": "" if options else COUNTS}
    root = write(tmp_path / "p", {"calc.py": RIGHT, "test_calc.py": TESTS, **files})
    ran = start(runner("-p", "syrupy", "-W", "error", *options), root)
    assert (ran.run.judge, ran.run.canaries, ran.run.exit_status) == ("", len(PYTEST_CANARIES), 0), ran.output


def test_a_module_whose_tests_are_all_skipped_is_watched_like_another(tmp_path: Path) -> None:
    text = "import pytest\npytestmark = pytest.mark.skip\ndef test_a(): ...\n"
    ran = start(PYTEST, write(tmp_path / "p", {"test_a.py": text}))
    assert (ran.run.judge, ran.run.canaries) == ("", len(PYTEST_CANARIES))


def test_canaries_count_neither_for_maxfail_nor_for_the_exit_status(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"calc.py": RIGHT, "test_calc.py": TESTS})
    ran = start(runner("-x", "--maxfail=1"), root)
    assert (ran.run.exit_status, ran.run.count("passed"), ran.run.canaries) == (0, 6, len(PYTEST_CANARIES))
    assert {case.proof for case in ran.run.cases} == {"ended"}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("options", [("-k", "zero"), ("--assert=plain",), ("-p", "no:terminal"), ("--tb=no", "-v")])
def test_options_of_the_user_keep_their_meaning(tmp_path: Path, options: tuple[str, ...]) -> None:
    root = write(tmp_path / "p", {"calc.py": RIGHT, "test_calc.py": TESTS})
    ran = start(runner(*options), root)
    assert (ran.run.complete, ran.run.exit_status, ran.run.judge) == (True, 0, "")
    assert len(ran.run.cases) + len(ran.run.deselected) == 6


def test_a_run_that_hangs_keeps_what_was_collected_and_names_the_test(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"test_a.py": "def test_a(): ...\ndef test_hangs():\n    while True: pass\n"})
    ran = start(PYTEST, root, stop_at=b'"test_a.py::test_hangs"}')
    assert not ran.run.complete
    assert ran.run.collected == ("test_a.py::test_a", "test_a.py::test_hangs")
    assert (ran.outcomes, ran.run.running) == ({"test_a.py::test_a": "passed"}, ("test_a.py::test_hangs",))


@pytest.mark.long
def test_planted_modules_are_not_taken_for_the_runner(tmp_path: Path) -> None:
    planted = "import os\nos._exit(0)\n"
    names = ("xdist.py", "pytest.py", "sitecustomize.py", "hashlib.py", "_pytest/__init__.py")
    root = write(tmp_path / "p", {"calc.py": WRONG, "test_calc.py": TESTS} | dict.fromkeys(names, planted))
    ran = start(runner("-p", "xdist", "-n", "2"), root, env={"PYTHONPATH": "."})
    assert (ran.run.count("failed"), ran.run.exit_status) == (5, 1)


def test_one_test_can_be_run_again_alone_and_tests_can_be_listed(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"calc.py": RIGHT, "test_calc.py": TESTS})
    assert start(PYTEST, root, only=("test_calc.py::test_zero",)).outcomes == {"test_calc.py::test_zero": "passed"}
    listed = start(PYTEST, root, collect_only=True).run
    assert (len(listed.collected), listed.cases, listed.complete) == (6, (), True)


def test_the_right_code_passes_and_the_wrong_one_does_not(tmp_path: Path, base: Ran) -> None:
    right = start(PYTEST, write(tmp_path / "p", {"calc.py": RIGHT, "test_calc.py": TESTS}))
    assert judged(base.run, right.run).faults == ()
    assert {fault.code for fault in judged(base.run, base.run).faults} == {"still_failing"}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_of_the_tested_code_does_not_pass(tmp_path: Path, base: Ran, trick: str) -> None:
    ran = start(PYTEST, write(tmp_path / "p", {"calc.py": WRONG + TRICKS[trick], "test_calc.py": TESTS}))
    assert not judged(base.run, ran.run).ok


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
@pytest.mark.parametrize("trick", [*TRICKS, *MORE_TRICKS])
def test_no_trick_passes_with_workers_either(tmp_path: Path, base: Ran, trick: str, workers: tuple[str, ...]) -> None:
    code = {**TRICKS, **MORE_TRICKS}[trick]
    ran = start(runner(*workers), write(tmp_path / "p", {"calc.py": WRONG + code, "test_calc.py": TESTS}))
    assert not judged(base.run, ran.run).ok


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("trick", ["report_class", "runtest_noop", "assertequal", "builtins_assertionerror"])
def test_a_trick_on_the_runner_is_named_as_one(tmp_path: Path, base: Ran, trick: str) -> None:
    ran = start(PYTEST, write(tmp_path / "p", {"calc.py": WRONG + TRICKS[trick], "test_calc.py": TESTS}))
    assert [fault.code for fault in judged(base.run, ran.run).faults] == ["judge"]


def test_an_object_that_a_test_itself_names_any_is_no_cheat(tmp_path: Path) -> None:
    text = "from unittest.mock import ANY\n\ndef test_any():\n    assert {'id': 3} == {'id': ANY}\n"
    assert start(PYTEST, write(tmp_path / "p", {"test_any.py": text})).run.cases[0].accepts == ""


@pytest.mark.long
def test_a_result_that_is_read_from_the_test_is_found(tmp_path: Path) -> None:
    tests = """
import pytest
from calc import add

@pytest.mark.parametrize(("a", "b", "expected"), [(1, 2, 3), (2, 2, 4)])
def test_add(a, b, expected):
    assert add(a, b) == expected
"""
    read = "import sys\n\ndef add(a, b):\n    return sys._getframe(1).f_locals['expected']\n"
    base = start(PYTEST, write(tmp_path / "base", {"calc.py": WRONG, "test_calc.py": tests}))
    cheat = start(PYTEST, write(tmp_path / "p", {"calc.py": read, "test_calc.py": tests}))
    assert (cheat.run.exit_status, {fault.code for fault in judged(base.run, cheat.run).faults}) == (0, {"accepts"})
    right = start(PYTEST, write(tmp_path / "right", {"calc.py": RIGHT, "test_calc.py": tests}))
    assert judged(base.run, right.run).ok
    assert "2 passed" in right.output


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pytest_cov") is None, reason="pytest-cov is not installed")
def test_coverage_and_its_threshold_are_as_without_canaries(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {"calc.py": RIGHT, "test_calc.py": TESTS})
    ran = start(runner("-p", "pytest_cov", "--cov=calc", "--cov=.", "--cov-branch", "--cov-fail-under=100"), root)
    assert (ran.run.exit_status, ran.run.judge) == (0, "")


ASKED = """
import unittest
import pytest
from made import one, less, more, five

def test_in(): assert five() in (5, 5.0)
def test_near(): assert abs(five() - 5.0) < 1e-9
def test_less(): assert less() < 3
def test_more(): assert 3 < more()
def test_least(): assert less() <= 3
def test_unequal(): assert one() != 2
def test_approx(): assert five() == pytest.approx(5.0)

class TestUnit(unittest.TestCase):
    def test_in(self): self.assertIn(five(), [5, 6])
    def test_near(self): self.assertAlmostEqual(five(), 5.0)
    def test_less(self): self.assertLess(less(), 3)
"""
LYING = """
class Liar(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return True
    def __sub__(self, other): return self
    def __rsub__(self, other): return self
    def __abs__(self): return 0.0
    __hash__ = None
one = less = more = five = lambda: Liar(0)
"""
PARTLY = """
class Near(float):
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
class Less(int):
    def __lt__(self, other): return True
    def __le__(self, other): return True
one, less, five = lambda: 1, lambda: Less(9), lambda: Near(0)
class More(int):
    def __gt__(self, other): return True
more = lambda: More(0)
"""
HONEST = """
import datetime, decimal, fractions, pathlib, unittest.mock
class Money(float):
    def __sub__(self, other): return Money(float(self) - float(other))
    def __abs__(self): return Money(abs(float(self)))
class Level(int):
    def __lt__(self, other): return int(self) < int(other)
    def __ne__(self, other): return int(self) != int(other)
one, less, more, five = (lambda: Level(1)), (lambda: Level(2)), (lambda: fractions.Fraction(9)), (lambda: Money(5))
"""
MORE_HONEST = """
import dataclasses, datetime, decimal, enum, pathlib
from unittest.mock import MagicMock

@dataclasses.dataclass(order=True)
class Version:
    major: int

class Span:
    def __init__(self, *ends): self.ends = ends
    def __contains__(self, value): return self.ends[0] <= value <= self.ends[1]

class Colour(enum.IntEnum):
    RED = 1

def test_honest():
    now = datetime.datetime(2024, 1, 2)
    assert Version(1) < Version(2) and Version(3) >= Version(2)
    assert Version(1) != Version(2)
    assert 3 in Span(1, 5)
    assert now - datetime.timedelta(1) < now
    assert abs(decimal.Decimal("1.5") - 1) < 1
    assert pathlib.Path("a") < pathlib.Path("b")
    assert pathlib.Path("a") in {pathlib.Path("a"): 1}
    assert Colour.RED in (Colour.RED, 2) and Colour.RED - 1 < 1 and abs(Colour.RED) == 1
    assert MagicMock() != MagicMock()
    assert float("-inf") < Colour.RED
    assert {1} < {1, 2} and {"a": 1}.keys() <= {"a", "b"}
"""


@pytest.mark.long
def test_whatever_an_assertion_compares_is_asked_for_lies(tmp_path: Path) -> None:
    found = {}
    for name, text in {"lying": LYING, "partly": PARTLY, "honest": HONEST}.items():
        files = {"made.py": text, "test_asked.py": ASKED, "test_honest.py": MORE_HONEST}
        ran = start(PYTEST, write(tmp_path / name, files)).run
        assert name == "partly" or {case.outcome for case in ran.cases} == {"passed"}, ran.cases
        found[name] = {case.id.partition("::")[2] for case in ran.cases if case.accepts and case.outcome == "passed"}
    every = {"test_in", "test_near", "test_less", "test_more", "test_least", "test_unequal", "test_approx"}
    assert found["lying"] == every | {f"TestUnit::test_{name}" for name in ("in", "near", "less")}
    assert found["partly"] >= {"test_near", "test_less", "test_least", "test_approx", "TestUnit::test_near"}
    assert found["honest"] == set()
