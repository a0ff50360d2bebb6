"""What a sealed gate sees outside of the checkout: what was recorded when the run began, and nothing else."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from interlock.gates.errors import CollectorError
from interlock.gates.sealed import dependencies, sandbox
from interlock.gates.sealed.preflight import check_base
from tests.gates.sealed.sealing import COMMAND, FILES, LEAN, OWN, RIGHT, WRONG, Sealed, codes, make, write
from tests.gates.sealed.test_installs import tool
from tests.refusals import raises_code

pytestmark = [
    pytest.mark.usefixtures("no_packages"),
    pytest.mark.skipif(sandbox.level() == "none", reason="no namespaces on this machine"),
]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Give a folder in the HOME of this user, which is no private folder of the sandbox anyway."""
    where = pwd.getpwuid(os.getuid()).pw_dir
    if not os.access(where, os.W_OK) or sandbox.is_below(where, (*OWN, *sandbox.PRIVATE)):
        pytest.skip("this user has no HOME of its own")
    with tempfile.TemporaryDirectory(dir=where, prefix=".interlock-test-") as name:
        monkeypatch.setenv("HOME", name)
        yield Path(os.path.realpath(name))


def planted(project: Sealed, home: Path, held: ExitStack) -> None:
    (home / ".fix.py").write_text(RIGHT)
    write(project.root, {"src/calc.py": f"exec(open({str(home / '.fix.py')!r}).read())\n"})


def link_to_home(project: Sealed, home: Path, held: ExitStack) -> None:
    (home / "fix.py").write_text(RIGHT)
    (project.root / "src/calc.py").unlink()
    (project.root / "src/calc.py").symlink_to(home / "fix.py")


def beside(project: Sealed, home: Path, held: ExitStack) -> None:
    write(project.root.parent, {"fix.py": RIGHT})
    write(project.root, {"src/calc.py": "exec(open('../fix.py').read())\n"})


def above(project: Sealed, home: Path, held: ExitStack) -> None:
    write(project.root.parent, {"conftest.py": "import src.calc as calc\ncalc.double = lambda x: x * 2\n"})
    write(project.root, {"src/calc.py": WRONG + "\n"})


def left_behind(project: Sealed, home: Path, held: ExitStack) -> None:
    """Answer from a process of the machine, over a socket with a path and one without."""
    answering = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for server, name in zip(answering, (f"{home}/s", "\0interlock-test"), strict=True):
        server.bind(name)
        server.listen()
    code = f"""
import socket
def double(x):
    for name in ({f"{home}/s"!r}, "\\0interlock-test"):
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(name)
                return x * 2
        except OSError: pass
    return x + 2
def half(x): return x / 2
"""
    write(project.root, {"src/calc.py": code})
    held.callback(lambda: [server.close() for server in answering])


def pipe(project: Sealed, home: Path, held: ExitStack) -> None:
    os.mkfifo(home / "pipe")
    held.callback(os.close, os.open(home / "pipe", os.O_RDONLY | os.O_NONBLOCK))
    code = f"import os\nos.write(os.open({str(home / 'pipe')!r}, os.O_WRONLY | os.O_NONBLOCK), b'x')\n"
    write(project.root, {"src/calc.py": code + RIGHT})


LONG = pytest.mark.long
REAL = dependencies.writable_system


@pytest.mark.parametrize(
    "cheat", [planted, *(pytest.param(each, marks=LONG) for each in (left_behind, link_to_home, beside, above, pipe))]
)
def test_nothing_that_was_put_outside_the_checkout_helps(
    maker: str, home: Path, cheat: Callable[[Sealed, Path, ExitStack], None]
) -> None:
    project = make(home / "work/project")
    assert project.base.tests.failing()
    with ExitStack() as held:
        cheat(project, home, held)
        made = project.run()
    assert codes(made)
    assert not {*codes(made)} - {"EVD573", "EVD574", "EVD575", "EVD582"}


# -- what is recorded is seen, and must stay as it was -----------------------------------------------------------------


