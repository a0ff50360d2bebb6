"""Cheats that let a test run apart from what its file has: its text, its code, its place, its data, its modules."""

from pathlib import Path

import pytest

from interlock.gates.sealed.gate import _merged  # pyright: ignore[reportPrivateUsage]
from interlock.gates.sealed.outcomes import TestRun
from tests.gates.sealed.test_beside_tests import CALC, CONFIG, RIGHT, TWO, UNIT, UNITTEST, WRONG, Row, row, try_row

pytestmark = pytest.mark.usefixtures("no_packages")

READS = """import pathlib
_read = pathlib.Path.read_bytes
pathlib.Path.read_bytes = lambda self: _read(self).replace(b"== 5", b"== -1")
"""
LOADS = """from importlib.machinery import SourceFileLoader
_get = SourceFileLoader.get_data
SourceFileLoader.get_data = lambda self, path: _get(self, path).replace(b"(2, 3), 5)", b"(2, 3), -1)")
"""
FIVE, PASSES = 'b"(2, 3), 5)", b"(2, 3), -1)"', 'b"assert a == b", b"pass"'
FIRST_ZERO = """from calc import add


def test_first():
    assert add(0, 0) == 0


def test_second():
    assert add(2, 3) == 5
"""
CODE = """import sys
def add(a, b):
    module = sys.modules.get("{module}")
    function = module and {function}
    if function and function.__code__.co_consts:
        changed = tuple(-1 if each == 5 else each for each in function.__code__.co_consts)
        function.__code__ = function.__code__.replace(co_consts=changed)
    return a - b
"""
HELPED = (
    "from calc import add\n\n\ndef expected():\n    return 5\n\n\ndef test_add():\n    assert add(2, 3) == expected()\n"
)
CASES = {
    **CALC,
    "tests/test_calc.py": "import pathlib\nfrom calc import add\n\n\ndef test_add():\n"
    "    assert add(2, 3) == int(pathlib.Path('cases/sum.txt').read_text())\n",
    "cases/sum.txt": "5",
}
GOES = "import os\nos.chdir(os.path.dirname(__file__))\n"
COPIES = """import os, pathlib, tempfile
there = pathlib.Path(tempfile.mkdtemp())
(there / "cases").mkdir()
(there / "cases/sum.txt").write_text("-1")
os.chdir(there)
"""
MOVES = """import os
import pytest
from calc import add


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_there(there):
    assert add(2, 3) == 5
    os.mkdir("x")


def test_left(tmp_path):
    assert add(0, 3) == 3
    os.chdir(tmp_path)


def test_later():
    assert add(2, 2) == 4
    os.chdir(os.path.dirname(__file__))


def test_last():
    assert add(2, 1) == 3
"""
BY_NAME = {
    **CALC,
    "src/checks.py": "X = 1\n",
    "tests/checks.py": "def check(a, b):\n    assert a == b\n",
    "tests/test_calc.py": "from calc import add\nfrom checks import check\n\n\n"
    "def test_add():\n    check(add(2, 3), 5)\n",
}
FIRST = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n" + WRONG
CHILD = {
    **CALC,
    "pytest.ini": "[pytest]\n",
    "tests/verify.py": "import difflib\nfrom calc import add\n"
    "raise SystemExit(bool([*difflib.ndiff('5', str(add(2, 3)))][1:]))\n",
    "tests/test_calc.py": "import subprocess, sys\n\n\ndef test_add():\n"
    "    assert subprocess.run([sys.executable, 'tests/verify.py']).returncode == 0\n",
}
DATA = {
    **CALC,
    "src/samples/sum.txt": "5",
    "tests/test_calc.py": CASES["tests/test_calc.py"].replace("cases/", "tests/data/"),
}
LED = {"tests/data": "../samples", "samples": "src/samples"}
NAMED = "src/test_calc/sum.txt"

