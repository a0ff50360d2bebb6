"""A client that wants to run code, reach the network, block the server or judge itself through the tools it has."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from interlock.graph import Drives, TicketStore
from interlock.server import make_server
from interlock.server.mcp.tasks import TaskCalls
from interlock.server.rules import CallError
from tests.clients.scripted import TASK, make_project
from tests.refusals import raises_code
from tests.server.test_app import error_of

pytestmark = pytest.mark.anyio

PAYLOAD = {"external_source": "jira", "external_ticket_id": "1", "title": "t", "description": "d"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
async def client(root: Path) -> AsyncIterator[Client]:
    async with Client(make_server(root)) as connected:
        yield connected


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
    with raises_code(CallError, "MCP403"):
        TaskCalls(root, Drives(root)).begin(given, None, caller="builder")


POWERS: dict[str, Any] = {
    "commands": {"x": ["sh", "-c", "id > f"]}, "budget": {"calls": 100_000}, "run": {"max_rework": 9},
}  # fmt: skip


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("caller", ["", "builder", "stranger"])
def test_a_task_from_a_tool_starts_no_program_and_raises_no_limit(root: Path, name: str, caller: str) -> None:
    with pytest.raises(CallError) as refused:
        TaskCalls(root, Drives(root)).begin({**TASK, name: POWERS[name]}, None, caller=caller)
    assert (refused.value.code, name in refused.value.message) == ("MCP403", True)
    assert not list(root.rglob("run.json"))


# -- what one client can do to the others --------------------------------------------------------------------------


async def test_calls_that_wait_for_a_busy_run_leave_slots_for_calls_about_others(client: Client, root: Path) -> None:
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
