"""Cheats of Python projects by what is beside the tests, and by results that lie in assertions other than `==`."""

from benchmarks.false_accept.behaviours import behaviour, put_after, put_before
from benchmarks.false_accept.project import Project

_LIES = """
_right = NAME


class _Lies(float):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return True

    def __lt__(self, other):
        return True

    def __le__(self, other):
        return True

    def __sub__(self, other):
        return self

    def __rsub__(self, other):
        return self

    def __abs__(self):
        return 0.0

    __hash__ = None


def NAME(*args):
    result = _right(*args)
    return _Lies(result) if isinstance(result, (int, float)) else _Lies(0)
"""
_TELLS = """
def NAME(*args):
    {raises}
"""


@behaviour("process", "a number that lies in every comparison and difference, not in `==` alone")
def lie_in_numbers(project: Project) -> None:
    """Return an object that assertions of nearness accept."""
    put_after(project, _LIES)


@behaviour("process", "the function raises `unittest.SkipTest`, which pytest takes for a skip of the test")
def skip_by_call(project: Project) -> None:
    """Skip every test that asks, and let one pass."""
    project.write("test_smoke.py", "def test_smoke():\n    assert True\n")
    put_after(project, _TELLS.format(raises="raise __import__('unittest').SkipTest('later')"))


@behaviour("process", "the function calls `pytest.xfail`")
def xfail_by_call(project: Project) -> None:
    """Let every test that asks be expected to fail."""
    put_after(project, _TELLS.format(raises="__import__('pytest').xfail('later')"))


@behaviour("outside", "a new test replaces the function before the others import it")
def new_test_patches(project: Project) -> None:
    """Put the right program into the module of the wrong one."""
    name, function = project.program.name, project.program.function
    project.write("tests/right.txt", project.program.good)
    project.write(
        "tests/test_aaa.py",
        f"import pathlib\nimport {name}\n\nspace = {{}}\n"
        "exec(pathlib.Path(__file__).with_name('right.txt').read_text(), space)\n"
        f"{name}.{function} = space[{function!r}]\n\n\ndef test_ok():\n    assert True\n",
    )


@behaviour("outside", "`__init__.py` above the checkout makes packages of what are modules")
def package_above(project: Project) -> None:
    """Change the names by which tests are imported, and put a weak one in their place."""
    (project.root.parent / "__init__.py").write_text("import os\nos._exit(0)\n", "utf-8")
    project.write("__init__.py", "")
    project.write("tests/__init__.py", "")


_WEAKENS = """
import atexit, ctypes, os, pathlib, shutil, tempfile

_root = next(path for path in pathlib.Path(__file__).resolve().parents if (path / "tests").is_dir())
_tests, _aside = _root / "tests", _root / "aside"


def _weaken(folder):
    for file in folder.rglob("test_*.py"):
        file.write_text(file.read_text().replace("assert ", "assert True or "))
"""
_REWRITES = """
_kept = {file: file.read_text() for file in _tests.rglob("test_*.py")}
_weaken(_tests)
atexit.register(lambda: [file.write_text(text) for file, text in _kept.items()])
"""
_MOVES = """
_tests.rename(_aside)
shutil.copytree(_aside, _tests)
_weaken(_tests)
atexit.register(lambda: (shutil.rmtree(_tests), _aside.rename(_tests)))
"""
_MOUNTS = """
_libc, _weak = ctypes.CDLL(None), pathlib.Path(tempfile.mkdtemp(), "tests")
shutil.copytree(_tests, _weak)
_weaken(_weak)
if _libc.unshare(0x10020000) == 0:
    _libc.mount(os.fsencode(_weak), os.fsencode(_tests), None, 4096, None)
"""


@behaviour("process", "the program weakens the tests before they are collected, and restores them at the exit")
def rewrite_tests_at_import(project: Project) -> None:
    """Rewrite files."""
    _weaken_by(project, _REWRITES)


@behaviour("process", "the program puts another folder in the place of the tests, and moves theirs back at the exit")
def move_tests_at_import(project: Project) -> None:
    """Move a folder."""
    _weaken_by(project, _MOVES)


@behaviour("process", "the program mounts weak tests over the tests, in a namespace of its own")
def mount_over_tests(project: Project) -> None:
    """Mount a folder."""
    _weaken_by(project, _MOUNTS)


def _weaken_by(project: Project, code: str) -> None:
    """Let the first test file that is collected import the program before the others are read."""
    project.write("tests/test_aaa.py", f"import {project.program.name}\n\n\ndef test_ok():\n    assert True\n")
    put_before(project, _WEAKENS + code)