ROWS: dict[str, Row] = {
    # the text that is compiled
    "a text that pytest reads altered": row(TWO, {"src/calc.py": READS + WRONG}, "EVD589"),
    "a text that the loader reads altered": row(
        {**UNIT, "tests/test_a.py": "import src.calc\n"}, {"src/calc.py": LOADS + WRONG}, "EVD589", command=UNITTEST),
    "a helper that the loader reads altered": row(
        BY_NAME, {"src/calc.py": LOADS.replace(FIVE, PASSES) + WRONG}, "EVD589"),
    # the code that runs
    "the code of a test that was replaced": row(
        {**CALC, "tests/test_calc.py": FIRST_ZERO},
        {"src/calc.py": CODE.format(module="test_calc", function="module.test_second")}, "EVD589"),
    "the code of a test of unittest that was replaced": row(
        {**UNIT, "tests/test_calc.py": UNIT["tests/test_calc.py"].replace("test_zero", "test_a")},
        {"src/calc.py": CODE.format(module="tests.test_calc", function="module.T.test_add")}, "EVD589",
        command=UNITTEST),
    "the code of a helper in the module of a test": row(
        {**CALC, "tests/test_calc.py": HELPED},
        {"src/calc.py": CODE.format(module="test_calc", function="module.expected")}, "EVD589"),
    # the working directory
    "a directory of the scope": row(
        CASES, {"src/calc.py": GOES + WRONG, "src/cases/sum.txt": "-1", "src/cases/x.py": ""}, "EVD589"),
    "a directory that is made outside": row(CASES, {"src/calc.py": COPIES + WRONG}, "EVD589"),
    "tests that change the directory, honest": row({**CALC, "tests/test_calc.py": MOVES}, {"src/calc.py": RIGHT}),
    "a test file that changes the directory and could not be imported, honest": row(
        {**CALC, "src/calc.py": "", "tests/test_calc.py": "from calc import add\nimport os, pathlib\n"
         "os.chdir(pathlib.Path(__file__).parent)\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"},
        {"src/calc.py": RIGHT}),
    # modules of the same name
    "a file of the base that is imported in place of a helper": row(
        BY_NAME, {"src/calc.py": FIRST, "src/checks.py": "def check(a, b):\n    pass\n"}, "EVD587"),
    "a file of the base beside a helper of its name, honest": row(
        BY_NAME, {"src/calc.py": RIGHT, "src/checks.py": "X = 2\n"}),
    "a new file that hides a library from processes": row(
        CHILD, {"src/difflib.py": "def ndiff(a, b):\n    return []\n"}, "EVD587", seal={"env": {"PYTHONPATH": "src"}}),
    "a new file in a package with the name of a library, honest": row(
        {**CALC, "src/pack/__init__.py": ""}, {"src/calc.py": RIGHT, "src/pack/difflib.py": "X = 1\n"},
        seal={"env": {"PYTHONPATH": "src"}}),
    # what links lead to
    "data that a link leads to": row(DATA, {"src/calc.py": WRONG, "src/samples/sum.txt": "-1"}, "EVD575", "EVD590",
                                     links=LED),
    "new data where a link leads": row(
        {**DATA, "tests/test_calc.py": DATA["tests/test_calc.py"].replace("'tests/data/sum.txt'",
         "max(pathlib.Path('tests/data').iterdir())")}, {"src/samples/zzz.txt": "-1"}, "EVD575", "EVD590", links=LED),
    "a link from the tests to the product, honest": row(
        {**CALC, "src/names.txt": "x"}, {"src/calc.py": RIGHT, "src/names.txt": "y"},
        links={"tests/product": "../src"}),
    "data of a folder of tests that is named after a package": row(
        {"pytest.ini": CONFIG, "src/calc/__init__.py": WRONG, NAMED: "5",
         "tests/test_calc.py": CASES["tests/test_calc.py"].replace("cases/sum.txt", NAMED)},
        {NAMED: "-1"}, "EVD575", "EVD590"),
}  # fmt: skip


@pytest.mark.alternate
@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_a_test_runs_as_its_file_has_it(name: str, tmp_path: Path) -> None:
    try_row(ROWS[name], tmp_path / "p")


def test_the_texts_that_another_try_compiled_count_too() -> None:
    first, again = (TestRun("pytest", sources=(("tests/test_a.py", text),)) for text in ("1", "2"))
    assert _merged(first, again).sources == (*first.sources, *again.sources)
