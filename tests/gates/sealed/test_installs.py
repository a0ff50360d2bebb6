"""Installed projects behind a sealed gate: dependencies and build products never take the place of the work."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.keep import Place, record
from interlock.gates.sealed.settings import Seal
from tests.child import git
from tests.gates.sealed.sealing import WRONG, Sealed, codes, make, needs_namespaces, write
from tests.refusals import raises_code

pytestmark = pytest.mark.usefixtures("no_packages")

BUILD = "test -e build/out || (mkdir -p build && cp src/in build/out)\n"
"""What a build tool does: nothing where its product is there."""
BUILT = {
    ".gitignore": "artifacts/\nbuild/\nnode_modules/\n",
    "src/in": "wrong\n",
    "check.sh": "grep -q right build/out && test -e node_modules/dep\n",
    "make.sh": BUILD,
}


@pytest.fixture
def built(tmp_path: Path) -> Sealed:
    """Give a project whose check reads what a build makes of its source, and an installed dependency."""
    root = tmp_path / "project"
    write(root, {"node_modules/dep": "", "build/out": "wrong\n"})
    return make(root, BUILT, command=("sh", "check.sh"), prepare=(("sh", "make.sh"),), env={})


@pytest.fixture(params=["isolated", "none"])
def either_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try a test as this machine isolates, and without."""
    if request.param == "none":
        monkeypatch.setattr(sandbox, "maker", lambda: "none")


@pytest.mark.usefixtures("either_level")
def test_an_ignored_product_in_scope_is_no_part_of_the_work(built: Sealed) -> None:
    assert built.base
    write(built.root, {"build/out": "right\n"})
    assert "EVD584" in codes(built.run("**"))
    write(built.root, {"build/out": "wrong\n", "src/in": "right\n"})
    made = built.run("**")
    assert made.ok
    assert built.header(made)["sealed"]["held_back"] == []


def test_an_ignored_file_that_the_base_has_is_work_like_any_other(tmp_path: Path) -> None:
    files = {".gitignore": "artifacts/\n", "src/in": "wrong\n", "check.sh": "grep -q right src/in\n"}
    made = make(tmp_path / "project", files, command=("sh", "check.sh"), env={})
    assert made.base
    write(made.root, {".gitignore": "artifacts/\nsrc/\n", "src/in": "right\n"})
    assert made.run("**").ok


@pytest.mark.usefixtures("either_level")
def test_a_file_above_the_checkout_that_decides_a_gate_has_no_say(tmp_path: Path) -> None:
    write(tmp_path, {"a/pytest.ini": "[pytest]\n", "a/b/notes.py": ""})
    files = {"check.sh": "test -f ../conftest.py -o -f ../__init__.py\n"}
    made = make(tmp_path / "a/b/project", files, command=("sh", "check.sh"), env={})
    assert made.base
    write(tmp_path, {"a/b/notes.py": "x = 1\n"})
    assert codes(made.run("**")) == ["EVD584", "EVD592"]
    write(tmp_path, {"a/b/conftest.py": "", "a/b/__init__.py": ""})
    if sandbox.level() == "none":
        with pytest.raises(CollectorError) as caught:
            made.run("**")
        assert (caught.value.code, "b/__init__.py" in caught.value.message) == ("SEAL201", True)
    else:
        assert codes(made.run("**")) == ["EVD584", "EVD592"]
    write(tmp_path, {"a/b/conftest.py": None, "a/b/__init__.py": None, "a/pytest.ini": "[pytest]\naddopts = -k x\n"})
    with raises_code(CollectorError, "SEAL201", "a/pytest.ini was changed"):
        made.run("**")


