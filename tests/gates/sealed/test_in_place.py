"""New files that are loaded in the place of others: by their names, and through the whole sealed gate."""

import sys
from pathlib import Path

import pytest

from interlock.gates.sealed.added_files import data_of_tests, displacing
from tests.gates.sealed.test_beside_tests import (
    CONFIG,
    NODE,
    PYTEST,
    RIGHT,
    UNITTEST,
    WRONG,
    Row,
    row,
    try_row,
)  # fmt: skip
from tests.table import each_row

BASE = (
    "src/checks.py", "src/part/rows.py", "src/whole/__init__.py", "src/whole/rows.py", "lib/check.js", "lib/rows.json",
    "lib/dir/index.js", "README", "lib/page.d.ts",
)  # fmt: skip
NAMES = {
    "src/checks/__init__.py": "src/checks.py",
    "src/checks.cpython-311-x86_64-linux-gnu.so": "src/checks.py",
    "src/checks.abi3.so": "src/checks.py",
    "src/checks.pyc": "",
    "src/checks/more.py": "",
    "src/part.py": "src/part/rows.py",
    "src/part/__init__.py": "",
    "src/part/more.py": "",
    "src/whole.py": "",
    "lib/check": "lib/check.js",
    "lib/check.mjs": "lib/check.js",
    "lib/check.json": "",
    "lib/check/index.js": "",
    "lib/rows.js": "lib/rows.json",
    "lib/rows.csv": "",
    "lib/dir.js": "lib/dir/index.js",
    "lib/dir.json": "lib/dir/index.js",
    "lib/dir/other.js": "",
    "lib/page.js": "",
    "README.md": "",
}


@each_row(("new", "other"), NAMES.items())
def test_a_new_file_that_is_loaded_in_the_place_of_another_is_known(new: str, other: str) -> None:
    assert displacing([new], BASE) == ({new: frozenset({other})} if other else {})


def test_a_folder_with_the_name_of_a_test_beside_it_belongs_to_that_test() -> None:
    files = ["src/test_cart.py", "src/cart_test/x.py", "lib/cart.test.js", "tests/test_a.py", "src/cart.py"]
    assert data_of_tests(files) == {"src/test_cart"}


