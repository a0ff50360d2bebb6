"""unittest and node with a probe: outcomes, canaries, and tricks; the seals of a stream."""

import shutil
from pathlib import Path

import pytest

from interlock.gates.sealed.runners.node import CANARIES, NodeRunner
from interlock.gates.sealed.runners.python import UNITTEST_CANARIES
from interlock.gates.sealed.runners.stream import read_events
from tests.gates.sealed.launching import PYTEST, UNITTEST, judged, start
from tests.gates.sealed.sealing import write

NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")
RUN_NODE = NodeRunner(NODE, ("--test",), {})

CASES = """
import unittest
from calc import add

class Adds(unittest.TestCase):
    def test_adds(self): self.assertEqual(add(1, 2), 3)
    def test_again(self): self.assertTrue(add(2, 2) == 4)
    @unittest.skip("later")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    def test_sub(self):
        for i in range(2):
            with self.subTest(i=i): self.assertEqual(add(i, 1), i + 1)

class Asks(unittest.IsolatedAsyncioTestCase):
    async def test_async(self): self.assertEqual(add(3, 0), 3)

class Unready(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no database")
    def test_never(self): pass
"""
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
UNITTEST_TRICKS = {
    "a result that records nothing": "import unittest\n"
    "unittest.TestResult.addFailure = unittest.TestResult.addSuccess\n"
    "unittest.TestCase._callTestMethod = lambda self, method: None\n",
    "an assertion that holds": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
    "unittest.TestCase.assertTrue = lambda *a: None\n",
    "an exit": "import os\nos._exit(0)\n",
    "equal to everything": "class E:\n    def __eq__(self, o): return True\ndef add(a, b): return E()\n",
}
NODE_TEST = """
const test = require('node:test')
const assert = require('node:assert')
const { add } = require('../calc.cjs')
test('adds', () => { assert.strictEqual(add(1, 2), 3) })
test.describe('more', () => {
  test.it('adds again', () => { assert.deepStrictEqual([add(2, 2)], [4]) })
  test.it('is skipped', { skip: true }, () => {})
})
"""
ESM_TEST = """
import test from 'node:test'
import assert from 'node:assert/strict'
await test('waits', async () => { assert.equal(1, 1) })
"""
NODE_TRICKS = {
    "a patched assert": "const a = require('node:assert'); a.strictEqual = a.deepStrictEqual = () => {}",
    "an exit": "process.exit(0)",
    "an exit later": "setImmediate(() => process.exit(0)); process.on('exit', () => { process.exitCode = 0 })",
    "a patched runner": "const t = require('node:test'); t.it = t.test = () => {}",
}


def test_unittest_is_watched_and_its_canaries_are_hidden(tmp_path: Path) -> None:
    files = {"calc.py": RIGHT, "test_calc.py": CASES, "test_broken.py": "import nothing_of_this_name\n"}
    ran = start(UNITTEST, write(tmp_path / "p", files))
    assert ran.outcomes == {
        "test_calc.Adds.test_adds": "passed",
        "test_calc.Adds.test_again": "passed",
        "test_calc.Adds.test_skip": "skipped",
        "test_calc.Adds.test_expected": "xfailed",
        "test_calc.Adds.test_sub": "passed",
        "test_calc.Asks.test_async": "passed",
        "test_calc.Unready.test_never": "skipped",
    }
    assert [path for path, _ in ran.run.broken] == ["test_broken.py"]
    assert (ran.run.judge, ran.run.canaries, ran.run.exit_status) == ("", len(UNITTEST_CANARIES), 1)
    assert "FAILED (errors=1, skipped=2, expected failures=1)" in ran.output


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("trick", UNITTEST_TRICKS)
def test_a_trick_does_not_pass_unittest(tmp_path: Path, trick: str) -> None:
    base = start(UNITTEST, write(tmp_path / "base", {"calc.py": WRONG, "test_calc.py": CASES}))
    now = start(UNITTEST, write(tmp_path / "p", {"calc.py": WRONG + UNITTEST_TRICKS[trick], "test_calc.py": CASES}))
    assert not judged(base.run, now.run).ok


@pytest.mark.long
@needs_node
def test_node_is_watched_and_its_canaries_are_hidden(tmp_path: Path) -> None:
    files = {"calc.cjs": "exports.add = (a, b) => a + b", "test/a.test.cjs": NODE_TEST, "test/b.test.mjs": ESM_TEST}
    ran = start(RUN_NODE, write(tmp_path / "p", files))
    assert ran.outcomes == {
        "test/a.test.cjs > adds": "passed",
        "test/a.test.cjs > more > adds again": "passed",
        "test/a.test.cjs > more > is skipped": "skipped",
        "test/b.test.mjs > waits": "passed",
    }
    assert (ran.run.judge, ran.run.canaries, ran.run.exit_status) == ("", 2 * len(CANARIES), 0)
    assert "fail 0" in ran.output
    own = start(NodeRunner(NODE, ("--test", "--test-reporter=tap"), {}), tmp_path / "p")
    assert (own.outcomes, own.run.canaries) == (ran.outcomes, 0)
    assert "TAP version" in own.output


@needs_node
@pytest.mark.sample(every=3)
@pytest.mark.parametrize("trick", NODE_TRICKS)
def test_a_trick_does_not_pass_node(tmp_path: Path, trick: str) -> None:
    wrong = "exports.add = (a, b) => a - b\n"
    base = start(RUN_NODE, write(tmp_path / "base", {"calc.cjs": wrong, "test/a.test.cjs": NODE_TEST}))
    assert base.run.exit_status == 1
    now = start(RUN_NODE, write(tmp_path / "p", {"calc.cjs": wrong + NODE_TRICKS[trick], "test/a.test.cjs": NODE_TEST}))
    assert not judged(base.run, now.run).ok


def test_a_line_that_the_probe_did_not_write_is_found_and_left_out(tmp_path: Path) -> None:
    ran = start(PYTEST, write(tmp_path / "p", {"test_a.py": "def test_a(): ...\n"}))
    key = b"another key of 32 bytes, or so..."
    assert read_events(ran.stream, key).events == []
    forged = ran.stream.replace(b'"passed"', b'"failed"', 1)
    assert read_events(forged, key).forged == forged.count(b"\n")
