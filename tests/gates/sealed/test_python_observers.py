"""pytest and unittest with the observer in them: outcomes, proof that tests ran, and code under test that attacks."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.gates.sealed.observing import PYTHON, Observed, command, observe
from tests.gates.sealed.sealing import write

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
XDIST = (*PYTEST, "-p", "xdist", "-n", "2")
UNITTEST = ("-m", "unittest")
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

TESTS = """
import os, sys, unittest
import pytest
import product

@pytest.mark.parametrize("x", [1, 2])
def test_param(x):
    assert x == 1

@pytest.mark.skip(reason="later")
def test_skip_mark(): ...

def test_skip_body(): pytest.skip("not here")

@pytest.mark.xfail
def test_expected(): assert 0

@pytest.mark.xfail
def test_unexpected(): assert 1

@pytest.fixture
def bad(): raise ValueError("no database")

def test_setup(bad): ...
def test_unknown(nothing): ...
def test_product(): product.boom()

def test_swapped(): assert 0
def test_replaced(): assert 0
product.attack(globals())

@product.unwrapped
def test_decorated(): assert True

def test_unseen():
    here = sys._getframe()
    assert sys.gettrace() is None
    assert {name for name in here.f_locals if not name.startswith("@py")} <= {"here", "n"}
    assert {name for name in here.f_code.co_varnames if not name.startswith("@py")} <= {"here", "n"}
    assert not [n for n in [*sys.modules, *sys.argv[1:], *os.environ] if "observer" in n or "interlock" in n]
    assert not any("_space" in vars(module) for module in (unittest, sys.modules["_pytest.config"], pytest))

class Base:
    def test_inherited(self): assert True

class TestClass(Base):
    def test_method(self):
        with pytest.raises(KeyError):
            {}[1]

class TestUnit(unittest.TestCase):
    def test_fails(self): self.assertEqual(1, 2)
    def test_sub(self):
        for number in range(3):
            with self.subTest(number=number): self.assertNotEqual(number, 1)
    @unittest.skip("by a mark")
    def test_unit_skip(self): ...
    @unittest.expectedFailure
    def test_unit_expected(self): self.fail()

class TestAwaited(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self): self.assertEqual(1, 1)
"""
UNITS = """
import io, sys, unittest
import product

class Base:
    def test_inherited(self): self.assertEqual(1, 1)

class TestAll(Base, unittest.TestCase):
    def test_unseen(self):
        self.assertIsNone(sys.gettrace())
        self.assertEqual(list(locals()), ["self"])
        self.assertNotIn("_space", vars(unittest))
    def test_fails(self): self.assertEqual(1, 2)
    def test_product(self): product.boom()
    def test_equal(self): self.assertEqual(product.Everything(), 3)
    def test_skip_body(self): self.skipTest("not here")
    @unittest.skip("later")
    def test_skip_mark(self): ...
    @unittest.expectedFailure
    def test_expected(self): self.fail("known")
    @unittest.expectedFailure
    def test_unexpected(self): ...
    def test_sub(self):
        for number in range(3):
            with self.subTest(number=number): self.assertNotEqual(number, 1)
    def test_sub_skip(self):
        with self.subTest(): self.skipTest("a part")
    @product.unwrapped
    def test_decorated(self): ...
    def test_nested(self):
        class Inner(unittest.TestCase):
            def test_inner(self): ...
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(Inner)
        unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    def test_swapped(self): self.fail()
    def test_replaced(self): self.fail()
    product.attack(locals())

class TestUnready(unittest.TestCase):
    @classmethod
    def setUpClass(cls): product.boom()
    def test_one(self): ...
    def test_two(self): ...

