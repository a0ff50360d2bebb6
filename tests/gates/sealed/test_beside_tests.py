"""Cheats by what is beside the tests, or by what a base cannot say of them: through the whole sealed gate."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.gates.sealed.sealing import codes, make, write

pytestmark = pytest.mark.usefixtures("no_packages")

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
UNITTEST = (sys.executable, "-m", "unittest")
NODE = ("node", "--test")
GO = ("go", "test", "./...")
IGNORE = "artifacts/\n__pycache__/\n"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
SKIPS = "import unittest\ndef add(a, b):\n    if a:\n        raise unittest.SkipTest('later')\n    return 0\n"
ADDS = """
from calc import add


def test_add():
    assert add(2, 3) == 5


def test_zero():
    assert add(0, 0) == 0
"""
CONFIG = "[pytest]\npythonpath = src\n"
PATCHES = "import calc\ncalc.add = lambda a, b: a + b\n\ndef test_ok():\n    assert True\n"
CALC = {"src/calc.py": WRONG, "tests/test_calc.py": ADDS, "pytest.ini": CONFIG}
UNIT = {
    "src/__init__.py": "",
    "src/calc.py": WRONG,
    "tests/__init__.py": "",
    "tests/test_calc.py": "import unittest\nfrom src.calc import add\n\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    "    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n",
}
LATE = "from calc import add\n\n\ndef test_late():\n    assert add(2, 3) == 5\n"
TWO = {**CALC, "tests/test_calc.py": "import calc\n\ndef test_a():\n    assert calc\n", "tests/test_late.py": LATE}
REWRITES = """import atexit, pathlib
late = pathlib.Path(__file__).parent / "{path}"
text = late.read_text()
late.write_text(text.replace("== 5", "== -1"))
{end}"""
RESTORES = "atexit.register(lambda: late.write_text(text))\n"
MAPS = """import atexit, mmap, pathlib
late = pathlib.Path(__file__).parent.parent / "tests/test_late.py"
with late.open("r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
at = mapped[:].index(b"== 5")
mapped[at:at + 4] = b"!= 5"
mapped.flush()
atexit.register(mapped.__setitem__, slice(at, at + 4), b"== 5")
"""
MOVES = """import atexit, pathlib, shutil
tests = pathlib.Path(__file__).parent.parent / "tests"
aside = tests.with_name("aside")
tests.rename(aside)
shutil.copytree(aside, tests)
late = tests / "test_late.py"
late.write_text(late.read_text().replace("== 5", "== -1"))
def back():
    shutil.rmtree(tests)
    aside.rename(tests)
atexit.register(back)
"""
MOUNTS = """import ctypes, os, pathlib
libc = ctypes.CDLL(None)
late = pathlib.Path(__file__).parent.parent / "tests/test_late.py"
pathlib.Path("/tmp/late.py").write_text(late.read_text().replace("== 5", "== -1"))
if libc.unshare(0x10020000) == 0:
    libc.mount(b"/tmp/late.py", os.fsencode(late), None, 4096, None)
"""
PLANTS = """import pathlib
pathlib.Path("tests/conftest.py").write_text("import calc\\ncalc.add = lambda a, b: a + b\\n")
"""
JS = {
    "package.json": '{"name": "x", "version": "1.0.0"}',
    "src/calc.js": "exports.add = (a, b) => a - b\n",
    "test/helper.js": "const assert = require('node:assert')\nexports.same = (a, b) => assert.strictEqual(a, b)\n",
    "test/calc.test.js": "const { test } = require('node:test')\nconst { same } = require('./helper')\n"
    "const { add } = require('../src/calc')\ntest('adds', () => { same(add(2, 3), 5) })\n",
}
SAME = "exports.same = () => {}\n"
GOLANG = {
    "go.mod": "module example.org/p\n\ngo 1.19\n",
    "calc/calc.go": "package calc\n\nvar add = func(a, b int) int { return a - b }\n",
    "calc/calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif add(2, 3) != 5 {\n'
    "\t\tt.Fatal(1)\n\t}\n}\n",
}


@dataclass(frozen=True)
class Row:
    """A project, what its worker does, and the codes of what is found.

    Args:
        base: Files of the base.
        work: Files that the worker writes; None removes one.
        codes: Empty for honest work, which passes.
        scope: Of the task.
        command: Of the gate.
        may_change: Of the task.
        seal: Keys of the gate.
        links: Symbolic links of the base: path to text.
    """

    base: Mapping[str, str]
    work: Mapping[str, str | None]
    codes: frozenset[str] = frozenset()
    scope: tuple[str, ...] = ("src/**",)
    command: tuple[str, ...] = PYTEST
    may_change: tuple[str, ...] = ()
    seal: Mapping[str, object] = field(default_factory=dict[str, object])
    links: Mapping[str, str] = field(default_factory=dict[str, str])


def row(base: Mapping[str, str], work: Mapping[str, str | None], *found: str, **more: object) -> Row:
    return Row(base, work, frozenset(found), **more)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


TDD = {**CALC, "src/calc.py": ""}
EMPTY_SET = """
import pytest
from calc import add, CASES

@pytest.mark.parametrize('case', CASES)
def test_add(case):
    assert add(*case[0]) == case[1]

def test_zero():
    assert add(0, 0) == 0
"""
NO_BODIES = """
import sys
f = sys._getframe()
while f and not f.f_globals.get('__name__', '').startswith('test_'): f = f.f_back
def add(a, b): return 0
def later(frame, event, arg):
    if frame is f and event == 'return':
        sys.setprofile(None)
        f.f_globals['test_add'].__code__ = (lambda: None).__code__
sys.setprofile(later)
"""
DELETES = """
import sys
def add(a, b):
    return 0
sys._getframe(0)
class Gone(dict): pass
f = sys._getframe()
while f and not f.f_globals.get('__name__', '').startswith('test_'): f = f.f_back
f.f_globals['__test__'] = True
f.f_globals['pytest_plugins'] = ()
import _pytest.python as p
old = p.PyCollector.istestfunction
p.PyCollector.istestfunction = lambda self, obj, name: name != 'test_add' and old(self, obj, name)
"""
RANDOM = """
import random
import pytest
from calc import add

@pytest.mark.parametrize('a', [random.randrange(10**6, 10**9) for _ in range(3)])
def test_add(a):
    assert add(a, 3) == a + 3

def test_zero():
    assert add(0, 0) == 0
"""
SUB_UNIT = """
import unittest
from calc import add

class T(unittest.TestCase):
    def test_add(self):
        for a in (0, 1, 2):
            with self.subTest(a=a):
                self.assertEqual(add(a, 3), a + 3)

def test_zero():
    assert add(0, 0) == 0
"""
SUB_PYTEST = """
from calc import add

def test_add(subtests):
    for a in (0, 1, 2):
        with subtests.test(a=a):
            assert add(a, 3) == a + 3

def test_zero():
    assert add(0, 0) == 0
"""
ALL_SKIP = SKIPS.replace("if a:", "if a or b:")
MEAN = {
    **CALC,
    "tests/test_calc.py": "import statistics\nfrom calc import add\n\ndef test_add():\n"
    "    assert statistics.mean([add(2, 3)]) == 5\n",
}
READS = {
    **CALC,
    "tests/test_calc.py": "import json, pathlib\nfrom calc import add\n\nHERE = pathlib.Path(__file__).parent\n"
    "FILE = HERE / 'cases.local.json'\n"
    "CASES = json.loads((FILE if FILE.exists() else HERE / 'cases.json').read_text())\n"
    "\ndef test_add():\n    for a, b, c in CASES:\n        assert add(a, b) == c\n",
    "tests/cases.json": "[[2, 3, 5]]",
}
HELPER = "def check(a, b):\n    assert a == b\n"
HELPED = "from calc import add\nfrom unit_tests.helpers import check\n\ndef test_add():\n    check(add(2, 3), 5)\n"
UNIT_TESTS = {
    "src/calc.py": WRONG, "unit_tests/__init__.py": "", "unit_tests/helpers.py": HELPER,
    "unit_tests/test_calc.py": HELPED, "pytest.ini": CONFIG.replace("src", "src ."),
}  # fmt: skip
PLUG = {
    **CALC,
    "pytest.ini": f"{CONFIG.replace('src', 'src .')}addopts = -p plug\n",
    "plug.py": "import pytest\n\n@pytest.fixture\ndef check():\n    def c(a, b):\n"
    "        assert a == b\n    return c\n",
    "tests/test_calc.py": "from calc import add\n\ndef test_add(check):\n    check(add(2, 3), 5)\n",
}
MADE = {
    ".gitignore": IGNORE + "src/gen.py\n",
    "src/calc.py": "from gen import add\n",
    "src/sign.txt": "-",
    "make.sh": "test -e src/gen.py || "
    "printf 'def add(a, b):\\n    return a %s b\\n' \"$(cat src/sign.txt)\" > src/gen.py\n",
    "tests/test_calc.py": ADDS,
    "pytest.ini": CONFIG,
}
ROWS: dict[str, Row] = {
    # a file that the base cannot collect
    "a broken file, honest": row(TDD, {"src/calc.py": RIGHT}),
    "a broken file, most tests skipped": row(TDD, {"src/calc.py": SKIPS}, "EVD578"),
    "a broken file, no parameters": row({**TDD, "tests/test_calc.py": EMPTY_SET},
                                        {"src/calc.py": "CASES = []\ndef add(a, b): return 0\n"}, "EVD578"),
    "a broken file, a body removed": row(TDD, {"src/calc.py": NO_BODIES}, "EVD580"),
    "a broken file, a test not collected": row(TDD, {"src/calc.py": DELETES}, "EVD576"),
    "a broken file of unittest, skipped": row({**UNIT, "src/calc.py": ""}, {"src/calc.py": SKIPS}, "EVD578",
                                              command=UNITTEST),
    "a broken file of node that skips by its own text, honest": row(
        {**JS, "src/calc.js": "throw new Error('later')\n", "test/calc.test.js": JS["test/calc.test.js"]
         + "test('off', { skip: true }, () => {})\n"},
        {"src/calc.js": JS["src/calc.js"].replace("-", "+")}, command=NODE),
    "a broken package of go, honest": row(
        {**GOLANG, "calc/calc.go": "package calc\n"}, {"calc/calc.go": GOLANG["calc/calc.go"].replace("-", "+")},
        scope=("calc/**",), command=GO),
    "a broken package of go, left at its start": row(
        {**GOLANG, "calc/calc.go": "package calc\n"},
        {"calc/calc.go": 'package calc\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\n'
         "func add(a, b int) int { return 0 }\n"}, "EVD573", "EVD583", scope=("calc/**",), command=GO),
    # ids that differ
    "random ids, honest": row({**CALC, "tests/test_calc.py": RANDOM}, {"src/calc.py": RIGHT}),
    "random ids, skipped": row({**CALC, "tests/test_calc.py": RANDOM}, {"src/calc.py": SKIPS}, "EVD578"),
    "random ids, expected to fail": row(
        {**CALC, "tests/test_calc.py": RANDOM},
        {"src/calc.py": SKIPS.replace("raise unittest.SkipTest", "import pytest; pytest.xfail")}, "EVD578"),
    # subtests
    "subtests of unittest skipped": row({**CALC, "tests/test_calc.py": SUB_UNIT}, {"src/calc.py": ALL_SKIP}, "EVD578"),
    "subtests of pytest skipped": row({**CALC, "tests/test_calc.py": SUB_PYTEST}, {"src/calc.py": ALL_SKIP}, "EVD578"),
    # what is new beside the tests
    "a new test patches the product": row(CALC, {"src/test_aaa.py": PATCHES}, "EVD575", "EVD590"),
    "a new test in the folder of tests patches": row(CALC, {"tests/test_aaa.py": PATCHES}, "EVD575", "EVD590",
                                                     scope=("src/**", "tests/**")),
    "a test that only collecting shows patches": row(
        {**CALC, "pytest.ini": CONFIG + "python_files = test_*.py aaa.py\n"}, {"src/aaa.py": PATCHES},
        "EVD575", "EVD590", command=(*PYTEST, "src", "tests")),
    "a new test of unittest patches": row(
        UNIT, {"src/testa.py": "import unittest\nimport src.calc as calc\ncalc.add = lambda a, b: a + b\n"
               "class A(unittest.TestCase):\n    def test_ok(self): pass\n"}, "EVD575", "EVD590", command=UNITTEST),
    "a new test of go patches": row(
        GOLANG, {"calc/a_test.go": "package calc\n\nfunc init() { add = func(a, b int) int { return a + b } }\n"},
        "EVD575", "EVD590", scope=("calc/**",), command=GO),
    "a file without ending beside the tests": row(JS, {"test/helper": SAME}, "EVD575", "EVD590",
                                                  scope=("src/**", "test/**"), command=NODE),
    "new data that a test prefers": row(READS, {"tests/cases.local.json": "[[2, 3, -1]]"}, "EVD575", "EVD590",
                                        scope=("src/**", "tests/**")),
    "a new test with a new helper and new data, honest": row(
        CALC, {"src/calc.py": RIGHT, "tests/helper.py": HELPER, "tests/one.txt": "1",
               "tests/test_new.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
               "from helper import check\nfrom calc import add\n\ndef test_new():\n"
               "    check(add(1, 0), int(pathlib.Path(__file__).with_name('one.txt').read_text()))\n"},
        scope=("src/**", "tests/**")),
    "a new test that fails": row(CALC, {"src/calc.py": RIGHT, "tests/test_new.py": "def test_new():\n    assert 0\n"},
                                 "EVD574", scope=("src/**", "tests/**")),
    # a module in the place of another
    "a product file hides a library": row(
        MEAN, {"src/statistics.py": "def mean(values): return 5\n"}, "EVD587"),
    "packages that are new in the scope": row(
        {**{name: text for name, text in JS.items() if not name.startswith("test/")},
         ".gitignore": "/node_modules\nartifacts/\n", "node_modules/chk/index.js": JS["test/helper.js"],
         "src/calc.test.js": JS["test/calc.test.js"].replace("./helper", "chk").replace("../src/calc", "./calc")},
        {"src/node_modules/chk/index.js": SAME}, "EVD575", "EVD590", command=NODE),
    # what supports tests by its name or by settings
    "a helper in a folder of tests by its words": row(
        UNIT_TESTS, {"unit_tests/helpers.py": "def check(a, b): pass\n"}, "EVD575", "EVD590", scope=("**",)),
    "a plugin that the settings name": row(
        PLUG, {"plug.py": PLUG["plug.py"].replace("assert a == b", "pass")}, "EVD575", "EVD590", scope=("**",)),
    "a script of the recipe": row(
        {"Makefile": "test: check\n\ncheck:\n\tsh ci/check.sh\n", "ci/check.sh": "grep -q right src/calc.py\n",
         "src/calc.py": WRONG},
        {"ci/check.sh": "exit 0\n"}, "EVD584", "EVD590", "EVD592", scope=("**",), command=("make", "test")),
    # what the tested code writes where it is judged
    "a test that is rewritten before it is collected": row(
        TWO, {"src/calc.py": REWRITES.format(path="../tests/test_late.py", end="") + WRONG}, "EVD588"),
    "a test that is rewritten, and restored at the exit": row(
        TWO, {"src/calc.py": REWRITES.format(path="../tests/test_late.py", end=RESTORES) + WRONG}, "EVD588"),
    "a folder of tests that is moved, and moved back at the exit": row(TWO, {"src/calc.py": MOVES + WRONG}, "EVD588"),
    "a test that is written through a map, and restored": row(TWO, {"src/calc.py": MAPS + WRONG}, "EVD588"),
    "a test that something is mounted over": row(TWO, {"src/calc.py": MOUNTS + WRONG}, "EVD575"),
    "a test of node that is rewritten": row(
        {**JS, "test/zlate.test.js": JS["test/calc.test.js"], "test/calc.test.js": "require('../src/calc')\n"},
        {"src/calc.js": "const fs = require('fs'), late = __dirname + '/../test/zlate.test.js'\n" + JS["src/calc.js"]
         + "fs.writeFileSync(late, fs.readFileSync(late, 'utf8').replace('same(add(2, 3), 5)', ''))\n"},
        "EVD588", command=NODE),
    "a conftest.py that a step plants": row(
        {**CALC, "src/made.py": ""}, {"src/made.py": PLANTS}, "EVD588",
        seal={"prepare": ((sys.executable, "-c", "import sys; sys.path.insert(0, 'src'); import made"),)}),
    "a test that writes beside itself, honest": row(
        {**CALC, "tests/test_calc.py": "import pathlib\npathlib.Path(__file__).with_name('seen.txt').write_text('1')\n"
         + ADDS, "tests/seen.txt": "0"}, {"src/calc.py": RIGHT}),
    # what was ignored
    "a product that is ignored no more": row(
        MADE, {".gitignore": IGNORE, "src/gen.py": RIGHT}, "EVD575", scope=("src/**", ".gitignore"),
        seal={"prepare": (("sh", "make.sh"),)}),
    "an ignored folder with a repository in it": row(
        {**MADE, ".gitignore": IGNORE + "src/gen/\n", "make.sh": MADE["make.sh"].replace("gen.py", "gen/__init__.py")
         .replace("printf", "mkdir -p src/gen && printf")},
        {"src/gen/.git": "", "src/gen/__init__.py": RIGHT}, "EVD575", seal={"prepare": (("sh", "make.sh"),)}),
    "what a build makes of honest work": row(MADE, {"src/sign.txt": "+"}, seal={"prepare": (("sh", "make.sh"),)}),
}  # fmt: skip


@pytest.mark.alternate
@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_what_is_beside_the_tests_does_not_pass_them(name: str, tmp_path: Path) -> None:
    try_row(ROWS[name], tmp_path / "p")


def try_row(found: Row, root: Path) -> None:
    """Make the project of a row, do what its worker does, and judge it."""
    program = Path(found.command[0]).name
    if shutil.which(program) is None and not Path(found.command[0]).is_file():
        pytest.skip(f"{program} is not installed")
    path = f"{Path(shutil.which(program) or '/usr/bin/x').parent}:/usr/local/bin:/usr/bin:/bin"
    for link, target in found.links.items():
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(target)
    project = make(root, {".gitignore": IGNORE, **found.base}, command=found.command, path=path, **found.seal)
    assert project.base.tests.run.problem == ""
    write(project.root, found.work)
    made = project.run(*found.scope, may_change=found.may_change)
    assert (set(codes(made)), made.ok) == (found.codes, not found.codes), [each.message for each in made.findings]
