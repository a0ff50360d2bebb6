"""`interlock mcp` as a process: where it works, and how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.server.mcp.reservations import ReservationCalls
from tests.server.stdio_process import call, server

PING = {"jsonrpc": "2.0", "id": "alive", "method": "ping"}


@pytest.mark.long
def test_a_line_that_cannot_be_read_leaves_the_server_alive(tmp_path: Path) -> None:
    with server(tmp_path) as wire:
        for line in (b"nope", b"[]", rb'{"method":"tools/list","params":{"a":"\ud83d"},"jsonrpc":"2.0","id":7}'):
            wire.send(line)
        assert wire.ask(PING) == {"jsonrpc": "2.0", "id": "alive", "result": {}}
        assert wire.end()[:2] == (0, [])


@pytest.mark.long
def test_the_root_is_found_from_a_subfolder(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    with server(inner) as wire:
        wire.ask(call("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"}))
        assert wire.end()[0] == 0
    assert (tmp_path / ".interlock" / "tickets" / "r1").is_dir()
    assert not (inner / ".interlock").exists()


@pytest.mark.long
def test_a_client_that_went_away_during_a_call_ends_it_with_0(tmp_path: Path) -> None:
    with server(tmp_path) as wire:
        wire.send(call("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"}))
        assert wire.process.stdin is not None
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        wire.process.stdin.close()
        wire.process.stdin = wire.process.stdout = None
        _, err = wire.process.communicate(timeout=60)
        assert (wire.process.returncode, err) == (0, b"")


@pytest.mark.long
def test_a_signal_ends_it_with_0_though_a_call_waits(tmp_path: Path) -> None:
    ReservationCalls(tmp_path).of("anna").reserve_files(["a.py"])
    with server(tmp_path) as wire:
        wire.send(call("reserve_files", {"patterns": ["a.py"], "wait_seconds": 45}))
        assert wire.ask(PING)["id"] == "alive"
        assert wire.signal(signal.SIGTERM) == 0


@pytest.mark.long
def test_the_end_of_input_ends_it_though_a_call_waits(tmp_path: Path) -> None:
    ReservationCalls(tmp_path).of("anna").reserve_files(["a.py"])
    with server(tmp_path) as wire:
        wire.send(call("reserve_files", {"patterns": ["a.py"], "wait_seconds": 45}))
        assert wire.end()[0] == 0


@pytest.mark.long
def test_the_first_answer_does_not_wait_for_the_graph(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from interlock.server import make_server\n"
        "server = make_server(Path.cwd()); assert len(asyncio.run(server.list_tools())) > 5\n"
        "assert asyncio.run(server.list_prompts())\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('langgraph', 'langchain_core')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
