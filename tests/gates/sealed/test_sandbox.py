"""One command in an enclosure: what it sees, what it can write, and what is left of it."""

import json
import os
import select
import sys
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock.core.process import Channel, Ended
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.sandbox import Bind, Enclosure, Maker, Pipes, run
from tests.gates.sealed.sealing import needs_namespaces
from tests.serving import Quiet, running

PYTHON = str(Path(sys.executable).resolve())
PREFIX = Bind(os.path.realpath(sys.base_prefix), os.path.realpath(sys.base_prefix))


@dataclass
class Seen:
    """What came of a command."""

    ended: Ended
    output: bytearray = field(default_factory=bytearray)

    @property
    def data(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.output)


def tried(program: str, enclosure: Enclosure | None, *, cwd: str = "/", seconds: float = 30.0, **pipes: Any) -> Seen:
    """Run a program of Python, which is seen inside."""
    output = bytearray()
    if enclosure is not None:
        enclosure = replace(enclosure, binds=(*enclosure.binds, PREFIX))
    ended = run(
        [PYTHON, "-I", "-S", "-c", program], enclosure, cwd=cwd, env={"PATH": "/usr/bin:/bin"},
        timeout_seconds=seconds, pipes=Pipes(output.extend, **pipes),
    )  # fmt: skip
    return Seen(ended, output)


LOOK = """
import ctypes, json, os, sys
def attempt(path):
    try:
        with open(path, "w") as file: file.write("x")
    except OSError as error: return error.strerror
    return "written"
def shown(path):
    if os.path.isdir(path): return sorted(os.listdir(path))
    try: return open(path).read()
    except OSError: return ""
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
print(json.dumps({
    "write": {path: attempt(path) for path in PATHS},
    "tmp": sorted(os.listdir("/tmp")),
    "hidden": [shown(path) for path in HIDDEN],
    "capabilities": {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")},
    "setuid": status["NoNewPrivs"].strip(),
    "namespaces": [flag for flag in (0x20000, 0x10000000, 0x10020000) if ctypes.CDLL(None).unshare(flag) == 0],
    "mounts": ctypes.CDLL(None).mount(b"/tmp", b"/tmp", None, 4096, None) == 0,
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
    "devices": sorted(set(os.listdir("/dev")) & {"sda", "kvm", "mem", "kmsg", "fuse"}),
    "read": open(READ).read(), "cwd": os.getcwd(), "environment": sorted(os.environ),
}))
"""


def test_only_what_is_writable_is_written_and_nothing_hidden_is_seen(maker: Maker, tmp_path: Path) -> None:
    export, checkout, seen_folder = tmp_path / "export", tmp_path / "checkout", tmp_path / "seen"
    secret = seen_folder / "secret"
    kept = checkout / "kept"
    for folder in (export, kept, secret):
        folder.mkdir(parents=True)
    (export / "kept").mkdir()
    for path, text in ((checkout / "a", "checkout"), (export / "a", "export"), (secret / "a", "secret"),
                       (kept / "a", "kept"), (seen_folder / "key", "secret")):  # fmt: skip
        path.write_text(text)
    home = Path.home() / ".profile-of-nobody"
    beside = f"/tmp/new-of-{tmp_path.name}-{os.getpid()}"
    paths = [f"{checkout}/new", beside, f"{kept}/a", "/etc/new", f"{home}", "/usr/new", f"{tmp_path}/beside"]
    hidden = [str(secret), str(seen_folder / "key"), str(tmp_path)]
    program = f"PATHS={paths!r}; HIDDEN={hidden!r}; READ={str(checkout / 'a')!r}\n{LOOK}"
    binds = (Bind(str(export), str(checkout), writable=True), Bind(str(kept), str(kept)),
             Bind(str(seen_folder), str(seen_folder)))  # fmt: skip
    seen = tried(program, Enclosure(binds, (str(secret), str(seen_folder / "key"))), cwd=str(checkout))
    assert seen.ended.exit_status == 0, seen.output.decode()
    found = seen.data
    written = {path for path, result in found["write"].items() if result == "written"}
    assert written - {f"{tmp_path}/beside"} == {f"{checkout}/new", beside}
    assert (export / "new").read_text() == "x"
    assert not (checkout / "new").exists()
    assert not Path(beside).exists()
    assert not (tmp_path / "beside").exists()
    assert not home.exists()
    assert (found["read"], found["cwd"]) == ("export", str(checkout))
    assert found["hidden"] == [[], "", ["beside", "checkout", "seen"]]
    assert found["capabilities"] == dict.fromkeys(("CapEff", "CapPrm", "CapInh", "CapAmb"), 0)
    assert (found["setuid"], found["namespaces"], found["mounts"]) == ("1", [], False)
    assert found["processes"] <= 3
    assert found["devices"] == []
    assert set(found["environment"]) <= {"PATH", "PWD", "LC_CTYPE"}


@pytest.fixture(scope="module")
def server() -> Generator[int]:
    """Give the port of a server of the machine."""
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Quiet)) as serving:
        yield serving.server_port