class TestLeftOut(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("as a class")
    def test_left(self): ...

class TestAwaited(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self): self.assertEqual(1, 1)
    async def test_awaited_fails(self): self.assertEqual(1, 2)

if __name__ == "__main__":
    unittest.main()
"""
PRODUCT = """
class Everything:
    def __eq__(self, other):
        self.last = other
        return True
    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = __contains__ = __eq__
    def __sub__(self, other): return 0

class Honest:
    def __init__(self, value): self.value = value
    def __eq__(self, other):
        self.last = other
        return isinstance(other, Honest) and other.value == self.value

def boom():
    raise ValueError("boom")

def passes(*args): ...

def attack(names):
    names["test_swapped"].__code__ = passes.__code__
    names["test_replaced"] = passes

def unwrapped(function):
    def inner(*args): function(*args)
    return inner
"""
FILES = {
    "product.py": PRODUCT,
    "test_broken.py": "import broken\n",
    "broken.py": "\ntable = (1,\n",
    "test_whole.py": "import unittest\nraise unittest.SkipTest('as a whole')\n",
}
PYTEST_FILES = {**FILES, "test_all.py": TESTS, "conftest.py": ""}
UNIT_FILES = {**FILES, "test_all.py": UNITS}
ALIKE = {
    "test_decorated": ("passed", "ended", ""),
    "test_swapped": ("passed", "", ""),
    "test_replaced": ("passed", "", ""),
    "test_unseen": ("passed", "ended", ""),
    "test_inherited": ("passed", "ended", ""),
    "test_awaited": ("passed", "ended", ""),
    "test_skip_mark": ("skipped", "", "later"),
    "test_skip_body": ("skipped", "begun", "not here"),
}
CASES = {
    **ALIKE,
    "test_param[1]": ("passed", "ended", ""),
    "test_param[2]": ("failed", "begun", "test_all.py:8:5 AssertionError: assert 2 == 1"),
    "test_expected": ("xfailed", "begun", "test_all.py:16:22 AssertionError: assert 0"),
    "test_unexpected": ("xpassed", "ended", ""),
    "test_setup": ("error", "", "test_all.py:22:12 ValueError: no database"),
    "test_unknown": ("error", "", "fixture 'nothing' not found"),
    "test_product": ("failed", "begun", "product.py:16:5 ValueError: boom"),
    "test_method": ("passed", "ended", ""),
    "test_fails": ("failed", "begun", "test_all.py:52:27 AssertionError: 1 != 2"),
    "test_sub": ("failed", "ended", "test_all.py:55:47 AssertionError: 1 == 1"),
    "test_unit_skip": ("skipped", "", "by a mark"),
    "test_unit_expected": ("xfailed", "begun", ""),
}
UNIT_CASES = {
    **ALIKE,
    "test_fails": ("failed", "begun", "test_all.py:13:27 AssertionError: 1 != 2"),
    "test_product": ("error", "begun", "product.py:16:5 ValueError: boom"),
    "test_equal": ("passed", "ended", ""),
    "test_expected": ("xfailed", "begun", "test_all.py:20:30 AssertionError: known"),
    "test_unexpected": ("failed", "ended", "unexpected success"),
    "test_sub": ("failed", "ended", "test_all.py:25:47 AssertionError: 1 == 1"),
    "test_sub_skip": ("skipped", "ended", "a part"),
    "test_nested": ("passed", "ended", ""),
    "test_one": ("error", "", "product.py:16:5 ValueError: boom"),
    "test_two": ("error", "", "product.py:16:5 ValueError: boom"),
    "test_left": ("skipped", "", "as a class"),
    "test_awaited_fails": ("failed", "begun", "test_all.py:52:41 AssertionError: 1 != 2"),
}
WAYS = {
    "pytest": (PYTEST, PYTEST_FILES, CASES),
    "xdist": (XDIST, PYTEST_FILES, CASES),
    "unittest": (UNITTEST, UNIT_FILES, UNIT_CASES),
    "script": (("test_all.py",), UNIT_FILES, UNIT_CASES),
}


def run(root: Path, files: dict[str, str], argv: tuple[str, ...] = PYTEST, **spec: Any) -> Observed:
    return observe(write(root, files), (PYTHON, *argv), env=QUICK, **spec)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def observed(way: str, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    argv, files, _ = WAYS[way]
    return run(tmp_path_factory.mktemp("all") / "p", files, argv, keep_going=True)


def test_each_outcome_is_reported_with_its_reason_and_proof(observed: Observed, way: str) -> None:
    cases, expected = observed.cases, WAYS[way][2]
    found = {name: (case.outcome, case.ran, case.message) for name, case in cases.items()}
    assert found == expected, observed.output
    assert {name: case.when for name, case in cases.items() if case.when} == {
        name: "call" if ran else "setup" for name, (outcome, ran, _) in expected.items() if outcome == "skipped"
    }
    assert {case.file for case in observed.run.cases} == {"test_all.py"}
    assert observed.run.equals == ("product.Everything",)


def test_the_run_is_known_and_its_user_sees_nothing(observed: Observed, way: str) -> None:
    run, runner = observed.run, "pytest" if way in ("pytest", "xdist") else "unittest"
    assert (run.runner, run.sessions, run.complete, run.running, run.changed) == (runner, 1, True, (), ())
    assert {name.rpartition("::" if runner == "pytest" else ".")[2] for name in run.collected} == {*WAYS[way][2]}
    if way != "script":
        assert run.broken == (("test_broken.py", "broken.py:2:9 SyntaxError: '(' was never closed"),)
        assert [(path, why.rpartition(": ")[2]) for path, why in run.skipped_files] == [("test_whole.py", "as a whole")]
    frozen = {"pytest": {"test_broken.py", "conftest.py"}, "unittest": {"test_broken.py"}}[runner]
    assert {Path(path).name for path in run.frozen} == {"test_all.py", *(frozen if way != "script" else ())}
    loaded = dict(run.loaded)
    assert (loaded["product"].endswith("/p/product.py"), "pytest" in loaded) == (True, runner == "pytest")
    assert not {"json", "os", "unittest.case"} & set(loaded)
    assert {Path(path).name for path in run.roots} == {"p"}
    assert observed.status == 1
    assert "test_fails" in observed.output
    assert "_observer.py" not in observed.output


ATTACKS = """
import pytest, unittest, json, os, hashlib

class Forge:
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self):
        report = (yield).get_result()
        report.outcome, report.longrepr = "passed", None

