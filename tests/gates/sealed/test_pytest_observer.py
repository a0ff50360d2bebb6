"""pytest with the observer in it: outcomes, proof that tests ran, and code under test that attacks its runner."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gates.sealed.observing import Observed, observe
from tests.gates.sealed.sealing import write

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "alone": ((), {}),
    "xdist": (("-p", "xdist", "-n", "2"), {}),
    "late": ((), {"late": True}),
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
    assert [name for name in here.f_locals if not name.startswith("@py")] == ["here"]
    assert [name for name in here.f_code.co_varnames if not name.startswith("@py")] == ["here"]
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
    def __eq__(self, other): return True
    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = __contains__ = __eq__
    def __sub__(self, other): return 0

class Honest:
    def __init__(self, value): self.value = value
    def __eq__(self, other): return isinstance(other, Honest) and other.value == self.value

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
    "test_product": ("failed", "begun", "product.py:12 ValueError: boom"),
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


def run(root: Path, files: dict[str, str], *argv: str, **answer: Any) -> Observed:
    return observe(root, files, *PYTEST, *argv, env=QUICK, **answer)


@pytest.fixture(scope="module", params=WAYS)
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    argv, answer = WAYS[request.param]
    return run(tmp_path_factory.mktemp("all") / "p", FILES, *argv, keep_going=True, **answer)


def test_each_outcome_is_reported_with_its_reason_and_proof(observed: Observed) -> None:
    found = {name: (case["outcome"], case["ran"], case["message"]) for name, case in observed.cases.items()}
    assert found == CASES, observed.output
    assert len(observed.of("start")) == len(CASES)
    assert {name: case["when"] for name, case in observed.cases.items() if case["when"]} == {
        "test_skip_mark": "setup", "test_skip_body": "call", "test_unit_skip": "setup",
    }  # fmt: skip
    assert {case["file"] for case in observed.of("case")} == {"test_all.py"}


def test_a_session_is_told_from_its_beginning_to_its_end(observed: Observed) -> None:
    (begin,), (collected,) = observed.of("begin"), observed.of("collected")
    assert (begin["version"], begin["argv"][0]) == (pytest.__version__, "-q")
    assert {name.partition("::")[0] for name in collected["ids"]} == {"test_all.py"}
    assert len(collected["ids"]) == len(CASES)
    assert [(each["file"], each["message"]) for each in observed.of("broken")] == [
        ("test_broken.py", "broken.py:2 SyntaxError: '(' was never closed")
    ]
    assert [(each["file"], each["message"]) for each in observed.of("skipped_file")] == [
        ("test_whole.py", "Skipped: as a whole")
    ]
    assert observed.session["status"] == observed.status == 1
    assert "test_param[2]" in observed.output
    assert "_observer.py" not in observed.output


def test_the_files_of_the_run_are_named(observed: Observed) -> None:
    sessions = observed.of("session")
    frozen = {Path(path).name for event in sessions for path in event["frozen"]}
    loaded = {name: path for event in sessions for name, path in event["loaded"]}
    assert frozen == {"test_all.py", "test_broken.py", "conftest.py"}
    assert loaded["product"].endswith("/p/product.py")
    assert not {"json", "os", "unittest.case"} & set(loaded)
    assert "pytest" in loaded
    assert {Path(path).name for event in sessions for path in event["roots"]} == {"p"}


def test_each_worker_of_xdist_connects_for_itself(tmp_path: Path) -> None:
    files = {"test_a.py": "import os\ndef test_a(): ...\ndef test_crash(): os._exit(3)\n"}
    observed = run(tmp_path / "p", files, "-p", "xdist", "-n", "1")
    assert [each.hello.get("worker", "") for each in observed.connections] == ["", "gw0", "gw1"]
    assert observed.outcomes == {"test_a": "passed", "test_crash": "error"}
    assert "crashed" in observed.cases["test_crash"]["message"]
    assert observed.session["status"] == 1


EQUAL = """
import pytest
from unittest import TestCase, mock
from product import Everything, Honest

