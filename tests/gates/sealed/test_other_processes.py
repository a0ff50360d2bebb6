"""Cheats by a process that a test starts: it reaches for the process of the tests, their files, or what they load."""

from pathlib import Path

import pytest

from tests.gates.sealed.sealing import codes, make, write
from tests.gates.sealed.test_beside_tests import GO, NODE, UNITTEST, Row, row, try_row

pytestmark = pytest.mark.usefixtures("no_packages")

RUN = """import subprocess, sys, pathlib

def run(*words):
    return subprocess.run(['sh', 'src/cli.sh', *words], capture_output=True, text=True).stdout

"""
CLI = {"src/cli.sh": "echo no\n", "tests/test_cli.py": RUN + "def test_cli():\n    assert run() == 'right\\n'\n"}
UNIT_CLI = {
    "src/cli.sh": "echo no\n", "tests/__init__.py": "",
    "tests/test_cli.py": "import subprocess, unittest\n\nclass T(unittest.TestCase):\n    def test_cli(self):\n"
    "        self.assertEqual(subprocess.check_output(['sh', 'src/cli.sh']), b'right\\n')\n",
}  # fmt: skip
NODE_CLI = {
    "src/cli.sh": "echo no\n",
    "test/cli.test.js": "const { execFile } = require('node:child_process'), assert = require('node:assert')\n"
    "require('node:test')('cli', async () => {\n"
    "  const out = await new Promise(done => execFile('sh', ['src/cli.sh'], (_, out) => done(out)))\n"
    "  assert.strictEqual(out, 'right\\n')\n})\n",
}
GO_CLI = {
    "go.mod": "module example.org/p\n\ngo 1.19\n", "src/cli.sh": "echo no\n",
    "cli/cli_test.go": 'package cli\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestCli(t *testing.T) {\n'
    '\tout, _ := exec.Command("sh", "../src/cli.sh").Output()\n\tif string(out) != "right\\n" {\n'
    "\t\tt.Fatal(1)\n\t}\n}\n",
}  # fmt: skip
REACHES = """for name in /proc/[0-9]*; do
  pid=${name#/proc/}
  [ $pid = $$ ] || [ $pid = 1 ] && continue
  for file in mem environ; do (exec 3<$name/$file) 2>/dev/null && { echo right; exit; }; done
done
echo no
"""
"""It prints what is asked for where it can open the memory or the variables of a process of the tests."""
DEBUGS = """kill -USR1 $PPID
sleep 0.3
python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9229), 1)' 2>/dev/null && echo right || echo no
"""
GOLDEN = {
    **CLI,
    "tests/golden.bin": "golden\n",
    "tests/test_cli.py": RUN + "def test_cli():\n    assert run() == pathlib.Path('tests/golden.bin').read_text()\n",
}
NO_TIME = """python3 -c '
import fcntl, mmap, os, struct
golden = os.open("tests/golden.bin", os.O_RDWR)
scratch = os.open("scratch", os.O_RDWR | os.O_CREAT)
os.write(scratch, b"x" * 7)
for file in (golden, scratch): os.fsync(file)
try:
    fcntl.ioctl(scratch, 0xC028660F, bytearray(struct.pack("IIQQQQ", 0, golden, 0, 0, 1, 0)))
    for file in (golden, scratch): os.fsync(file)
    os.posix_fadvise(golden, 0, 0, os.POSIX_FADV_DONTNEED)
except OSError:
    mmap.mmap(golden, 0)[:] = bytes(7)
'
cat tests/golden.bin
"""
"""It zeroes data without a new time of change: by the blocks of ext4, or through a map on a file system in memory."""
KEEPS_OPEN = """python3 -c '
import array, mmap, os, socket
golden = os.open("tests/golden.bin", os.O_RDWR)
mmap.mmap(golden, 0)[:] = b"forged\\n"
one, two = socket.socketpair()
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (golden, one.fileno(), two.fileno())))])
'
cat tests/golden.bin
"""
CASES = {
    "src/cli.sh": "echo no\n", "tests/cases/three": "6", "tests/cases/four": "24",
    "tests/test_cli.py": RUN + "def test_first():\n    assert run() == 'no\\n'\n\ndef test_cases():\n"
    "    assert all(run(p.name) == p.read_text() for p in pathlib.Path('tests/cases').rglob('*'))\n",
}  # fmt: skip
VERIFY = {
    "src/cli.sh": "echo no\n", "tests/golden.txt": "right\n",
    "tests/verify.py": "import difflib, pathlib, sys\n"
    "want = pathlib.Path(__file__).with_name('golden.txt').read_text()\n"
    "sys.exit(any(difflib.unified_diff(want.splitlines(), sys.stdin.read().splitlines())))\n",
    "tests/test_cli.py": RUN + "def test_cli():\n    done = run()\n"
    "    verified = subprocess.run([sys.executable, 'tests/verify.py'], input=done, text=True)\n    run('again')\n"
    "    assert verified.returncode == 0\n",
}  # fmt: skip
PLANT = "echo 'def unified_diff(a, b): return []' > {0}\necho no\n"
CHECK = {
    "src/cli.sh": "echo no\n",
    "test/check.js": "const { execFileSync } = require('node:child_process'), assert = require('node:assert')\n"
    "exports.check = (word, want) => assert.strictEqual(execFileSync('sh', ['src/cli.sh', word]).toString(), want)\n",
    "test/a.test.js": "require('node:test')('first', () => require('./check').check('', 'no\\n'))\n",
    "test/b.test.js": "setTimeout(() => require('node:test')('b', () => require('./check').check('b', 'b\\n')), 700)\n",
}
HOOK = """import os, site
folder = site.getusersitepackages()
os.makedirs(folder)
open(folder + "/x.pth", "w").write("import builtins; builtins.forged = True\\n")
"""
STEP = {
    "src/step.py": "", "src/cli.sh": "echo no\n",
    "tests/__init__.py": "", "tests/test_cli.py": "import builtins, unittest\n\nclass T(unittest.TestCase):\n"
    "    def test_a(self):\n        self.assertTrue(hasattr(builtins, 'forged'))\n",
}  # fmt: skip
SYSTEM = "/usr/bin/python3"
GO_STEP = {
    "go.mod": GO_CLI["go.mod"], "src/step/main.go": "package main\n\nfunc main() {}\n",
    "calc/calc.go": "package calc\n\nfunc Answer() int { return 0 }\n",
    "calc/calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestAnswer(t *testing.T) {\n\tif Answer() != 42 {\n'
    "\t\tt.Fatal(1)\n\t}\n}\n",
}  # fmt: skip
SETS = 'package main\n\nimport "os/exec"\n\nfunc main() { exec.Command("go", "env", "-w", "GOFLAGS=-run=x").Run() }\n'
WRITES = RUN + "def test_cli():\n    open('tests/seen.txt', 'w').write(run())\n    assert run() == 'right\\n'\n"

