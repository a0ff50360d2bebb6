"""A client that wants to run code, reach the network, block the server or judge itself through the tools it has."""

import json
import os
import threading
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from interlock.graph import Drives, TicketStore
from interlock.server import make_server
from interlock.server.rules import CallError
from interlock.server.task_calls import TaskCalls
from tests.clients.scripted import TASK, make_project

pytestmark = pytest.mark.anyio

PAYLOAD = {"external_source": "jira", "external_ticket_id": "1", "title": "t", "description": "d"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
async def client(root: Path) -> AsyncIterator[Client]:
    async with Client(make_server(root)) as connected:
        yield connected


def error_of(result: CallToolResult) -> dict[str, Any]:
    """Return what an error result says."""
    assert result.is_error
    (content,) = result.content
    return json.loads(cast("TextContent", content).text)["error"]


# -- task files and task objects -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["a\0b.toml", "x" * 5000, ".", "", "../../etc/passwd", "app.py/x"])
async def test_a_task_file_that_cannot_be_one_is_refused_and_is_no_defect(client: Client, path: str) -> None:
    error = error_of(await client.call_tool("task_begin", {"task": path}))
    assert error["code"] != "INTERNAL"
    assert error["fix"]


async def test_a_task_file_that_is_a_pipe_does_not_hold_the_call_for_ever(client: Client, root: Path) -> None:
    os.mkfifo(root / "task.toml")
    result: list[CallToolResult] = []
    try:
        with anyio.move_on_after(5):
            result.append(await client.call_tool("task_begin", {"task": "task.toml"}))
    finally:
        try:  # whoever still reads gets an end
            os.close(os.open(root / "task.toml", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            assert result, "nobody reads, and nothing was answered"
    assert result
    assert error_of(result[0])["code"] != "INTERNAL"


@pytest.mark.parametrize("settings", [{"runner": "python:os:system"}, {"runner": "command"}, {"prompt": "/etc/passwd"}])
@pytest.mark.parametrize("form", ["object", "file"])
def test_a_caller_with_a_token_names_no_code_that_runs_here(root: Path, settings: dict[str, str], form: str) -> None:
    given: Any = {**TASK, "agents": {"builder": settings}}
    if form == "file":
        lines = [f"{key} = {json.dumps(value)}" for key, value in TASK.items() if isinstance(value, str | list)]
        table = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        (root / "task.toml").write_text("\n".join([*lines, "[agents.builder]", *table]))
        given = "task.toml"
    with pytest.raises(CallError) as refused:
        TaskCalls(root, Drives(root)).begin(given, None, caller="builder")
    assert refused.value.code == "MCP403"


POWERS: dict[str, Any] = {
    "commands": {"x": ["sh", "-c", "id > f"]}, "budget": {"calls": 100_000}, "run": {"max_rework": 9},
}  # fmt: skip


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("caller", ["", "builder", "stranger"])
def test_a_task_that_comes_in_through_a_tool_starts_no_program_and_raises_no_limit(
    root: Path, name: str, caller: str
) -> None:
    with pytest.raises(CallError) as refused:
        TaskCalls(root, Drives(root)).begin({**TASK, name: POWERS[name]}, None, caller=caller)
    assert (refused.value.code, name in refused.value.message) == ("MCP403", True)
    assert not list(root.rglob("run.json"))


def test_a_task_cannot_put_its_caller_in_the_place_of_a_reviewer_that_the_project_configured(root: Path) -> None:
    """The configuration says who judges; a task that came in through a tool must not replace it by `remote`."""
    config = root / "interlock.toml"
    config.write_text(config.read_text() + '\n[agents.reviewer]\nrunner = "python:reviewers:judge"\n')
    (root / "reviewers.py").write_text("def judge(ask):\n    return ''\n")
    with pytest.raises(CallError) as refused:
        TaskCalls(root, Drives(root)).begin({**TASK, "agents": {"reviewer": {"runner": "remote"}}}, None)
    assert refused.value.code == "MCP403"


# -- the network behind the browser --------------------------------------------------------------------------------


@contextmanager
def inside() -> Generator[tuple[int, list[str]]]:
    """Serve a page inside the network; yields its port and the requests that came."""
    seen: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Note the request and answer."""
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>inside</title>")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("spelling", ["http://{}/", "HTTP://{}/", "http:\t//{}/", "ht\ttp:/\t/{}/"], ids=ascii)
def test_a_caller_with_a_token_reaches_no_server_inside_however_the_address_is_written(
    root: Path, spelling: str
) -> None:
    with inside() as (port, seen):
        page = spelling.format(f"127.0.0.1:{port}")
        with pytest.raises(CallError) as refused:
            TaskCalls(root, Drives(root)).collect(page, "ADHOC-1", ["console"], None, caller="builder")
        assert (refused.value.code, seen) == ("MCP407", [])


# -- what one client can do to the others --------------------------------------------------------------------------


async def test_calls_that_wait_for_a_busy_run_leave_room_for_calls_about_others(client: Client, root: Path) -> None:
    for name in ("busy", "other"):
        await client.call_tool("interlock_begin_run", {"ticket_id": "SHOP-7", "run_id": name})
    call = {"run_id": "busy", "revision": 1, "payload": PAYLOAD}
    answered = False
    async with anyio.create_task_group() as group:
        with TicketStore(root, "busy").locked():
            for _ in range(60):
                group.start_soon(client.call_tool, "interlock_submit_payload", call)
            await anyio.lowlevel.checkpoint()
            with anyio.move_on_after(6):
                result = await client.call_tool("interlock_submit_payload", {**call, "run_id": "other"})
                answered = not result.is_error
    assert answered


@pytest.mark.parametrize("query", ["after=zz", "limit=1.5"], ids=["word", "fraction"])
async def test_a_query_that_is_no_number_is_the_readers_error(client: Client, query: str) -> None:
    await client.call_tool("interlock_begin_run", {"ticket_id": "SHOP-7", "run_id": "run-1"})
    with pytest.raises(MCPError) as refused:
        await client.read_resource(f"interlock://runs/run-1/events?{query}")
    assert "INTERNAL" not in refused.value.error.message


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("given", ['"{\\"run_id\\": \\"run-1\\"}"', "[]", "null", "1e999", "[" * 5000, '{"a":1,"a":2}'])
async def test_a_text_that_is_no_ticket_is_a_finding_and_changes_nothing(client: Client, given: str) -> None:
    begun = await client.call_tool("interlock_begin_run", {"ticket_id": "SHOP-7", "run_id": "run-1"})
    result = await client.call_tool("interlock_submit_ticket", {"ticket_json": given})
    assert not result.is_error
    assert cast("dict[str, Any]", result.structured_content)["gate_result"]["status"] == "retry"
    again = await client.call_tool("interlock_begin_run", {"ticket_id": "SHOP-7", "run_id": "run-1"})
    ours, theirs = (cast("dict[str, Any]", each.structured_content)["ticket_json"] for each in (begun, again))
    assert ours == theirs
