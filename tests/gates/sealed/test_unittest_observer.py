"""unittest with the observer in it: outcomes, proof that tests ran, and code under test that attacks its runner."""

from pathlib import Path

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
WAYS = {"discovery": ("-m", "unittest"), "script": ("test_all.py",)}


def cases_of(observed: Observed) -> dict[str, dict[str, object]]:
    return {event["id"].rpartition(".")[2]: event for event in observed.of("case")}


@pytest.fixture(scope="module", params=WAYS)
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    return observe(tmp_path_factory.mktemp("all") / "p", FILES, *WAYS[request.param])


def test_each_outcome_is_reported_with_its_reason_and_proof(observed: Observed) -> None:
    cases = cases_of(observed)
    found = {name: (case["outcome"], case["ran"], case["message"]) for name, case in cases.items()}
    assert found == CASES, observed.output
    assert {name: case["when"] for name, case in cases.items() if case["when"]} == {
        "test_skip_body": "call", "test_skip_mark": "setup", "test_sub_skip": "call", "test_left": "setup",
    }  # fmt: skip
    assert {name: case["equals"] for name, case in cases.items() if case["equals"]} == {
        "test_equal": "line 15: an object of the class product.Everything is equal to everything"
    }
    assert {case["file"] for case in cases.values()} == {"test_all.py"}
    assert "_observer.py" not in observed.output


def test_a_session_is_told_from_its_beginning_to_its_end(observed: Observed) -> None:
    (begin,), (collected,) = observed.of("begin"), observed.of("collected")
    assert len(observed.connections) == 1
    assert begin["version"][0] == "3"
    assert {name.rpartition(".")[2] for name in collected["ids"]} == set(CASES)
    is_discovery = "unittest" in begin["argv"][0]
    assert [(each["file"], each["message"]) for each in observed.of("broken")] == [
        ("test_broken.py", "broken.py:2 SyntaxError: '(' was never closed")
    ][: 1 if is_discovery else 0]
    assert [(each["file"], each["message"]) for each in observed.of("skipped_file")] == [
        ("test_whole.py", "as a whole")
    ][: 1 if is_discovery else 0]
    assert (observed.session["status"], observed.session["changed"]) == (1, [])
    frozen = ["test_all.py", "test_broken.py"][: 2 if is_discovery else 1]
    assert [Path(path).name for path in observed.session["frozen"]] == frozen
    assert [Path(path).name for path in observed.session["roots"]] == ["p"]
    assert ["product", "product.py"] in [[name, Path(path).name] for name, path in observed.session["loaded"]]


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


def test_what_the_runner_is_kept_from_is_seen_and_what_was_replaced_is_named(tmp_path: Path) -> None:
    files = {"test_attacked.py": ATTACKED, "product.py": ATTACKS}
    observed = observe(tmp_path / "p", files, "-m", "unittest")
    assert observed.status == 0
    found = {name: (case["outcome"], case["message"]) for name, case in cases_of(observed).items()}
    assert found == {
        "test_fails": ("failed", "reported as passed, but its method ended with AssertionError: 1 != 2"),
        "test_in": ("passed", ""),
    }
    assert observed.session["changed"] == ["unittest.case.TestCase.assertIn", "unittest.case._Outcome"]


def test_only_what_is_asked_for_runs(tmp_path: Path) -> None:
    ids = ["test_all.TestAll.test_inherited", "test_all.TestAwaited.test_awaited"]
    observed = observe(tmp_path / "p", FILES, "-m", "unittest", "test_all", only=ids)
    assert (sorted(each["id"] for each in observed.of("case")), observed.session["status"]) == (ids, 0)


RUNS = """
import unittest, sys

class TestOne(unittest.TestCase):
    def test_one(self): ...

suite = unittest.defaultTestLoader.loadTestsFromTestCase
for _ in range(2):
    unittest.TextTestRunner().run(suite(TestOne))
assert not hasattr(unittest.TestCase.assertEqual, "__wrapped__")
assert "_callTestMethod" not in vars(TestOne)
"""


def test_each_run_of_a_process_is_a_session_and_the_runner_is_as_it_was_afterwards(tmp_path: Path) -> None:
    observed = observe(tmp_path / "p", {"run.py": RUNS}, "run.py")
    assert observed.status == 0, observed.output
    (connection,) = observed.connections
    assert [event["e"] for event in connection.events] == ["begin", "collected", "start", "case", "session"] * 2


def test_an_ignored_observer_does_nothing(tmp_path: Path) -> None:
    observed = observe(tmp_path / "p", {"run.py": RUNS}, "run.py", ignored=True)
    assert ([each.events for each in observed.connections], observed.status) == ([[]], 0), observed.output


def test_an_exit_of_the_product_leaves_no_session(tmp_path: Path) -> None:
    text = "import os, unittest\nclass A(unittest.TestCase):\n    def test_a(self): os._exit(0)\n"
    observed = observe(tmp_path / "p", {"test_a.py": text}, "-m", "unittest")
    assert ([event["id"] for event in observed.of("start")], observed.of("session")) == (["test_a.A.test_a"], [])


@pytest.mark.parametrize("options", [("-X", "dev", "-bb", "-W", "error")])
def test_nothing_is_warned_of(tmp_path: Path, options: tuple[str, ...]) -> None:
    text = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): self.assertEqual(b'a', b'a')\n"
    observed = observe(tmp_path / "p", {"test_a.py": text}, *options, "-m", "unittest")
    assert (observed.status, "Warning" in observed.output) == (0, False), observed.output