@pytest.mark.parametrize("at_start", [True, False])
def test_what_the_checkout_around_ignores_later_does_not_change_what_the_base_is(
    tmp_path: Path, at_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = tmp_path / "outer"
    rules = {True: "out/\n", False: "nothing\n"}
    write(outer, {".gitignore": rules[at_start], "out/project/src/in": "wrong\n"})
    git(outer, "init", "-q", ".")
    root = outer / "out/project"
    write(root, {"check.sh": "grep -q right src/in\n"})
    made = Sealed(root, Seal(env={}), ("sh", "check.sh"))
    assert made.base.tests.run.exit_status == 1
    write(outer, {".gitignore": rules[not at_start]})
    write(root, {"check.sh": "true\n"})
    assert "EVD584" in codes(made.run("**"))
    write(root, {"src/in": "right\n"})
    assert made.run("**").ok


def test_without_namespaces_packages_outside_the_checkout_that_lead_into_it_are_refused(
    built: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "venv/lib/site-packages"
    write(packages, {"__editable__.calc.pth": f"{built.root}/src\n"})
    built.frozen = replace(built.frozen, kept={**built.frozen.kept, str(packages): record(Place(str(packages)))})
    monkeypatch.setattr(sandbox, "maker", lambda: "none")
    with raises_code(CollectorError, "SEAL301", "__editable__.calc.pth"):
        built.run()


# -- real tools, where they are installed ------------------------------------------------------------------------------

BACKEND = """
import base64, hashlib, os, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    files = {
        "calc.pth": os.path.abspath("src") + "\\n",
        "calc-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: calc\\nVersion: 1\\n",
        "calc-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "calc-1.dist-info/entry_points.txt": "[console_scripts]\\ncalc-double = calc:main\\n",
        "calc-1.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(os.path.join(folder, "calc-1-py3-none-any.whl"), "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return "calc-1-py3-none-any.whl"

def get_requires_for_build_editable(config_settings=None):
    return []

build_wheel = build_editable
"""
PYTHON: Mapping[str, str] = {
    ".gitignore": "artifacts/\n.venv/\n__pycache__/\n",
    "backend.py": BACKEND,
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "src/calc.py": WRONG + "\n\ndef main():\n    print(double(5))\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": """
import os, subprocess, sys, unittest
from calc import double
class TestCalc(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(5), 10)
    def test_script(self):
        script = os.path.join(os.path.dirname(sys.executable), "calc-double")
        self.assertEqual(subprocess.check_output([script]), b"10\\n")
""",
}
NODE: Mapping[str, str] = {
    ".gitignore": "artifacts/\nnode_modules/\n",
    "package.json": '{"name": "root", "private": true, "workspaces": ["packages/*"]}',
    "packages/a/package.json": '{"name": "a", "version": "1.0.0", "dependencies": {"b": "*"}}',
    "packages/b/package.json": '{"name": "b", "version": "1.0.0", "main": "src/index.js"}',
    "packages/b/src/index.js": "exports.double = x => x + 2\n",
    "packages/a/a.test.js": "const t = require('node:test'), a = require('node:assert')\n"
    "t('five', () => a.strictEqual(require('b').double(5), 10))\n",
}
GO: Mapping[str, str] = {
    ".gitignore": "artifacts/\nvendor/\n",
    "go.mod": "module example.org/p\n\ngo 1.19\n\nrequire example.org/dep v1.0.0\n",
    "src/calc.go": 'package calc\n\nimport "example.org/dep"\n\nfunc Double(x int) int { return x + dep.Two() }\n',
    "src/calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(5) != 10 '
    "{\n\t\tt.Fatal(Double(5))\n\t}\n}\n",
}
VENDOR: Mapping[str, str] = {
    "vendor/modules.txt": "# example.org/dep v1.0.0\n## explicit; go 1.19\nexample.org/dep\n",
    "vendor/example.org/dep/dep.go": "package dep\n\nfunc Two() int { return 2 }\n",
}


def tool(name: str) -> str:
    """Return the path of a program; skip where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(root: Path, *words: str) -> None:
    """Run a step of an installation."""
    subprocess.run(words, cwd=root, check=True, capture_output=True, timeout=120)


def pip_editable(root: Path) -> Sealed:
    made = make(root, PYTHON, command=(".venv/bin/python", "-m", "unittest"), env={})
    run(root, os.path.realpath(sys.executable), "-m", "venv", ".venv")
    run(root, ".venv/bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "-e", ".")
    return made


def npm_workspace(root: Path) -> Sealed:
    path = f"{Path(tool('node')).parent}:/usr/bin:/bin"
    made = make(root, NODE, command=("node", "--test", "packages/a/"), path=path, env={})
    run(root, tool("npm"), "install", "--offline", "--no-audit", "--no-fund")
    return made


def go_module(root: Path) -> Sealed:
    path = f"{Path(tool('go')).parent}:/usr/bin:/bin"
    made = make(root, GO, command=("go", "test", "./..."), path=path, keep=("vendor",), env={})
    write(root, VENDOR)
    return made


INSTALLS: Mapping[str, tuple[Callable[[Path], Sealed], str, str, str, Mapping[str, str], str]] = {
    # the project, its code, the fix, its test, a test that always passes, a dependency to plant
    "pip": (pip_editable, "src/calc.py", "x * 2", "tests/test_calc.py", {"tests/test_calc.py": ""},
            ".venv/lib/sitecustomize.py"),
    "npm": (npm_workspace, "packages/b/src/index.js", "x * 2", "packages/a/a.test.js",
            {"packages/a/a.test.js": "require('node:test')('five', () => {})\n"}, "node_modules/c/index.js"),
    "go": (go_module, "src/calc.go", "x * dep.Two()", "src/calc_test.go",
           {"src/calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestDouble(t *testing.T) {}\n'},
           "vendor/example.org/dep/more.go"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", INSTALLS)
def test_of_a_real_install_only_the_fix_passes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_namespaces()
    install, code, right, test, weak, planted = INSTALLS[kind]
    project = install(tmp_path / "project")
    del project.frozen  # the dependencies are there now
    source, tests = (project.root / code).read_text(), (project.root / test).read_text()
    assert project.base.tests.failing()
    assert project.base.tests.run.problem == ""
    write(project.root, weak)
    assert "EVD575" in codes(project.run("**"))
    write(project.root, {test: tests, code: source.replace("x + 2", right).replace("x + dep.Two()", right)})
    assert project.run("**").ok
    write(project.root, {planted: ""})
    with raises_code(CollectorError, "SEAL201"):
        project.run("**")
    (project.root / planted).unlink()
    monkeypatch.setattr(sandbox, "maker", lambda: "none")
    if kind == "go":  # nothing in a module leads back into the checkout
        assert project.run("**").ok
    else:
        with raises_code(CollectorError, "SEAL301"):
            project.run("**")
