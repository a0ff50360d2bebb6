"""unittest with the observer in it: outcomes, proof that tests ran, and code under test that attacks its runner."""

from pathlib import Path
from typing import Any

import pytest

from tests.gates.sealed.observing import Observed, observe

TESTS = """
import io, sys, unittest
import product

class Base:
    def test_inherited(self): self.assertEqual(product.one(), 1)

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

product.attack(TestAll)

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
def one(): return 1

def boom():
    raise ValueError("boom")

class Everything:
    def __eq__(self, other): return True

def passes(self): ...

def attack(cls):
    cls.test_swapped.__code__ = passes.__code__
    cls.test_replaced = passes

def unwrapped(function):
    def inner(self): function(self)
    return inner
"""
FILES = {
    "test_all.py": TESTS,
    "product.py": PRODUCT,
    "test_broken.py": "import broken\n",
    "broken.py": "\ntable = (1,\n",
    "test_whole.py": "import unittest\nraise unittest.SkipTest('as a whole')\n",
}
CASES = {
    "test_inherited": ("passed", "ended", ""),
    "test_unseen": ("passed", "ended", ""),
    "test_fails": ("failed", "begun", "test_all.py:13 AssertionError: 1 != 2"),
    "test_product": ("error", "begun", "product.py:5 ValueError: boom"),
    "test_equal": ("passed", "ended", ""),
    "test_skip_body": ("skipped", "begun", "not here"),
    "test_skip_mark": ("skipped", "", "later"),
    "test_expected": ("xfailed", "begun", "test_all.py:20 AssertionError: known"),
    "test_unexpected": ("failed", "ended", "unexpected success"),
    "test_sub": ("failed", "ended", "test_all.py:25 AssertionError: 1 == 1"),
    "test_sub_skip": ("skipped", "ended", "a part"),
    "test_decorated": ("passed", "ended", ""),
    "test_nested": ("passed", "ended", ""),
    "test_swapped": ("passed", "", ""),
    "test_replaced": ("passed", "", ""),
    "test_one": ("error", "", "product.py:5 ValueError: boom"),
    "test_two": ("error", "", "product.py:5 ValueError: boom"),
    "test_left": ("skipped", "", "as a class"),
    "test_awaited": ("passed", "ended", ""),
    "test_awaited_fails": ("failed", "begun", "test_all.py:53 AssertionError: 1 != 2"),
}
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "discovery": (("-m", "unittest"), {}),
    "script": (("test_all.py",), {}),
    "unmounted": (("-m", "unittest"), {"unmounted": True}),
}


@pytest.fixture(scope="module", params=WAYS)
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    argv, spec = WAYS[request.param]
    return observe(tmp_path_factory.mktemp("all") / "p", FILES, *argv, **spec)


def test_each_outcome_is_reported_with_its_reason_and_proof(observed: Observed) -> None:
    cases = observed.cases
    assert {name: (case.outcome, case.ran, case.message) for name, case in cases.items()} == CASES, observed.output
    assert {name: case.when for name, case in cases.items() if case.when} == {
        "test_skip_body": "call", "test_skip_mark": "setup", "test_sub_skip": "call", "test_left": "setup",
    }  # fmt: skip
    assert {name: case.equals for name, case in cases.items() if case.equals} == {
        "test_equal": "line 15: an object of the class product.Everything is equal to everything"
    }
    assert {case.file for case in observed.run.cases} == {"test_all.py"}
    assert "_observer.py" not in observed.output


def test_the_run_is_known(observed: Observed) -> None:
    run, found = observed.run, "test_broken" in observed.output
    assert (run.runner, run.sessions, run.complete, run.changed, observed.status) == ("unittest", 1, True, (), 1)
    assert {name.rpartition(".")[2] for name in run.collected} == set(CASES)
    broken = (("test_broken.py", "broken.py:2 SyntaxError: '(' was never closed"),)
    assert (run.broken, run.skipped_files) == ((broken, (("test_whole.py", "as a whole"),)) if found else ((), ()))
    assert [Path(path).name for path in run.frozen] == (["test_all.py", "test_broken.py"] if found else ["test_all.py"])
    assert [Path(path).name for path in run.roots] == ["p"]
    assert ["product", "product.py"] in [[name, Path(path).name] for name, path in run.loaded]


ATTACKS = """
import contextlib, unittest
from unittest import case

class Outcome(case._Outcome):
    @contextlib.contextmanager
    def testPartExecutor(self, *args, **kwargs):
        with contextlib.suppress(BaseException):
            yield

def attack():
    case._Outcome = Outcome
    unittest.TestCase.assertIn = lambda *args: None
"""
ATTACKED = """
import unittest, product
product.attack()

class TestAll(unittest.TestCase):
    def test_fails(self): self.assertEqual(1, 2)
    def test_in(self): self.assertIn(1, [])
"""


def test_what_hides_a_failure_is_named_and_the_test_did_not_end(tmp_path: Path) -> None:
    observed = observe(tmp_path / "p", {"test_attacked.py": ATTACKED, "product.py": ATTACKS}, "-m", "unittest")
    assert (observed.status, observed.ran) == (0, {"test_fails": "begun", "test_in": "ended"})
    assert observed.run.changed == ("unittest.case.TestCase.assertIn", "unittest.case._Outcome")


def test_only_what_is_asked_for_runs(tmp_path: Path) -> None:
    ids = ("test_all.TestAll.test_inherited", "test_all.TestAwaited.test_awaited")
    observed = observe(tmp_path / "p", FILES, "-m", "unittest", "test_all", only=ids)
    assert (observed.run.collected, {case.id for case in observed.run.cases}) == (ids, {*ids})
    assert observed.run.passes


RUNS = """
import unittest, sys

class TestOne(unittest.TestCase):
    def test_one(self): ...

suite = unittest.defaultTestLoader.loadTestsFromTestCase
for _ in range(2):
    unittest.TextTestRunner().run(suite(TestOne))
assert sys.argv == ["run.py"]
"""


@pytest.mark.parametrize("is_ignored", [False, True])
def test_each_suite_of_a_process_is_observed_and_none_below_another_runner(tmp_path: Path, is_ignored: bool) -> None:
    observed = observe(tmp_path / "p", {"run.py": RUNS}, "run.py", is_ignored=is_ignored)
    assert observed.status == 0, observed.output
    assert (observed.found is None) == is_ignored
    assert is_ignored or (observed.outcomes, observed.run.complete) == ({"test_one": "passed"}, True)


def test_an_exit_of_the_product_leaves_no_session(tmp_path: Path) -> None:
    text = "import os, unittest\nclass A(unittest.TestCase):\n    def test_a(self): os._exit(0)\n"
    observed = observe(tmp_path / "p", {"test_a.py": text}, "-m", "unittest")
    assert (observed.run.running, observed.run.complete) == (("test_a.A.test_a",), False)


def test_nothing_is_warned_of(tmp_path: Path) -> None:
    text = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): self.assertEqual(b'a', b'a')\n"
    observed = observe(tmp_path / "p", {"test_a.py": text}, "-X", "dev", "-bb", "-W", "error", "-m", "unittest")
    assert (observed.status, "Warning" in observed.output) == (0, False), observed.output