def environment(root: Path, *, python: str = sys.executable, **files: str) -> str:
    """Make a virtual environment in which the packages of these tests are found; return its Python."""
    subprocess.run([os.path.realpath(python), "-m", "venv", "--without-pip", str(root)], check=True)
    (packages,) = root.glob("lib/python*/site-packages")
    (own,) = (name for name in sys.path if name.endswith("site-packages"))
    write(packages, {"own.pth": f"{own}\n", **{name.replace("__", "."): text for name, text in files.items()}})
    return str(root / "bin/python")


def sibling(home: Path) -> Sealed:
    write(home, {"kit/kit.py": "def check(a, b):\n    assert a == b\n", "kit/.git/HEAD": "x"})
    python = environment(home / "p/.venv", kit__pth=f"{home}/kit\n")
    tests = "from kit import check\nfrom src.calc import double\ndef test_double():\n    check(double(5), 10)\n"
    return make(home / "p", {**FILES, "tests/test_calc.py": tests}, command=(python, *COMMAND[1:]))


def link_in_the_base(home: Path) -> Sealed:
    write(home, {"shared/cases.json": "[[5, 10]]"})
    (home / "p/tests").mkdir(parents=True)
    (home / "p/tests/cases.json").symlink_to("../../shared/cases.json")
    tests = (
        "import json, pathlib\nfrom src.calc import double\ndef test_double():\n    for a, b in "
        "json.loads((pathlib.Path(__file__).parent / 'cases.json').read_text()):\n        assert double(a) == b\n"
    )
    return make(home / "p", {**FILES, "tests/test_calc.py": tests})


def variable(home: Path) -> Sealed:
    write(home, {"lib/kit.py": "expected = 10\n"})
    tests = "import kit\nfrom src.calc import double\ndef test_double():\n    assert double(5) == kit.expected\n"
    return make(home / "p", {**FILES, "tests/test_calc.py": tests}, env={**LEAN, "PYTHONPATH": "../lib"})


def kept(home: Path) -> Sealed:
    write(home, {"data/cases.txt": "10"})
    tests = (
        f"from src.calc import double\ndef test_double():\n    assert double(5) == int(open('{home}/data/cases.txt')"
        ".read())\n"
    )
    return make(home / "p", {**FILES, "tests/test_calc.py": tests}, keep=("~/data",))


def program(home: Path) -> Sealed:
    write(home, {"apps/judge/run": "#!/bin/sh\ngrep -q 'x [*] 2' src/calc.py\n"})
    (home / "apps/judge/run").chmod(0o755)
    (home / "bin").mkdir()
    (home / "bin/judge").symlink_to("../apps/judge/run")
    return make(
        home / "p", {**FILES, "check.sh": "judge\n"}, command=("sh", "check.sh"), path=f"{home}/bin:/usr/bin:/bin"
    )


def linked_package(home: Path) -> Sealed:
    node = tool("node")
    write(home, {"deps/chk/index.js": "module.exports = (a, b) => require('node:assert').strictEqual(a, b)\n"})
    files = {
        ".gitignore": "node_modules/\nartifacts/\n", "package.json": "{}",
        "src/calc.js": "exports.double = x => x + 2\n", "test/calc.test.js": "const chk = require('chk')\n"
        "require('node:test')('five', () => chk(require('../src/calc.js').double(5), 10))\n",
    }  # fmt: skip
    (home / "p/node_modules").mkdir(parents=True)
    (home / "p/node_modules/chk").symlink_to("../../deps/chk")
    return make(
        home / "p", files, command=("node", "--test", "test/"), path=f"{Path(node).parent}:/usr/bin:/bin", env={}
    )


RECORDED: Mapping[str, tuple[Callable[[Path], Sealed], str, str]] = {
    # the project, the recorded file, and what a cheat makes of it
    "an editable install beside the checkout": (sibling, "kit/kit.py", "def check(a, b): pass\n"),
    "a link of the base": (link_in_the_base, "shared/cases.json", "[]"),
    "PYTHONPATH": (variable, "lib/kit.py", "expected = 7\n"),
    "a path in keep": (kept, "data/cases.txt", "7"),
    "a linked program": (program, "apps/judge/run", "#!/bin/sh\nexit 0\n"),
    "a linked package": (linked_package, "deps/chk/index.js", "module.exports = () => {}\n"),
}


