"""pytest with the observer in it: outcomes, proof that tests ran, and code under test that attacks its runner."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.gates.sealed.observing import PYTHON, Observed, command, observe
from tests.gates.sealed.sealing import write

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "alone": ((), {}),
    "xdist": (("-p", "xdist", "-n", "2"), {}),
    "unmounted": ((), {"unmounted": True}),
}

OUTCOMES = """
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
    assert {name for name in here.f_locals if not name.startswith("@py")} <= {"here", "name"}
    assert {name for name in here.f_code.co_varnames if not name.startswith("@py")} <= {"here", "name"}
    assert not [name for name in [*sys.modules, *sys.argv, *os.environ] if "observer" in name or "interlock" in name]
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
    def inner(): function()
    return inner
"""
FILES = {
    "test_all.py": OUTCOMES,
    "product.py": PRODUCT,
    "conftest.py": "",
    "test_broken.py": "import broken\n",
    "broken.py": "\ntable = (1,\n",
    "test_whole.py": "import pytest\npytest.skip('as a whole', allow_module_level=True)\n",
}
CASES = {
    "test_param[1]": ("passed", "ended", ""),
    "test_param[2]": ("failed", "begun", "test_all.py:8 AssertionError: assert 2 == 1"),
    "test_skip_mark": ("skipped", "", "later"),
    "test_skip_body": ("skipped", "begun", "not here"),
    "test_expected": ("xfailed", "begun", "test_all.py:16 AssertionError: assert 0"),
    "test_unexpected": ("xpassed", "ended", ""),
    "test_setup": ("error", "", "test_all.py:22 ValueError: no database"),
    "test_unknown": ("error", "", "fixture 'nothing' not found"),
    "test_product": ("failed", "begun", "product.py:16 ValueError: boom"),
    "test_swapped": ("passed", "", ""),
    "test_replaced": ("passed", "", ""),
    "test_decorated": ("passed", "ended", ""),
    "test_unseen": ("passed", "ended", ""),
    "test_inherited": ("passed", "ended", ""),
    "test_method": ("passed", "ended", ""),
    "test_fails": ("failed", "begun", "test_all.py:52 AssertionError: 1 != 2"),
    "test_sub": ("failed", "ended", "test_all.py:55 AssertionError: 1 == 1"),
    "test_unit_skip": ("skipped", "", "by a mark"),
    "test_unit_expected": ("xfailed", "begun", ""),
    "test_awaited": ("passed", "ended", ""),
}


def run(root: Path, files: dict[str, str], *argv: str, **spec: Any) -> Observed:
    return observe(root, files, *PYTEST, *argv, env=QUICK, **spec)


@pytest.fixture(scope="module", params=WAYS)
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    argv, spec = WAYS[request.param]
    return run(tmp_path_factory.mktemp("all") / "p", FILES, *argv, keep_going=True, **spec)


def test_each_outcome_is_reported_with_its_reason_and_proof(observed: Observed) -> None:
    found = {name: (case.outcome, case.ran, case.message) for name, case in observed.cases.items()}
    assert found == CASES, observed.output
    assert {name: case.when for name, case in observed.cases.items() if case.when} == {
        "test_skip_mark": "setup", "test_skip_body": "call", "test_unit_skip": "setup",
    }  # fmt: skip
    assert {case.file for case in observed.run.cases} == {"test_all.py"}


def test_the_run_is_known_and_its_user_sees_nothing(observed: Observed) -> None:
    run = observed.run
    assert (run.runner, run.sessions, run.complete, run.running, run.changed) == ("pytest", 1, True, (), ())
    assert (len(run.collected), {name.partition("::")[0] for name in run.collected}) == (len(CASES), {"test_all.py"})
    assert run.broken == (("test_broken.py", "broken.py:2 SyntaxError: '(' was never closed"),)
    assert run.skipped_files == (("test_whole.py", "Skipped: as a whole"),)
    assert {Path(path).name for path in run.frozen} == {"test_all.py", "test_broken.py", "conftest.py"}
    loaded = dict(run.loaded)
    assert (loaded["product"].endswith("/p/product.py"), "pytest" in loaded) == (True, True)
    assert not {"json", "os", "unittest.case"} & set(loaded)
    assert {Path(path).name for path in run.roots} == {"p"}
    assert (observed.status, "test_param[2]" in observed.output, "_observer.py" in observed.output) == (1, True, False)


def test_a_worker_of_xdist_that_crashes_is_known(tmp_path: Path) -> None:
    files = {"test_a.py": "import os\ndef test_a(): ...\ndef test_crash(): os._exit(3)\n"}
    observed = run(tmp_path / "p", files, "-p", "xdist", "-n", "1")
    assert (observed.outcomes, observed.run.complete) == ({"test_a": "passed", "test_crash": "error"}, False)
    assert "crashed" in observed.cases["test_crash"].message


EQUAL = """
import pytest
from unittest import TestCase
from product import Everything, Honest

