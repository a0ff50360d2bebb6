"""One command in a sandbox: what it sees, what it can write, and what is left of it."""

import json
import os
import select
import sys
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from interlock.core.process import Ended
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.sandbox import Bind, Box
from tests.child import python
from tests.gates.sealed.sealing import needs_namespaces
from tests.serving import Quiet, running

BASE = os.path.realpath(sys.base_prefix)


def tried(
    program: str, box: Box | None, *, cwd: str = "/", seconds: float = 30.0, stdin: bytes = b""
) -> tuple[Ended, str]:
    """Run a program of Python, which is seen inside; return how it ended and what it printed."""
    output = bytearray()
    if box is not None:
        needs_namespaces()
        box = replace(box, binds=(*box.binds, Bind(BASE, BASE)))
    argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", program]
    env = {"PATH": "/usr/bin:/bin"}
    ended = sandbox.run(argv, box, cwd=cwd, env=env, timeout_seconds=seconds, output=output.extend, stdin=stdin)
    return ended, output.decode()


LOOK = """
import ctypes, json, os, socket
def written(path):
    try:
        with open(path, "w") as file: return file.write("x") == 1
    except OSError: return False
def reaches(port):
    with socket.socket() as client: return client.connect_ex(("127.0.0.1", port)) == 0
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
with socket.socket() as own:
    own.bind(("127.0.0.1", 0)); own.listen()
    print(json.dumps([
        [path for path in PATHS if written(path)], [sorted(os.listdir(path)) for path in LISTED], sorted(os.environ),
        any(int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")),
        any(ctypes.CDLL(None).unshare(flag) == 0 for flag in (0x20000, 0x10000000, 0x10020000)),
        ctypes.CDLL(None).mount(b"/tmp", b"/tmp", None, 4096, None) == 0,
        sum(name.isdigit() for name in os.listdir("/proc")) > 3, reaches(PORT),
        reaches(own.getsockname()[1]), os.getcwd(), open("a").read(), os.readlink("/link"),
    ]))
"""


@pytest.mark.parametrize("network", ["loopback", "host"])
def test_a_command_writes_what_is_writable_and_sees_what_is_named(tmp_path: Path, network: sandbox.Network) -> None:
    export, checkout, seen = (tmp_path / name for name in ("export", "checkout", "seen"))
    for folder in (export, checkout, seen / "hidden"):
        folder.mkdir(parents=True)
        for path in (folder / "a", tmp_path / "secret"):
            path.write_text(folder.name)
    name = f"new-of-{tmp_path.name}-{os.getpid()}"
    beside = [f"{tmp_path}/beside", f"/tmp/{name}", f"{Path.home()}/{name}"]
    paths = [f"{checkout}/new", *beside, f"{seen}/hidden/a", f"{seen}/a", "/etc/new", "/usr/new"]
    binds = (Bind(str(export), str(checkout), writable=True), Bind(str(seen), str(seen)), Bind("", f"{seen}/hidden"))
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Quiet)) as server:
        names = f"PATHS={paths!r}\nLISTED={[str(tmp_path), str(seen)]!r}\nPORT={server.server_port}\n"
        ended, text = tried(names + LOOK, Box(binds, {"/link": "/somewhere"}, network), cwd=str(checkout))
    assert ended.exit_status == 0, text
    written, listed, environment, *rest = json.loads(text)
    assert {*written} - {*beside} == {f"{checkout}/new", f"{seen}/hidden/a"}
    assert ([*listed[0]], listed[1], environment) == (["beside", "checkout", "seen"], ["hidden"], [*environment])
    assert {*environment} <= {"PATH", "PWD", "LC_CTYPE"}
    assert rest == [False] * 4 + [network == "host", True, str(checkout), "export", "/somewhere"]
    assert (Path(export, "new").read_text(), Path(seen, "hidden/a").read_text()) == ("x", "hidden")
    assert [path for path in (f"{checkout}/new", *beside) if Path(path).exists()] == []


LEAVE = """
import os, sys, time
ready, begun = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        held = os.open({fifo!r}, os.O_WRONLY)
        os.write(begun, b".")
        time.sleep(60)
    os._exit(0)
os.read(ready, 1)
{end}
"""


@pytest.mark.parametrize("end", ["sys.exit(3)", "time.sleep(60)"])
def test_nothing_is_left_running_and_no_open_pipe_awaited(tmp_path: Path, end: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    slow = "sleep" in end
    try:
        box = Box((Bind(str(tmp_path), str(tmp_path), writable=True),), {})
        ended, _ = tried(LEAVE.format(fifo=f"{tmp_path}/fifo", end=end), box, seconds=0.7 if slow else 30)
        assert select.select([reader], [], [], 10)[0], "a process still holds the pipe"
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)
    assert (ended.exit_status, ended.timed_out) == ((None, True) if slow else (3, False))


@pytest.mark.parametrize("box", [None, Box((), {}), Box((), {}, bare=True)], ids=["none", "closed", "bare"])
def test_status_signal_input_and_time_limit_are_distinguished(box: Box | None) -> None:
    ended, text = tried("import sys; print(sys.stdin.read()[::-1]); sys.exit(7)", box, stdin=b"abc" * 100_000)
    assert (ended.exit_status, len(text)) == (7, 300_001)
    assert tried("import os; os.kill(os.getpid(), 9)", box)[0].exit_status in (-9, 137)
    ended, text = tried("import time; print('begun', flush=True); time.sleep(60)", box, seconds=0.5)
    assert (ended.exit_status, ended.timed_out, text) == (None, True, "begun\n")


def test_a_private_folder_is_gone_with_whatever_a_test_left_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with sandbox.private_folder() as folder:
        (folder / "locked/in").mkdir(parents=True)
        (folder / "locked/in/x").touch()
        (folder / "locked").chmod(0)
    assert not folder.exists()
    monkeypatch.setenv("PATH", str(folder))
    assert sandbox.level.__wrapped__() == "none", "without bubblewrap"


def test_a_private_folder_of_a_killed_process_is_removed_by_the_next_one() -> None:
    program = (
        "import os, interlock.gates.sealed.sandbox as s\nwith s.private_folder() as f: print(f, flush=True); input()"
    )
    child = python(program)
    left = Path(child.line().strip())
    with sandbox.private_folder() as own:
        assert (left.exists(), own.exists()) == (True, True), "somebody works in it"
    child.kill()
    child.rest()
    assert left.exists()
    with sandbox.private_folder():
        assert not left.exists()