CASE = (
    "import unittest\n{}from calc.arith import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n"
    "        self.assertEqual(add(2, 3), 5)\n"
)
EMPTY = "import unittest\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(1, 1)\n"
UNIT = {"calc/__init__.py": "", "calc/arith.py": WRONG, "calc/test_arith.py": CASE.format("")}
NAMED = (*UNITTEST, "calc.test_arith")
LOADS = """
import unittest

def load_tests(loader, tests, pattern):
    class T(unittest.TestCase):
        def test_add(self):
            self.assertEqual(1, 1)

    T.__module__, T.__qualname__ = "calc.test_arith", "T"
    return unittest.TestSuite([T("test_add")])
"""
SWAPS = """import sys
if 'calc.test_arith' in sys.modules:
    sys.modules['calc.test_arith'].T.test_add = lambda self: None
"""
MADE = {"gen.py": "import calc.table\n", "calc/table.py": ""}
STEP = {"prepare": ((sys.executable, "gen.py"),)}
CHECKS = "def check(a, b):\n    assert a == b\n"
USES = "from calc import add\nfrom checks.rows import check\n\n\ndef test_add():\n    check(add(2, 3), 5)\n"
PY = {"src/calc.py": WRONG, "tests/test_calc.py": USES, "pytest.ini": CONFIG, "src/checks/rows.py": CHECKS}
TEST = "from calc import add\n\n\ndef test_add({}):\n    assert add(2, 3) == 5\n"
SHOWS = """import subprocess, sys


def test_add():
    argv = [sys.executable, 'tests/show.py']
    assert subprocess.run(argv, env={'PYTHONPATH': '.'}, capture_output=True).stdout == b'5\\n'
"""
SHOW = "import statistics\nfrom src.calc import add\nprint(statistics.mean([add(2, 3)]))\n"
JS = {
    "package.json": "{}",
    "lib/calc.js": "exports.add = () => 0\n",
    "lib/check.js": "exports.check = require('node:assert').strictEqual\n",
    "test/a.test.js": "const { check } = require('../lib/check')\n"
    "require('node:test')('a', () => check(require('../lib/calc').add(2, 3), 5))\n",
}
ROWS: dict[str, Row] = {
    "a package in the place of a test": row(
        UNIT, {"calc/test_arith/__init__.py": EMPTY}, "EVD575", "EVD590", scope=("calc/**",), command=NAMED),
    "a package that a step makes in the place of a test": row(
        {**UNIT, **MADE}, {"calc/table.py": "import os\nos.mkdir('calc/test_arith')\n"
                           f"open('calc/test_arith/__init__.py', 'w').write({EMPTY!r})\n"},
        "EVD587", scope=("calc/**",), command=NAMED, seal=STEP),
    "a module of the library that a step makes": row(
        {"calc/__init__.py": "", "src/calc.py": WRONG, "tests/test_a.py": SHOWS, "tests/show.py": SHOW, **MADE},
        {"calc/table.py": "open('statistics.py', 'w').write('mean = lambda _: 5')\n"}, "EVD587", scope=("calc/**",),
        seal=STEP),
    "a module in the place of a folder": row(
        PY, {"src/checks.py": "import sys\nclass rows:\n    check = print\nsys.modules['checks.rows'] = rows\n"
             "__path__ = []\n"}, "EVD587", seal={"protect": ("src/checks/**",)}),
    "a script in the place of another": row(
        JS, {"lib/check": "exports.check = () => {}\n"}, "EVD587", scope=("lib/**",), command=NODE,
        seal={"protect": ("lib/check.js",)}),
    "tests of the package's own loading": row(
        UNIT, {"calc/__init__.py": LOADS}, "EVD580", scope=("calc/**",),
        command=(*UNITTEST, "discover", "-p", "test_*.py")),
    "a method of a test that is replaced while another test is imported": row(
        {**UNIT, "calc/late.py": "", "calc/test_late.py": CASE.format("import calc.late\n").replace("5", "add(2, 3)")},
        {"calc/late.py": SWAPS}, "EVD580", scope=("calc/**",), command=(*NAMED, "calc.test_late")),
    "a plugin of a variable": row(
        {"src/calc.py": WRONG, "pytest.ini": CONFIG, "src/plug.py": "import pytest\n\n\n@pytest.fixture\ndef check():\n"
         "    import calc\n    assert calc.add(2, 3) == 5\n", "tests/test_a.py": "def test_add(check):\n    pass\n"},
        {"src/plug.py": "import pytest\n\n\n@pytest.fixture\ndef check():\n    pass\n"}, "EVD575", "EVD590",
        seal={"env": {"PYTEST_ADDOPTS": "-p plug", "PYTHONPATH": "src"}}),
    "a file that an option of the command names": row(
        {"src/calc.py": WRONG, "conf/lines.txt": "a + b\n"}, {"conf/lines.txt": "a\n"}, "EVD584", "EVD590",
        "EVD592", scope=("conf/**", "src/**"), command=("grep", "-rqF", "--file=conf/lines.txt", "src")),
    "a file of the work that the command names": row(
        {"src/calc.py": RIGHT}, {"src/calc.py": WRONG}, "EVD592", "EVD590", "EVD594",
        command=("grep", "-q", "a + b", "src/calc.py")),
    # honest
    "a file of the work that the command names and that may change": row(
        {"src/calc.py": WRONG, "tests/test_a.py": TEST.format(""), "pytest.ini": CONFIG}, {"src/calc.py": RIGHT},
        command=(*PYTEST, "src/calc.py", "tests"), may_change=("src/calc.py",)),
    "a file of the product that an option of the command names": row(
        {"src/calc.py": WRONG, "tests/test_a.py": TEST.format(""), "pytest.ini": CONFIG}, {"src/calc.py": RIGHT},
        command=(*PYTEST, "--ignore=src/calc.py")),
    "the only file of tests is renamed": row(
        {"src/calc.py": WRONG, "tests/test_a.py": TEST.format(""), "pytest.ini": CONFIG},
        {"src/calc.py": RIGHT, "tests/test_a.py": None, "tests/test_calc.py": TEST.format("")},
        scope=("src/**", "tests/**"), may_change=("tests/test_a.py",)),
    "new tests with a conftest.py of their own": row(
        {"src/calc.py": WRONG, "tests/test_a.py": TEST.format(""), "pytest.ini": CONFIG, "conftest.py": ""},
        {"src/calc.py": RIGHT, "tests/b/test_b.py": TEST.format("ready"),
         "tests/b/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef ready():\n    pass\n"},
        scope=("src/**", "tests/**")),
    "a conftest.py below another that may change": row(
        {"src/calc.py": WRONG, "tests/test_a.py": TEST.format(""), "pytest.ini": CONFIG, "conftest.py": ""},
        {"src/calc.py": RIGHT, "tests/b/conftest.py": "", "tests/b/test_b.py": TEST.format("")},
        scope=("src/**", "tests/**"), may_change=("tests/b/**",)),
    "the forms of a test that unittest has": row(
        {**UNIT, "calc/test_arith.py": CASE.format("from unittest import mock\n")
         + "    @mock.patch('calc.arith.other', 1, create=True)\n    def test_patched(self):\n        add(1, 1)\n"
         "    def test_sub(self):\n        with self.subTest():\n            self.assertEqual(add(1, 1), 2)\n\n"
         "class More(T):\n    pass\n\nclass Waits(unittest.IsolatedAsyncioTestCase):\n"
         "    async def test_waits(self):\n        self.assertEqual(add(1, 1), 2)\n"},
        {"calc/arith.py": RIGHT}, scope=("calc/**",), command=NAMED),
}  # fmt: skip


@pytest.mark.alternate
@pytest.mark.usefixtures("no_packages")
@pytest.mark.sample("the only file of tests is renamed")
@pytest.mark.parametrize("name", ROWS)
def test_only_files_that_the_work_may_write_take_the_place_of_others(name: str, tmp_path: Path) -> None:
    try_row(ROWS[name], tmp_path / "p")