def test_honest():
    one, same = Honest(1), Honest(1)
    assert [one] == [same]
    assert one.last is same
def test_equal():
    any = Everything()
    assert 3 == any
    assert any.last == 3
def test_nested(): assert {"rows": [(Everything(), 1)]} == {"rows": [(3, 1)]}
def test_approx(): assert Everything() == pytest.approx(3)
def test_less(): assert Everything() < 3
def test_mirrored(): assert 3 >= Everything()
def test_member(): assert Everything() in [1, 2]
def test_container(): assert 7 in Everything()
def test_difference(): assert abs(Everything() - 3.0) < 1e-9
def test_assertion(): TestCase().assertEqual(Everything(), 3)
"""


def test_a_value_that_equals_everything_is_named(tmp_path: Path) -> None:
    observed = run(tmp_path / "p", {"test_equal.py": EQUAL, "product.py": PRODUCT})
    found = {name: case.equals for name, case in observed.cases.items()}
    assert found.pop("test_honest") == ""
    assert found["test_equal"] == "line 12: an object of the class product.Everything is equal to everything"
    assert [name for name, words in found.items() if "product.Everything" not in words] == []
    assert set(observed.outcomes.values()) == {"passed"}


ATTACKS = """
import pytest, unittest, json, os, hashlib

class Swallow:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        (yield).force_result(None)

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


def test_what_hides_a_failure_is_named_and_the_test_did_not_end(tmp_path: Path) -> None:
    observed = run(tmp_path / "p", {"test_attacked.py": ATTACKED, "product.py": ATTACKS})
    assert observed.ran == {"test_attack": "ended", "test_fails": "begun", "test_in": "ended", "test_unit": "begun"}
    assert observed.status == 0
    names = {"plugin: forge", "unittest.case.TestCase.assertIn", "unittest.case.TestCase.assertNotIn"}
    assert names <= {*observed.run.changed}


EXITS = {"import os; os._exit(0)": False, "import sys; sys.exit(0)": True}


@pytest.mark.parametrize("text", EXITS)
def test_an_exit_while_a_file_is_imported_is_no_run_that_passed(tmp_path: Path, text: str) -> None:
    observed = run(tmp_path / "p", {"test_a.py": "import product\ndef test_a(): ...\n", "product.py": text})
    assert (observed.run.cases, observed.run.complete, observed.run.passes) == ((), EXITS[text], False)


def test_a_conftest_that_cannot_be_imported_is_broken(tmp_path: Path) -> None:
    files = {"conftest.py": "import product\n", "product.py": "def f(:\n", "test_a.py": "def test_a(): ...\n"}
    observed = run(tmp_path / "p", files)
    assert observed.run.broken == (("conftest.py", "product.py:1 SyntaxError: invalid syntax"),)
    assert not observed.run.complete