@pytest.mark.alternate
@pytest.mark.long
@pytest.mark.parametrize("kind", RECORDED)
def test_what_tests_need_outside_the_checkout_is_seen_and_must_stay_as_it_was(home: Path, kind: str) -> None:
    install, file, cheat = RECORDED[kind]
    project = install(home)
    check = check_base(project.case)
    assert check.faults == ()
    if project.case.runner.name != "exit":
        assert len(check.tests.failing()) == 1
    code = "src/calc.js" if (project.root / "src/calc.js").exists() else "src/calc.py"
    source = (project.root / code).read_text()
    write(project.root, {code: source.replace("x + 2", "x * 2")})
    made = project.run()
    assert made.ok, made.findings
    was = (home / file).read_text()
    write(project.root, {code: source})
    write(home, {file: cheat})
    with raises_code(CollectorError, "SEAL201", str(home / file)):
        project.run()
    write(home, {file: was})
    assert not project.run().ok


@pytest.mark.long
def test_an_interpreter_and_what_it_is_linked_to_must_stay_as_they_were(home: Path) -> None:
    real = os.path.realpath(sys.executable)
    (home / "py/bin").mkdir(parents=True)
    shutil.copy(real, home / "py/bin/python3")
    (home / "py/lib").symlink_to(f"{os.path.realpath(sys.base_prefix)}/lib")
    environment(home / "p/.venv")
    python = home / "p/.venv/bin/python"
    python.unlink()
    python.symlink_to(home / "py/bin/python3")
    project = make(home / "p", command=(str(python), *COMMAND[1:]))
    assert project.base.tests.failing()
    (home / "py/bin/python3").write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    with pytest.raises(CollectorError) as caught:
        project.run()
    assert caught.value.code in ("SEAL201", "SEAL202")


def test_a_folder_of_path_that_comes_later_is_not_seen(home: Path) -> None:
    files = {**FILES, "check.sh": "grep -q 'x [*] 2' src/calc.py\n"}
    project = make(home / "p", files, command=("sh", "check.sh"), path=f"{home}/late:/usr/bin:/bin")
    assert project.base
    write(home, {"late/grep": "#!/bin/sh\nexit 0\n"})
    (home / "late/grep").chmod(0o755)
    assert not project.run().ok


@pytest.mark.long
def test_a_packages_folder_above_the_checkout_that_comes_later_is_not_seen(home: Path) -> None:
    node = tool("node")
    files = {
        "package.json": "{}", "src/calc.js": "let d = x => x + 2\ntry { d = require('fix') } catch {}\nexports.d = d\n",
        "test/calc.test.js": "const a = require('node:assert')\n"
        "require('node:test')('five', () => a.strictEqual(require('../src/calc.js').d(5), 10))\n",
    }  # fmt: skip
    project = make(home / "p", files, command=("node", "--test", "test/"), path=f"{Path(node).parent}:/usr/bin", env={})
    assert project.base.tests.failing()
    write(home, {"node_modules/fix/index.js": "module.exports = x => x * 2\n"})
    assert codes(project.run()) == ["EVD575"]


@pytest.mark.long
def test_bytecode_that_came_since_the_start_is_not_seen(home: Path) -> None:
    python = environment(home / "p/.venv")
    project = make(home / "p", command=(python, *COMMAND[1:]))
    (packages,) = (home / "p/.venv").glob("lib/python*/site-packages")
    assert project.base.tests.failing()
    write(packages, {"__pycache__/own.cpython-1.pyc": RIGHT})
    name = str(packages / "__pycache__/own.cpython-1.pyc")
    write(project.root, {"src/calc.py": f"exec(open({name!r}).read())\n"})
    assert not project.run().ok
    (packages / "__pycache__/own.py").write_text(RIGHT)
    with raises_code(CollectorError, "SEAL201"):
        project.run()


POISON = """
import atexit, importlib.util, os, py_compile, sys, tempfile, _pytest.python as victim
def poison():
    with open(victim.__file__) as file: text = file.read()
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text + "\\nimport os; os.write(2, b'POISONED')\\n")
        file.flush()
        made = py_compile.compile(file.name)
    with open(made, "rb") as file: data = bytearray(file.read())
    stat = os.stat(victim.__file__)
    data[8:16] = int(stat.st_mtime).to_bytes(4, "little") + (stat.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    with open(importlib.util.cache_from_source(victim.__file__), "wb") as file: file.write(data)
atexit.register(poison)
"""