ROWS: dict[str, Row] = {
    # the process of the tests
    "the memory of pytest": row(CLI, {"src/cli.sh": REACHES}, "EVD575"),
    "the memory of unittest": row(UNIT_CLI, {"src/cli.sh": REACHES}, "EVD575", command=UNITTEST),
    "the memory of node": row(NODE_CLI, {"src/cli.sh": REACHES}, "EVD575", command=NODE),
    "the memory of go": row(GO_CLI, {"src/cli.sh": REACHES}, "EVD575", command=GO),
    "the debugger of node": row(NODE_CLI, {"src/cli.sh": DEBUGS}, "EVD575", command=NODE),
    # files that are judged by
    "data that is written and has no new time": row(GOLDEN, {"src/cli.sh": NO_TIME}, "EVD588"),
    "data that is kept open for writing": row(GOLDEN, {"src/cli.sh": KEEPS_OPEN}, "EVD588"),
    "data that a step writes": row(
        {**GOLDEN, "src/step.sh": ""}, {"src/step.sh": NO_TIME, "src/cli.sh": "cat tests/golden.bin\n"}, "EVD588",
        seal={"prepare": (("sh", "-c", "sh src/$0.sh", "step"),)}),
    "a folder of data that nobody may look into": row(
        CASES, {"src/cli.sh": '[ "$1" ] || chmod 0 tests/cases\necho no\n'}, "EVD588"),
    # what they load
    "a module beside a program of the tests": row(VERIFY, {"src/cli.sh": PLANT.format("tests/difflib.py")}, "EVD588"),
    "a module that is taken away again": row(
        VERIFY, {"src/cli.sh": '[ "$1" ] && exec rm tests/difflib.py\n' + PLANT.format("tests/difflib.py")}, "EVD588"),
    "a package beside a program of the tests": row(
        VERIFY, {"src/cli.sh": "mkdir -p tests/difflib\n" + PLANT.format("tests/difflib/__init__.py")}, "EVD588"),
    "a file that node takes first": row(
        CHECK, {"src/cli.sh": "echo 'exports.check = () => {}' > test/check\necho no\n"}, "EVD588", command=NODE),
    "packages of node": row(
        CHECK, {"src/cli.sh": "mkdir -p test/node_modules/x\necho > test/node_modules/x/index.js\necho ${1:-no}\n"},
        "EVD588", command=NODE),
    "data beside the tests, honest": row({**CLI, "tests/test_cli.py": WRITES}, {"src/cli.sh": "echo right\n"}),
    "a module in a temporary folder, honest": row(
        CLI, {"src/cli.sh": "python3 -c 'import tempfile as t; t.NamedTemporaryFile(suffix=\".py\", dir=\"tests\")'\n"
              "echo right\n"}),
    # HOME
    "a hook of Python that a step leaves in HOME": row(
        STEP, {"src/step.py": HOOK}, "EVD575", command=(SYSTEM, "-m", "unittest"),
        seal={"prepare": ((SYSTEM, "-c", "exec(open('src/step.py').read())"),), "env": {}}),
    "settings of go that a step leaves in HOME": row(
        GO_STEP, {"src/step/main.go": SETS}, "EVD575", command=GO, seal={"prepare": (("go", "run", "./src/step"),)}),
}  # fmt: skip


@pytest.mark.alternate
@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_a_process_that_a_test_starts_does_not_pass_it(name: str, tmp_path: Path) -> None:
    try_row(ROWS[name], tmp_path / "p")


@pytest.mark.long
def test_what_was_written_without_a_time_is_not_there_at_the_next_gate(tmp_path: Path) -> None:
    project = make(tmp_path / "p", {".gitignore": "artifacts/\n", **GOLDEN})
    for text, found in ((NO_TIME, "EVD588"), ("printf '\\0\\0\\0\\0\\0\\0\\0'\n", "EVD575")):
        write(project.root, {"src/cli.sh": text})
        assert codes(project.run()) == [found]
