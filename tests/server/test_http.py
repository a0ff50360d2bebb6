"""The server over HTTP as real processes: who gets in, what is refused, how it starts and stops."""

import json
import signal
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
from mcp_types import TextContent

from interlock.server.http.serving import MAX_BODY_BYTES
from interlock.server.http.tokens import TokenStore
from tests import warm
from tests.server.http_process import (
    ACCEPT,
    INITIALIZE,
    Served,
    bearer,
    connected,
    new_project,
    new_token,
    post,
    running,
)
from tests.table import each_row

STANDIN = ("-m", "tests.server.http_standin")
MODES: tuple[Literal["auto", "legacy"], ...] = ("auto", "legacy")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_project(tmp_path_factory.mktemp("http") / "project")


@pytest.fixture(scope="module")
def token(project: Path) -> str:
    return new_token(project)


@pytest.fixture(scope="module")
def served(project: Path, token: str) -> Generator[Served]:
    with running(project) as server:
        yield server
        assert token not in server.stderr


def tool_call(name: str, **more: Any) -> dict[str, Any]:
    """Return the message that calls a tool without arguments."""
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": {}, **more}}


def interlock(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.interlock(root, "serve", "--root", str(root), *arguments, timeout=60)


# Start and stop.


def test_without_a_token_the_server_does_not_start_and_says_how_to_make_one(tmp_path: Path) -> None:
    done = interlock(new_project(tmp_path), "--port", "0", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "TOK904")
    assert "interlock token create" in error["fix"]


def test_a_port_in_use_ends_with_2_and_the_way_out(project: Path, served: Served) -> None:
    done = interlock(project, "--port", str(served.port))
    assert done.returncode == 2
    assert "--port 0" in done.stderr


@each_row(
    "options",
    [
        ("--toolsets", "nothing"),
        ("--toolsets", ""),
        ("--port", "65536"),
        ("--allow-host", "localhost:*"),
    ],
)
def test_what_cannot_be_served_safely_ends_with_2(project: Path, token: str, options: tuple[str, ...]) -> None:
    done = interlock(project, "--port", "0", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_host_that_is_allowed_is_served_beside_the_own_one(tmp_path: Path) -> None:
    root = new_project(tmp_path / "project")
    token = new_token(root)
    with running(root, "--allow-host", "box.example") as server:
        local = server.url
        with httpx2.Client() as http:
            headers = {**ACCEPT, **bearer(token)}
            named = http.post(local, json=INITIALIZE, headers={**headers, "host": "box.example"})
            unnamed = http.post(local, json=INITIALIZE, headers={**headers, "host": "other.example"})
        assert [named.status_code, unnamed.status_code] == [200, 421]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_server_with_0_though_streams_are_open(tmp_path: Path, number: int) -> None:
    root = new_project(tmp_path / "project")
    token = new_token(root)
    with running(root) as server, httpx2.Client(timeout=20) as http:
        session = post(server, token).headers["mcp-session-id"]
        headers = {**ACCEPT, **bearer(token), "mcp-session-id": session}
        with http.stream("GET", server.url, headers=headers) as stream:
            assert stream.status_code == 200
            assert server.stop(number) == 0
        assert "Traceback" not in server.stderr
        with socket.create_server(("127.0.0.1", server.port)):
            pass


@pytest.mark.long
def test_a_subscription_of_the_newer_protocol_does_not_hold_up_the_end(tmp_path: Path) -> None:
    root = new_project(tmp_path / "project")
    token = new_token(root)

    async def listen_and_stop(server: Served) -> int:
        async with connected(server.url, token) as client, client.listen(tools_list_changed=True):
            return await anyio.to_thread.run_sync(server.stop)

    with running(root, program=STANDIN) as server:
        assert anyio.run(listen_and_stop, server) == 0


@pytest.mark.long
def test_a_call_that_never_ends_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    root = new_project(tmp_path / "project")
    token = new_token(root)
    call = tool_call("never_ends")
    with running(root, program=STANDIN) as server:
        session = post(server, token).headers["mcp-session-id"]
        headers = {**ACCEPT, **bearer(token), "mcp-session-id": session}
        with httpx2.Client(timeout=20) as http, http.stream("POST", server.url, json=call, headers=headers):
            assert server.stop() == 0


# Who calls.


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_works_in_both_protocol_revisions(served: Served, token: str, mode: Any) -> None:
    async def run() -> tuple[set[str], Any]:
        async with connected(served.url, token, mode) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            return names, await client.call_tool("validate_envelope", {"text": "no envelope"})

    names, result = anyio.run(run)
    assert {"interlock_begin_run", "validate_envelope"} <= names
    assert not result.is_error
    assert result.structured_content["ok"] is False


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("mode", MODES)
def test_a_tool_knows_its_caller_from_the_token_alone(tmp_path: Path, mode: Any) -> None:
    root = new_project(tmp_path / "project")
    tokens = {name: new_token(root, name) for name in ("visual-qa", "code-reviewer")}

    async def ask(url: str, name: str, found: dict[str, set[str]]) -> None:
        async with connected(url, tokens[name], mode) as client:
            for tool in ("whoami", "whoami_async") * 5:
                result = await client.call_tool(tool, {})
                assert isinstance(result.content[0], TextContent)
                found.setdefault(name, set()).add(result.content[0].text)

    async def both(url: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        async with anyio.create_task_group() as group:
            for name in tokens:
                group.start_soon(ask, url, name, found)
        return found

    with running(root, program=STANDIN) as server:
        assert anyio.run(both, server.url) == {"visual-qa": {"visual-qa"}, "code-reviewer": {"code-reviewer"}}


@pytest.mark.long
def test_headers_and_arguments_that_name_another_agent_change_nothing(tmp_path: Path) -> None:
    root = new_project(tmp_path / "project")
    token = new_token(root, "claude")
    call = tool_call("whoami", _meta={"agent": "code-reviewer"})
    with running(root, program=STANDIN) as server:
        session = post(server, token).headers["mcp-session-id"]
        answer = post(server, token, call, mcp_session_id=session, x_agent="code-reviewer", user="code-reviewer")
        assert '"text":"claude"' in answer.text


def test_a_session_belongs_to_the_token_that_opened_it(served: Served, project: Path, token: str) -> None:
    session = post(served, token).headers["mcp-session-id"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    others = [new_token(project, "claude"), new_token(project, "visual-qa")]
    assert [post(served, other, ping, mcp_session_id=session).status_code for other in others] == [404, 404]
    with httpx2.Client() as http:
        ended = http.delete(served.url, headers={**bearer(others[0]), "mcp-session-id": session})
    assert ended.status_code == 404
    assert post(served, token, ping, mcp_session_id=session).status_code == 200


def test_a_revoked_token_ends_its_session_and_its_client_sees_why(served: Served, project: Path) -> None:
    token = new_token(project, "codex")

    async def run() -> str:
        async with connected(served.url, token, "legacy") as client:
            await client.list_tools()
            TokenStore(project).revoke("codex")
            with pytest.raises(Exception, match="known callers") as caught:
                await client.call_tool("validate_envelope", {"text": "x"})
            return str(caught.value)

    assert "interlock token create" in anyio.run(run)


# What is refused on the wire.


def request(server: Served, token: str, *lines: str, start: str = "POST /mcp HTTP/1.1", body: bytes = b"{}") -> bytes:
    """Return a request as bytes, with the header lines as they are given."""
    head = [start, f"Authorization: Bearer {token}", "Content-Type: application/json", "Connection: close", *lines]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in lines):
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Host: localhost:{port}.evil.example"], 421),
        (["Host: localhost"], 421),
        (["Host: 127.0.0.1:{port}", "Host: evil.example"], 400),
        ([], 400),
        (["Host: 127.0.0.1:{port}", "X-Forwarded-Host: evil.example", "Origin: http://evil.example"], 403),
        (["Host: 127.0.0.1:{port}", "Origin: null"], 403),
    ],
)
def test_a_foreign_address_or_origin_does_not_get_in_with_a_good_token(
    served: Served, token: str, lines: list[str], expected: int
) -> None:
    text = [line.format(port=served.port) for line in lines]
    assert status(served.raw(request(served, token, *text))) == expected


def test_a_body_that_is_no_message_or_too_large_is_refused_and_the_server_lives_on(served: Served, token: str) -> None:
    padding = "x" * MAX_BODY_BYTES
    for status, body in ((400, b"{"), (413, json.dumps({**INITIALIZE, "padding": padding}).encode())):
        answer = post(served, token, body)
        assert (answer.status_code, "Traceback" in served.stderr) == (status, False)
    assert post(served, token).status_code == 200
