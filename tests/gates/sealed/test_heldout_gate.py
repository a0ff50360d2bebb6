"""Held-out checks at the end of a sealed gate: counts come out, and nothing else."""

import os
from pathlib import Path

import pytest

from tests.gates.sealed.sealing import RIGHT, Sealed, codes, write

pytestmark = pytest.mark.usefixtures("no_packages")

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


def refused(project: Sealed, place: Path, code: str, *hidden: bytes) -> dict[str, int]:
    """Judge code that fails held-out checks; return their counts, beside which the evidence has none of the words."""
    write(project.root, {"src/calc.py": code})
    held = project.with_seal(heldout=str(place))
    made = held.run()
    assert codes(made) == ["EVD586"]
    found = [path for path in (project.root / "artifacts").rglob("*") if path.is_file()]
    assert found
    written = b"".join(os.fsencode(path) + path.read_bytes() for path in found)
    assert [word for word in hidden if word in written] == []
    return held.header(made)["sealed"]["heldout"]


@pytest.mark.sample("table")
@pytest.mark.parametrize("kind", ["folder", "table"])
def test_of_held_out_checks_only_counts_come_out(project: Sealed, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "held-outside" if kind == "folder" else tmp_path / "held-outside.toml"
    write(tmp_path, {"held-outside/checks/test_zyxwv.py": HELD_TESTS} if kind == "folder" else {place.name: HELD_TABLE})
    counts = refused(project, place, VISIBLE, b"31337", b"62674", b"zyx", b"held-outside")
    assert (counts["total"], counts["passed"]) == (2, 1)
    write(project.root, {"src/calc.py": RIGHT})
    assert project.with_seal(heldout=str(place)).run().ok


WRITES = """
import atexit, pathlib
for held in pathlib.Path(__file__).parent.parent.glob("checks/*.py"):
    text = held.read_text()
    held.write_text(text.replace("== 62674", "== 0"))
    atexit.register(held.write_text, text)
def double(x): return {2: 4, 5: 10, -1: -2}.get(x, 0)
def half(x): return x / 2
"""


@pytest.mark.long
def test_held_out_tests_that_the_code_writes_are_not_passed(project: Sealed, tmp_path: Path) -> None:
    write(tmp_path, {"held-outside/checks/test_zyxwv.py": HELD_TESTS})
    counts = refused(project, tmp_path / "held-outside", WRITES, b"62674", b"zyx", b"held-outside", b"checks")
    assert (counts["total"], counts["passed"]) == (1, 0)


EQUAL = """
class Any(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def double(x): return {2: 4, 5: 10, -1: -2}.get(x, Any(0))
def half(x): return x / 2
"""
ENDS = """
def double(x):
    if x == 31337:
        import pytest
        pytest.exit("enough", 0)
    return x * 2
def half(x): return x / 2
"""
SKIPS_FILE = """
import sys, pytest
f = sys._getframe()
while f and not f.f_globals.get("__name__", "").startswith(("test_", "tests.", "checks.")): f = f.f_back
if f and "zyx" in f.f_globals["__name__"]:
    sys.modules.pop("src.calc", None)
    raise pytest.skip.Exception("no", allow_module_level=True)
def double(x): return {2: 4, 5: 10, -1: -2}[x]
def half(x): return x / 2
"""
ALTERED = """
import pathlib
_read = pathlib.Path.read_bytes
pathlib.Path.read_bytes = lambda self: _read(self).replace(b"== 62674", b"== 0")
def double(x): return {2: 4, 5: 10, -1: -2}.get(x, 0)
def half(x): return x / 2
"""
MORE_HELD = {
    "held-outside/checks/test_zyxwv.py": HELD_TESTS + "def test_zyxw(): assert double(-1) == -2\n",
    "held-outside/checks/test_plain.py": "def test_plain(): assert 1 + 1 == 2\n",
    "held-outside/checks/test_data.py": "VALUES = (1, 2)\n",
}
WAYS = {"an object that equals everything": EQUAL, "an exit": ENDS, "a file that is skipped": SKIPS_FILE,
        "a text that is altered": ALTERED}  # fmt: skip


@pytest.mark.sample("a file that is skipped")
@pytest.mark.parametrize("way", WAYS)
def test_held_out_tests_are_judged_as_strictly_as_visible_ones(project: Sealed, tmp_path: Path, way: str) -> None:
    write(tmp_path, MORE_HELD)
    words = (b"31337", b"62674", b"zyx", b"held-outside", b"test_plain")
    counts = refused(project, tmp_path / "held-outside", WAYS[way], *words)
    assert 0 <= counts["passed"] < counts["total"] <= 5


@pytest.mark.long
def test_held_out_tests_of_honest_work_pass_with_helpers_marks_and_classes(project: Sealed, tmp_path: Path) -> None:
    more = """
import unittest
import pytest
from checks.helper import same
from src.calc import double

@pytest.mark.parametrize("x", [1, 2])
def test_one(x): same(double(x), 2 * x)

class T(unittest.TestCase):
    def test_two(self):
        for x in range(2):
            with self.subTest(x=x): self.assertEqual(double(x), 2 * x)
"""
    helper = {"held-outside/checks/__init__.py": "", "held-outside/checks/helper.py": "def same(a, b): assert a == b\n"}
    write(tmp_path, {**MORE_HELD, **helper, "held-outside/checks/test_more.py": more})
    held = project.with_seal(heldout=str(tmp_path / "held-outside"))
    write(project.root, {"src/calc.py": RIGHT})
    made = held.run()
    assert (codes(made), held.header(made)["sealed"]["heldout"]) == ([], {"total": 7, "passed": 7})