@pytest.mark.long
def test_bytecode_that_tested_code_wrote_is_not_read_by_a_later_gate(home: Path) -> None:
    project = make(home / "p", {**FILES, "src/calc.py": POISON + WRONG})
    assert project.base.bytecode, "dependencies are compiled"
    write(project.root, {"src/calc.py": RIGHT})
    made = project.run()
    assert made.ok
    assert "POISONED" not in project.log(made)


@pytest.mark.long
def test_of_held_out_checks_neither_the_table_nor_its_cases_are_seen(home: Path) -> None:
    table = 'function = "src/calc.py:double"\ncases = "rows.jsonl"\n'
    write(home, {"data/checks/c.toml": table, "data/checks/rows.jsonl": "[[31337], 62674]\n", "data/x": "x"})
    project = make(home / "p", keep=("~/data",), heldout="../data/checks/c.toml")
    assert project.base
    code = f"import os\nprint('SEEN', os.path.exists('{home}/data/x'), os.listdir('{home}/data/checks'))\n"
    assert "SEEN True []" in project.printed(code)


@pytest.mark.long
def test_a_file_outside_that_is_not_kept_is_named_with_the_key(home: Path) -> None:
    write(home, {"data/cases.txt": "10"})
    tests = f"def test_data():\n    assert open('{home}/data/cases.txt').read() == '10'\n"
    project = make(home / "p", {**FILES, "tests/test_calc.py": tests})
    (fault,) = check_base(project.case).faults
    assert (fault.field, json.dumps(f"{home}/data/cases.txt") in fault.fix) == ("keep", True)


GIT = """
import pathlib, subprocess
def test_the_top_is_found():
    here = pathlib.Path(__file__).resolve()
    assert any((folder / ".git").exists() for folder in here.parents)
def test_files_are_listed():
    assert "pytest.ini" in subprocess.check_output(["git", "ls-files", "-co"], text=True)
"""


@pytest.mark.long
def test_the_top_is_found_by_an_empty_git_folder_and_a_step_makes_a_repository(home: Path) -> None:
    project = make(home / "p", {**FILES, "tests/test_calc.py": GIT})
    (fault,) = check_base(project.case).faults
    assert (fault.message.partition("::")[2].partition(" ")[0], fault.field) == ("test_files_are_listed", "prepare")
    again = make(
        home / "q", {**FILES, "tests/test_calc.py": GIT}, prepare=(("git", "init", "-q"), ("git", "add", "-A"))
    )
    assert check_base(again.case).faults == ()


def test_what_this_user_may_write_in_the_distribution_is_searched_for_changes(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    began = (tmp_path / "old").stat().st_ctime_ns
    with dependencies.searching((str(tmp_path),), began) as found:
        assert found() == []
    write(tmp_path, {"lib/fix.py": RIGHT, "lib/__pycache__/fix.cpython-311.pyc": ""})
    with dependencies.searching((str(tmp_path),), began) as found:
        assert found() == [f"{tmp_path}/lib/fix.py"]


@pytest.mark.long
def test_a_gate_of_a_user_who_may_write_searches_and_finds_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "writable_system", REAL)
    project = make(home / "p", FILES)
    assert bool(project.case.frozen.system) == os.access("/usr", os.W_OK)
    write(project.root, {"src/calc.py": RIGHT})
    assert project.run().ok


def test_a_program_that_a_recipe_calls_by_its_path_is_seen_and_one_in_a_script_is_named(home: Path) -> None:
    write(home, {"tools/judge": "#!/bin/sh\ngrep -q 'x [*] 2' src/calc.py\n"})
    (home / "tools/judge").chmod(0o755)
    made = make(home / "p", {**FILES, "Makefile": f"test:\n\t{home}/tools/judge\n"}, command=("make", "test"))
    assert check_base(made.case).faults == ()
    write(made.root, {"src/calc.py": RIGHT})
    assert made.run().ok
    other = make(home / "q", {**FILES, "check.sh": f"{home}/tools/judge\n"}, command=("sh", "check.sh"))
    (fault,) = check_base(other.case).faults
    assert (fault.field, f"{home}/tools/judge" in fault.fix) == ("keep", True)