NETWORK = """
import json, socket
def reaches(host, port):
    with socket.socket() as client:
        client.settimeout(2)
        try: client.connect((host, port))
        except OSError: return False
        return True
own = False
try:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0)); listening.listen()
        own = reaches("127.0.0.1", listening.getsockname()[1])
except OSError: pass
print(json.dumps([own, reaches("127.0.0.1", PORT)]))
"""


@pytest.mark.parametrize(
    ("network", "own", "machine"), [("none", False, False), ("loopback", True, False), ("host", True, True)]
)
def test_the_network_is_what_was_asked_for(maker: Maker, server: int, network: Any, own: bool, machine: bool) -> None:
    if network == "none" and not sandbox._works("unshare"):  # pyright: ignore[reportPrivateUsage]
        pytest.skip("bwrap alone always brings a loopback up")
    seen = tried(f"PORT={server}\n{NETWORK}", Enclosure(network=network))
    assert seen.data == [own, machine]


LEAVE = """
import os, sys, time
ready, begun = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            {close}
            held = os.open({fifo!r}, os.O_WRONLY)
            os.write(begun, b".")
            time.sleep(60)
        os._exit(0)
while os.read(ready, 1) and (began := globals().get("began", 0) + 1) < 2: pass
{end}
"""
QUIET = "os.close(1); os.close(2)"


@pytest.mark.long
@pytest.mark.parametrize(("close", "end"), [(QUIET, "sys.exit(3)"), ("", "sys.exit(3)"), ("", "time.sleep(60)")])
def test_nothing_is_left_running_and_no_open_pipe_awaited(maker: Maker, tmp_path: Path, close: str, end: str) -> None:
    fifo = tmp_path / "out" / "fifo"
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    binds = (Bind(str(fifo.parent), str(fifo.parent), writable=True),)
    slow = "sleep" in end
    try:
        seen = tried(LEAVE.format(close=close, fifo=str(fifo), end=end), Enclosure(binds), seconds=0.7 if slow else 30)
        ended, _, _ = select.select([reader], [], [], 10)
        assert ended, "a process still holds the pipe"
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)
    assert (seen.ended.exit_status, seen.ended.timed_out) == ((None, True) if slow else (3, False))
    assert seen.ended.seconds < 5


@pytest.mark.parametrize("enclosure", [None, Enclosure()], ids=["bare", "enclosed"])
def test_status_signal_input_and_time_limit_are_distinguished(enclosure: Enclosure | None) -> None:
    if enclosure is not None:
        needs_namespaces()
    seen = tried("import sys; print(sys.stdin.read()[::-1]); sys.exit(7)", enclosure, stdin=b"abc" * 100_000)
    assert (seen.ended.exit_status, len(seen.output)) == (7, 300_001)
    seen = tried("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", enclosure)
    assert seen.ended.exit_status in (-9, 137)
    seen = tried("import time; print('begun', flush=True); time.sleep(60)", enclosure, seconds=0.5)
    assert (seen.ended.exit_status, seen.ended.timed_out, bytes(seen.output)) == (None, True, b"begun\n")


@pytest.mark.parametrize("enclosure", [None, Enclosure()], ids=["bare", "enclosed"])
def test_a_channel_carries_a_specification_in_and_a_stream_out(enclosure: Enclosure | None) -> None:
    if enclosure is not None:
        needs_namespaces()
    stream = bytearray()
    channel = Channel(stream.extend)
    channel.spec = b"secret" * 50_000
    program = (
        f"import os\nwith os.fdopen({channel.spec_fd}, 'rb') as file: data = file.read()\n"
        f"with os.fdopen({channel.stream_fd}, 'wb') as file: file.write(data[::-1])"
    )
    try:
        seen = tried(program, enclosure, channel=channel)
    finally:
        channel.close()
    assert seen.ended.exit_status == 0, seen.output.decode()
    assert bytes(stream) == channel.spec[::-1]


def test_a_program_that_is_missing_cannot_be_started(maker: Maker) -> None:
    with pytest.raises(OSError, match="No such file"):
        run(["/no/such"], None, cwd="/", env={}, timeout_seconds=9, pipes=Pipes(bytearray().extend))
    output = bytearray()
    ended = run(["/no/such"], Enclosure(), cwd="/", env={}, timeout_seconds=9, pipes=Pipes(output.extend))
    assert ended.exit_status not in (0, None)
    assert b"/no/such" in output


def test_a_maker_that_fails_is_no_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_works", "unshare".__eq__)
    assert sandbox.maker.__wrapped__() == "unshare"
    monkeypatch.setattr(sandbox, "_works", "nothing".__eq__)
    assert sandbox.maker.__wrapped__() == "none"
    monkeypatch.setattr(sandbox, "maker", lambda: "none")
    assert sandbox.level() == "none"
    seen = tried("import os; print(os.getpid())", Enclosure(), cwd=str(Path.cwd()))
    assert int(seen.output) > 3, "the machine as it is"


def test_a_private_folder_is_gone_with_what_is_in_it() -> None:
    with sandbox.private_folder() as folder:
        Path(folder, "x").write_text("")
    assert not Path(folder).exists()
