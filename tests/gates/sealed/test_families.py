"""Shapes of projects in which honest work was refused once, or a cheat passed: in each a fix passes and no cheat.

The cheats stand for the family, not for themselves: a script that starts the runner, a name that something imports by
itself, a test's own helper.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.gates.sealed.sealing import FILES, PATH, RIGHT, WRONG, kinds, needs_namespaces, project

CODE = "src/calc.py"
UNIT = """
import unittest
from {module} import double

class TestCalc(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(5), 10)
"""
START = "import sys, pytest\n{}sys.exit(pytest.main(['-q']))\n"
PATCH = "import src.calc\nsrc.calc.double = lambda x: x * 2\n"
MANAGE = """
import sys
import app.models, site_settings
import unittest
unittest.main(module=None, argv=["manage.py", "app.tests"])
"""
TWO = ".PHONY: test\ntest:\n\t.venv/bin/pytest -q tests/test_calc.py\n\t.venv/bin/pytest -q tests/test_more.py\n"
COMPILES = ".PHONY: test\ntest:\n\t.venv/bin/python -m compileall -q src\n\t.venv/bin/pytest -q\n"
NODE = """
const { test } = require('node:test')
test('doubles', () => require('node:assert').strictEqual(require('../index.js').double(5), 10))
"""
EQUAL = "require('./test-equal.js')"
COVERED = (".venv/bin/coverage", "run", "-m", "pytest")
EXIT = "import os; os._exit(0)\n"
ONE = "from src.calc import half\n\n\ndef test_half():\n    assert half(2) == 1\n"


@dataclass(frozen=True)
class Shape:
    """One shape: the files of the base and the command of the gate, work that passes, and work that is refused."""

    files: dict[str, str]
    fix: dict[str, str | None]
    cheat: dict[str, str | None]
    kinds: list[str] = field(default_factory=lambda: ["still_failing"])
    command: tuple[str, ...] = (".venv/bin/pytest", "-q")


SHAPES = {
    "a script starts pytest": Shape(
        {**FILES, "run_tests.py": START.format("")},
        {CODE: RIGHT},
        {"run_tests.py": START.format(PATCH)},
        command=(".venv/bin/python", "run_tests.py"),
    ),
    "applications with tests in them, started by a script": Shape(
        {
            "app/__init__.py": "",
            "app/models.py": WRONG,
            "app/tests.py": UNIT.format(module="app.models"),
            "site_settings.py": "",
            "manage.py": MANAGE,
        },
        {"app/models.py": RIGHT, "app/more.py": "x = 1\n"},
        {"manage.py": MANAGE + "\n", "app/tests.py": ""},
        command=(".venv/bin/python", "manage.py"),
    ),
    "a recipe of two runners, of which the first fails on the base": Shape(
        {**FILES, "Makefile": TWO, "tests/test_more.py": ONE},
        {CODE: RIGHT},
        {CODE: RIGHT.replace("/ 2", "/ 1")},
        kinds=["failed"],
        command=("make", "test"),
    ),
    "a recipe that compiles": Shape(
        {**FILES, "Makefile": COMPILES}, {CODE: RIGHT}, {"Makefile": "test:\n\ttrue\n"}, command=("make", "test")
    ),
    "a module that becomes a package": Shape(
        {"calc.py": WRONG, "tests/test_calc.py": UNIT.format(module="calc"), "pytest.ini": FILES["pytest.ini"]},
        {"calc.py": None, "calc/__init__.py": "from calc.core import double\n", "calc/core.py": RIGHT},
        {"apport_python_hook.py": "import os\nos._exit(0)\n"},
    ),
    "a module of Node beside others": Shape(
        {"index.js": "exports.double = x => x + 2\n", "test/index.test.js": NODE, "package.json": "{}"},
        {"index.js": "exports.double = require('./times.js')(2)\n", "times.js": "module.exports = n => x => x * n\n"},
        {"preload.js": "process.exit(0)\n", ".noderc.js": "process.exit(0)\n"},
        command=("node", "--test"),
    ),
    "a helper beside a test of Node, in the root": Shape(
        {
            "index.js": "exports.double = x => x + 2\n",
            "test-equal.js": "module.exports = require('node:assert').strictEqual\n",
            "index.test.js": NODE.replace("../", "./").replace("require('node:assert').strictEqual", EQUAL),
            "package.json": "{}",
        },
        {"index.js": "exports.double = x => x * 2\n"},
        {"test-equal.js": "module.exports = () => {}\n"},
        command=("node", "--test", "index.test.js"),
    ),
    "workers": Shape(FILES, {CODE: RIGHT}, {CODE: EXIT}, ["incomplete"], (".venv/bin/pytest", "-n", "2")),
    "coverage": Shape(FILES, {CODE: RIGHT}, {CODE: EXIT}, ["incomplete"], COVERED),
}


@pytest.mark.sample("a script starts pytest", "a recipe that compiles")
@pytest.mark.parametrize("name", SHAPES)
def test_in_each_shape_of_a_project_a_fix_passes_and_a_cheat_does_not(tmp_path: Path, name: str) -> None:
    needs_namespaces()
    shape = SHAPES[name]
    if not shape.command[0].startswith(".venv/") and shutil.which(shape.command[0], path=PATH) is None:
        pytest.skip(f"{shape.command[0]} is not installed")
    made = project(tmp_path / "p", shape.files, *shape.command)
    assert (kinds(made.judge(shape.fix)), kinds(made.judge(shape.cheat))) == ([], shape.kinds)


def test_programs_beside_that_of_the_gate_are_found_first(tmp_path: Path) -> None:
    needs_namespaces()
    test = "import shutil\n\ndef test_it():\n    assert shutil.which('coverage').endswith('.venv/bin/coverage')\n"
    made = project(tmp_path / "p", {**FILES, "tests/test_path.py": test})
    assert "tests/test_path.py::test_it" not in made.check.tests.failing()