def attack(config):
    config.pluginmanager.register(Forge(), "forge")
    unittest.TestCase.assertIn = lambda *args: None
    unittest.TestCase.assertNotIn.__code__ = (lambda *args: None).__code__
    json.JSONEncoder.encode = json.dumps = os.write = hashlib.sha256 = None
"""
ATTACKED = """
import unittest, product

def test_attack(request): product.attack(request.config)
def test_fails(): assert 0

class TestUnit(unittest.TestCase):
    def test_in(self): self.assertIn(1, [])
    def test_unit(self): self.assertEqual(1, 2)
"""
UNIT_ATTACKS = """
import contextlib, unittest
from unittest import case

class Outcome(case._Outcome):
    @contextlib.contextmanager
    def testPartExecutor(self, *args, **kwargs):
        with contextlib.suppress(BaseException):
            yield

def attack(_):
    case._Outcome = Outcome
    unittest.TestCase.assertIn = lambda *args: None
    unittest.TestCase.assertNotIn.__code__ = (lambda *args: None).__code__
"""
UNIT_ATTACKED = """
import unittest, product

class TestAll(unittest.TestCase):
    def test_attack(self): product.attack(None)
    def test_fails(self): self.assertEqual(1, 2)
    def test_in(self): self.assertIn(1, [])
"""


@pytest.mark.parametrize(
    ("argv", "attack", "tests", "ran", "changed"),
    [
        (
            PYTEST,
            ATTACKS,
            ATTACKED,
            {"test_fails": "begun", "test_in": "ended", "test_unit": "begun"},
            "unittest.case.TestCase.assertIn",
        ),
        (UNITTEST, UNIT_ATTACKS, UNIT_ATTACKED, {"test_fails": "begun", "test_in": "ended"}, "unittest.case._Outcome"),
    ],
    ids=["pytest", "unittest"],
)
def test_what_hides_a_failure_is_named_and_the_test_did_not_end(
    tmp_path: Path, argv: tuple[str, ...], attack: str, tests: str, ran: dict[str, str], changed: str
) -> None:
    observed = run(tmp_path / "p", {"test_attacked.py": tests, "product.py": attack}, argv)
    assert (observed.status, observed.ran) == (0, ran | {"test_attack": "ended"})
    names = {changed, "unittest.case.TestCase.assertIn", "unittest.case.TestCase.assertNotIn"}
    assert names <= {*observed.run.changed}


@pytest.mark.parametrize(
    ("argv", "text", "running", "is_complete"),
    [
        (PYTEST, "import os; os._exit(0)", (), False),
        (PYTEST, "import sys; sys.exit(0)", (), True),
        (PYTEST, "import os\ndef f(): os._exit(0)", ("test_a.py::A::test_a",), False),
        (UNITTEST, "import os\ndef f(): os._exit(0)", ("test_a.A.test_a",), False),
    ],
)
def test_an_exit_of_the_product_is_no_run_that_passed(
    tmp_path: Path, argv: tuple[str, ...], text: str, running: tuple[str, ...], is_complete: bool
) -> None:
    test = "import product, unittest\nclass A(unittest.TestCase):\n    def test_a(self): product.f()\n"
    observed = run(tmp_path / "p", {"test_a.py": test, "product.py": text}, argv)
    assert (observed.run.cases, observed.run.running) == ((), running)
    assert (observed.run.complete, observed.run.passes) == (is_complete, False)


def test_a_conftest_that_cannot_be_imported_is_broken(tmp_path: Path) -> None:
    files = {"conftest.py": "import product\n", "product.py": "def f(:\n", "test_a.py": "def test_a(): ...\n"}
    observed = run(tmp_path / "p", files)
    assert observed.run.broken == (("conftest.py", "product.py:1:7 SyntaxError: invalid syntax"),)
    assert not observed.run.complete


def test_a_worker_of_xdist_that_crashes_is_known(tmp_path: Path) -> None:
    files = {"test_a.py": "import os\ndef test_a(): ...\ndef test_crash(): os._exit(3)\n"}
    observed = run(tmp_path / "p", files, XDIST)
    assert (observed.outcomes, observed.run.complete) == ({"test_a": "passed", "test_crash": "error"}, False)
    assert "crashed" in observed.cases["test_crash"].message


NESTED = """
import subprocess, sys