def test_honest(): assert [Honest(1)] == [Honest(1)]
def test_any(): assert Everything() == mock.ANY
def test_equal(): assert Everything() == 3
def test_nested(): assert {"rows": [(Everything(), 1)]} == {"rows": [(3, 1)]}
def test_approx(): assert Everything() == pytest.approx(3)
def test_less(): assert Everything() < 3
def test_mirrored(): assert 3 >= Everything()
def test_member(): assert Everything() in [1, 2]
def test_container(): assert 7 in Everything()
def test_difference(): assert abs(Everything() - 3.0) < 1e-9
def test_unequal(): assert Everything() != 3
def test_assertion(): TestCase().assertEqual(Everything(), 3)
"""


def test_a_value_that_equals_everything_is_named(tmp_path: Path) -> None:
    observed = run(tmp_path / "p", {"test_equal.py": EQUAL, "product.py": PRODUCT})
    found = {name: case["equals"] for name, case in observed.cases.items()}
    assert (found.pop("test_honest"), found.pop("test_any")) == ("", "")
    assert found["test_equal"] == "line 8: an object of the class product.Everything is equal to everything"
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


def test_what_a_late_plugin_hides_is_seen_and_what_was_replaced_is_named(tmp_path: Path) -> None:
    observed = run(tmp_path / "p", {"test_attacked.py": ATTACKED, "product.py": ATTACKS})
    assert observed.outcomes == {
        "test_attack": "passed", "test_fails": "failed", "test_in": "passed", "test_unit": "failed",
    }  # fmt: skip
    words = "reported as passed, but its call ended with test_attacked.py:5 AssertionError: assert 0"
    assert observed.cases["test_fails"]["message"] == words
    assert observed.status == 0
    changed = set(observed.session["changed"])
    assert {"plugin: forge", "unittest.case.TestCase.assertIn", "unittest.case.TestCase.assertNotIn"} <= changed


def test_nothing_of_the_runner_is_changed_by_a_run_that_changes_nothing(tmp_path: Path) -> None:
    files = {"test_a.py": "import unittest\ndef test_a(): ...\n", "product.py": ""}
    of_pytest = set(run(tmp_path / "p", files).session["changed"])
    assert not [name for name in of_pytest if not name.startswith("_pytest.")], of_pytest
    assert not {"_pytest.config.get_config", "_pytest.assertion.rewrite._rewrite_test"} & of_pytest


@pytest.mark.parametrize(("text", "status"), [("import os; os._exit(0)", None), ("import sys; sys.exit(0)", 3)])
def test_an_exit_while_a_file_is_imported_leaves_no_session_that_passed(
    tmp_path: Path, text: str, status: int | None
) -> None:
    observed = run(tmp_path / "p", {"test_a.py": "import product\ndef test_a(): ...\n", "product.py": text})
    assert [event["status"] for event in observed.of("session")] == ([] if status is None else [status])
    assert observed.of("case") == []


def test_a_conftest_that_cannot_be_imported_is_broken(tmp_path: Path) -> None:
    files = {"conftest.py": "import product\n", "product.py": "def f(:\n", "test_a.py": "def test_a(): ...\n"}
    observed = run(tmp_path / "p", files)
    assert [(each["file"], each["message"]) for each in observed.of("broken")] == [
        ("conftest.py", "product.py:1 SyntaxError: invalid syntax")
    ]
    assert observed.of("session") == []


def test_only_what_is_asked_for_runs(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_a(): ...\ndef test_b(): assert 0\n"}
    observed = run(tmp_path / "p", files, only=["test_a.py::test_a"])
    assert (observed.outcomes, observed.session["status"]) == ({"test_a": "passed"}, 0)
    assert observed.of("collected")[0]["ids"] == ["test_a.py::test_a"]


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
    last = observed.connections[-1]
    assert (last.ignored, last.events, "worker" in last.hello) == (True, [], False)
    assert len({each.hello["pid"] for each in observed.connections}) == len(observed.connections)


def test_an_ignored_observer_does_nothing(tmp_path: Path) -> None:
    text = "import unittest\ndef test_a(): assert not hasattr(unittest.TestCase.assertIn, '__wrapped__')\n"
    observed = run(tmp_path / "p", {"test_a.py": text}, ignored=True)
    assert ([each.events for each in observed.connections], observed.status) == ([[]], 0), observed.output


def test_a_gate_that_does_not_answer_is_said(tmp_path: Path) -> None:
    code = "import _pytest.config as c; exec(line, {'__name__': '_pytest.config', 'FOLDER': folder, "
    code += "'SOCKET': '/nowhere', 'TARGET': vars(c)}); c.get_config()"
    folder = Path(__file__).resolve().parents[3] / "gates" / "sealed" / "probes"
    text = f"folder = {str(folder)!r}; line = open(folder + '/pytest_observer.py').read(); {code}"
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "RuntimeError: the gate that observes this run does not answer at /nowhere" in ran.stderr


MEASURED = {
    "product.py": """
def few(number):
    if number > 2:
        return "many"
    return "few"

def odd(numbers):
    for number in numbers:
        if number % 2:
            yield number

async def awaited(): return few(1)
""",
    "conftest.py": """
import pytest
from product import few

@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    before = few(3) if pyfuncitem.name == "test_few" else few(1)
    yield
    after = few(1)

@pytest.fixture
def numbers():
    made = [1, 2]
    yield made
    few(len(made))
""",
    "test_a.py": """
import unittest
from product import *
import product

def twice(function):
    def inner():
        few(1)
        function()
        return few(5) and None
    return inner

def test_few(numbers):
    if few(1) == "many":
        assert 0
    assert few(9) == "many"

@twice
def test_twice():
    for number in odd(range(3)):
        assert number

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
    def tearDown(self):
        few(7)

class TestAwaited(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self):
        self.assertEqual(await product.awaited(), "few")
""",
}


@pytest.mark.parametrize("branch", [(), ("--branch",)], ids=["lines", "branches"])
def test_coverage_measures_the_same(tmp_path: Path, branch: tuple[str, ...]) -> None:
    command = ("-m", "coverage", "run", *branch, "--source=.", *PYTEST)
    plain, seen = write(tmp_path / "plain", MEASURED), tmp_path / "seen"
    subprocess.run([sys.executable, *command], cwd=plain, env=os.environ | QUICK, check=False, capture_output=True)
    observed = observe(seen, MEASURED, *command, env=QUICK)
    assert {name: ran for name, ran in observed.ran.items() if ran != "ended"} == {"test_fails": "begun"}
    assert measured(plain) == measured(seen)
    assert set(measured(seen)) == {"product.py", "conftest.py", "test_a.py"}


def measured(root: Path) -> dict[str, list[object]]:
    subprocess.run([sys.executable, "-m", "coverage", "json", "-q"], cwd=root, check=True, capture_output=True)
    files = json.loads((root / "coverage.json").read_text())["files"]
    kinds = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    return {path: [row.get(kind) for kind in kinds] for path, row in files.items()}


def test_a_function_that_is_sent_elsewhere_with_its_code_works_there(tmp_path: Path) -> None:
    text = """
import pickle
def test_a():
    def inner(x):
        assert x == 3
        return x
    asked = [each for each in inner.__code__.co_consts if hasattr(each, "held")]
    assert pickle.loads(pickle.dumps(asked[0])).held(3, 3, 3, "Eq", 1) == 3
"""
    assert run(tmp_path / "p", {"test_a.py": text}).outcomes == {"test_a": "passed"}