def test_only_what_is_asked_for_runs(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_a(): ...\ndef test_b(): assert 0\n"}
    observed = run(tmp_path / "p", files, only=["test_a.py::test_a"])
    assert (observed.outcomes, observed.status) == ({"test_a": "passed"}, 0)
    assert observed.run.collected == ("test_a.py::test_a",)


NESTED = """
import subprocess, sys

pytest_plugins = ["pytester"]

def test_process():
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "inner.py"]
    assert subprocess.run(argv).returncode == 0

def test_inside(pytester):
    pytester.makepyfile("import unittest\\nclass T(unittest.TestCase):\\n    def test_a(self): assert 1 == 1\\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "xdist"])
def test_a_runner_that_a_test_starts_is_one_of_its_own(tmp_path: Path, options: tuple[str, ...]) -> None:
    files = {"conftest.py": "", "inner.py": "def test_inner(): ...\n", "test_nested.py": NESTED}
    observed = run(tmp_path / "p", files, *options)
    assert observed.ran == {"test_process": "ended", "test_inside": "ended"}, observed.output
    assert observed.run.sessions == 1


def test_an_ignored_observer_does_nothing(tmp_path: Path) -> None:
    text = "import unittest\ndef test_a(): assert not hasattr(unittest.TestCase.assertIn, '__wrapped__')\n"
    observed = run(tmp_path / "p", {"test_a.py": text}, is_ignored=True)
    assert (observed.found, observed.status) == (None, 0), observed.output


def test_nothing_is_warned_of(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_a(): ...\n"}
    observed = observe(tmp_path / "p", files, "-X", "dev", "-W", "error", *PYTEST, env=QUICK)
    assert (observed.outcomes, "Warning" in observed.output) == ({"test_a": "passed"}, False), observed.output


MEASURED = {
    "product.py": "def few(number):\n    if number > 2:\n        return 'many'\n    return 'few'\n",
    "test_a.py": """
import unittest
import pytest
from product import few

@pytest.fixture
def numbers():
    yield [few(1)]
    few(7)

def test_few(numbers):
    if few(1) == "many":
        assert 0
    assert few(9) == "many"

def test_fails():
    few(1)
    assert 0
    few(2)

class TestUnit(unittest.TestCase):
    def setUp(self):
        self.made = few(2)
    def test_made(self):
        with self.subTest():
            self.assertEqual(self.made, "few")
""",
}


@pytest.mark.parametrize("branch", [(), ("--branch",)], ids=["lines", "branches"])
def test_coverage_measures_the_same(tmp_path: Path, branch: tuple[str, ...]) -> None:
    argv = ("-m", "coverage", "run", *branch, "--source=.", *PYTEST)
    plain, seen = write(tmp_path / "plain", MEASURED), tmp_path / "seen"
    command(plain, [PYTHON, *argv], os.environ | QUICK)
    observed = observe(seen, MEASURED, *argv, env=QUICK)
    assert {name: ran for name, ran in observed.ran.items() if ran != "ended"} == {"test_fails": "begun"}
    assert measured(plain) == measured(seen)
    assert set(measured(seen)) == {"product.py", "test_a.py"}


def measured(root: Path) -> dict[str, list[object]]:
    command(root, [PYTHON, "-m", "coverage", "json", "-q"], os.environ)
    files = json.loads((root / "coverage.json").read_text())["files"]
    kinds = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    return {path: [row.get(kind) for kind in kinds] for path, row in files.items()}


def test_a_function_that_is_sent_elsewhere_with_its_code_works_there(tmp_path: Path) -> None:
    text = """
import marshal, subprocess, sys
RUN = "import marshal, sys; import _pytest.assertion.rewrite as pytest_ar\\n"
RUN += "exec(marshal.load(sys.stdin.buffer), {'x': 3, '@pytest_ar': pytest_ar})"
def inner():
    assert x == 3
def test_a():
    assert "_held" in inner.__code__.co_names
    subprocess.run([sys.executable, "-c", RUN], input=marshal.dumps(inner.__code__), check=True)
"""
    assert run(tmp_path / "p", {"test_a.py": text}).outcomes == {"test_a": "passed"}