pytest_plugins = ["pytester"]

def test_process():
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "inner.py"]
    assert subprocess.run(argv).returncode == 0

def test_inside(pytester):
    pytester.makepyfile("import unittest\\nclass T(unittest.TestCase):\\n    def test_a(self): assert 1 == 1\\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)

def test_distributed(pytester):
    pytester.makepyfile("def test_good(): ...\\ndef test_bad(): assert 0")
    pytester.runpytest_inprocess("-p", "xdist", "-n2").assert_outcomes(passed=1, failed=1)
"""


@pytest.mark.parametrize("argv", [PYTEST, XDIST], ids=["alone", "xdist"])
def test_a_runner_that_a_test_starts_is_one_of_its_own(tmp_path: Path, argv: tuple[str, ...]) -> None:
    files = {"conftest.py": "", "inner.py": "def test_inner(): ...\n", "test_nested.py": NESTED}
    observed = run(tmp_path / "p", files, argv)
    assert observed.ran == dict.fromkeys(("test_process", "test_inside", "test_distributed"), "ended"), observed.output
    assert not [path for _, path in observed.run.loaded if path.endswith("/test_distributed.py")]
    assert observed.run.sessions == 1


RUNS = """
import unittest, sys

class TestOne(unittest.TestCase):
    def test_one(self): ...

suite = unittest.defaultTestLoader.loadTestsFromTestCase
for _ in range(2):
    unittest.TextTestRunner().run(suite(TestOne))
assert sys.argv == ["run.py"]
"""


def test_each_suite_of_a_process_is_observed(tmp_path: Path) -> None:
    observed = run(tmp_path / "p", {"run.py": RUNS}, ("run.py",))
    assert (observed.outcomes, observed.run.complete, observed.status) == ({"test_one": "passed"}, True, 0)


@pytest.mark.parametrize("argv", [PYTEST, UNITTEST], ids=["pytest", "unittest"])
def test_nothing_is_warned_of_and_an_ignored_observer_does_nothing(tmp_path: Path, argv: tuple[str, ...]) -> None:
    text = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(b'a', b'a')\n"
    observed = run(tmp_path / "p", {"test_a.py": text}, ("-X", "dev", "-bb", "-W", "error", *argv))
    assert (observed.outcomes, "Warning" in observed.output) == ({"test_a": "passed"}, False), observed.output
    text += "        assert not hasattr(unittest.TestCase.assertIn, '__wrapped__')\n"
    observed = run(tmp_path / "p", {"test_a.py": text}, argv, is_ignored=True)
    assert (observed.found, observed.status) == (None, 0), observed.output


MEASURED = {
    "product.py": "def few(number):\n    if number > 2:\n        return 'many'\n    return 'few'\n",
    "test_a.py": """
import unittest
from product import few

def test_few():
    if few(1) == "many":
        assert 0
    assert few(9) == "many"

def test_fails():
    few(1)
    assert 0
    few(2)

class TestUnit(unittest.TestCase):
    def setUp(self): self.made = few(2)
    def test_made(self): self.assertEqual(self.made, "few")
""",
}


def test_coverage_measures_the_same(tmp_path: Path) -> None:
    argv = ("-m", "coverage", "run", "--branch", "--source=.", *PYTEST)
    plain, seen = write(tmp_path / "plain", MEASURED), tmp_path / "seen"
    command(plain, [PYTHON, *argv], os.environ | QUICK)
    observed = run(seen, MEASURED, argv)
    assert {name: ran for name, ran in observed.ran.items() if ran != "ended"} == {"test_fails": "begun"}
    assert measured(plain) == measured(seen)
    assert set(measured(seen)) == {"product.py", "test_a.py"}


def measured(root: Path) -> dict[str, list[object]]:
    command(root, [PYTHON, "-m", "coverage", "json", "-q"], os.environ)
    files = json.loads((root / "coverage.json").read_text())["files"]
    kinds = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    return {path: [row.get(kind) for kind in kinds] for path, row in files.items()}
