"""`interlock mcp` as a process: what it answers to bad lines, how it ends, and what may go over its wire."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.stdio_process import COMMAND, INITIALIZE, INITIALIZED, Wire, call, server
from tests.server.test_message_validation import REFUSED

PING = {"jsonrpc": "2.0", "id": "alive", "method": "ping"}


@pytest.mark.long
def test_each_bad_line_is_answered_and_the_server_lives_on(tmp_path: Path) -> None:
    lines = [row for row in REFUSED if row[1].strip() and b"\n" not in row[1]]
    with server(tmp_path) as wire:
        for name, raw, code, number in lines:
            answer = wire.ask(raw)
            assert (name, answer["id"], answer["error"]["data"]["code"]) == (name, number, code)
            assert answer["error"]["data"]["fix"]
        assert wire.ask(PING) == {"jsonrpc": "2.0", "id": "alive", "result": {}}
        code, rest, err = wire.end()
    assert (code, rest, err) == (0, [], "")


@pytest.mark.long
def test_lines_may_be_bad_before_the_greeting_or_blank_or_come_in_pieces(tmp_path: Path) -> None:
    with server(tmp_path, greet=False) as wire:
        assert wire.ask(b"nope")["error"]["data"]["code"] == "MCP101"
        assert wire.ask(INITIALIZE)["result"]["serverInfo"]["name"] == "interlock"
        wire.send(INITIALIZED)
        wire.send(b"")
        wire.send(b"  \r")
        assert wire.ask(json.dumps(PING).encode() + b"\r")["id"] == "alive"
        assert wire.process.stdin is not None
        raw = json.dumps(PING).encode() + b"\n"
        for at in range(len(raw)):
            wire.process.stdin.write(raw[at : at + 1])
            wire.process.stdin.flush()
        assert wire.read()["id"] == "alive"


@pytest.mark.long
def test_four_mebibytes_go_through_and_come_back(tmp_path: Path) -> None:
    """The last line that is not too long is acted on: the answer says what is wrong with its text."""
    text = "x" * (4 * 1024 * 1024 - 200)
    with server(tmp_path, "--toolsets", "envelope") as wire:
        answer = wire.ask(call("validate_envelope", {"text": text}))
    assert answer["result"]["structuredContent"]["ok"] is False


@pytest.mark.long
def test_the_end_of_input_ends_it_with_0_after_the_last_answer(tmp_path: Path) -> None:
    with server(tmp_path) as wire:
        wire.send(call("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"}))
        code, rest, err = wire.end()
    assert (code, err) == (0, "")
    (answer,) = [each for each in rest if "id" in each]
    assert answer["result"]["structuredContent"]["ticket_json"]["run_id"] == "r1"


@pytest.mark.long
def test_requests_may_come_from_a_file(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text("".join(json.dumps(each) + "\n" for each in (INITIALIZE, INITIALIZED, PING)))
    with requests.open("rb") as source, (tmp_path / "answers.jsonl").open("wb") as target:
        done = subprocess.run(COMMAND, cwd=tmp_path, stdin=source, stdout=target, timeout=60, check=False)
    assert done.returncode == 0
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert {each["id"] for each in answers} == {"hello", "alive"}


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with server(tmp_path) as wire:
        assert wire.ask(PING)["id"] == "alive"
        assert wire.signal(number) == 0
        assert wire.process.stderr is not None
        assert wire.process.stderr.read() == b""


@pytest.mark.long
def test_a_client_that_went_away_ends_it_with_0(tmp_path: Path) -> None:
    with server(tmp_path) as wire:
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        wire.send(PING)
        assert wire.process.wait(60) == 0


@pytest.mark.long
def test_a_closed_input_ends_with_an_error_of_the_system(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m interlock mcp <&-"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 74
    assert "error SYSTEM" in done.stderr


PRINTING = """
import anyio, os, subprocess, sys
from pathlib import Path
from interlock.server import make_server

server = make_server(Path.cwd(), toolsets=["envelope"])

@server.tool()
def noisy() -> dict[str, str]:
    print("to stdout", flush=True)
    os.write(1, b"to descriptor 1\\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return {"read": sys.stdin.read(), "child": subprocess.run(["cat"], capture_output=True, text=True).stdout}

anyio.run(server.run_stdio_async)
"""


@pytest.mark.long
def test_what_prints_or_reads_in_the_process_meets_stderr_and_the_end(tmp_path: Path) -> None:
    lines = [INITIALIZE, INITIALIZED, call("noisy", {})]
    given = "".join(json.dumps(each) + "\n" for each in lines)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", PRINTING], cwd=tmp_path, input=given, capture_output=True, text=True, timeout=60,
        env=environment, check=False,
    )  # fmt: skip
    answers = {each["id"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["result"]["structuredContent"] == {"read": "", "child": ""}
    assert sorted(done.stderr.splitlines()) == ["from a child", "to descriptor 1", "to stdout"]


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


WAITING = """
import anyio, threading
from pathlib import Path
from interlock.cli import serve
import interlock.server

def make(root, **options):
    server = interlock.server.InterlockServer(root)

    @server.tool()
    async def wait() -> dict[str, str]:
        await anyio.to_thread.run_sync(threading.Event().wait, abandon_on_cancel=True)
        return {}

    return server

interlock.server.make_server = make
serve.mcp_command()
"""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_call_that_waits_for_an_agent_does_not_keep_the_process(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    try:
        wire = Wire(process)
        wire.ask(INITIALIZE)
        wire.send(INITIALIZED)
        wire.send(call("wait", {}))
        assert wire.ask(PING)["id"] == "alive"
        process.send_signal(number)
        assert process.wait(7) == 0
    finally:
        process.kill()
        process.communicate()


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
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment,
        check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
