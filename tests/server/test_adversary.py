"""A client that wants to run code, reach the network, block the server or judge itself through the tools it has."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult

from interlock.graph import Drives
from interlock.server import make_server
from interlock.server.mcp.tasks import TaskCalls
from interlock.server.rules import CallError
from tests.clients.scripted import TASK, make_project
from tests.refusals import raises_code
from tests.server.test_app import error_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
async def client(root: Path) -> AsyncIterator[Client]:
    async with Client(make_server(root)) as connected:
        yield connected


# -- task files and task objects -----------------------------------------------------------------------------------


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


def test_a_caller_with_a_token_names_no_task_file(root: Path) -> None:
    (root / "task.toml").touch()
    with raises_code(CallError, "MCP403"):
        TaskCalls(root, Drives(root)).begin("task.toml", None, caller="builder")


POWERS: dict[str, Any] = {
    "commands": {"x": ["sh", "-c", "id > f"]},
    "budget": {"calls": 100_000},
    "run": {"max_rework": 9},
    "agents": {"builder": {"runner": "python:os:system"}},
}


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("caller", ["", "builder"])
def test_a_task_from_a_tool_starts_no_program_and_raises_no_limit(root: Path, name: str, caller: str) -> None:
    with pytest.raises(CallError) as refused:
        TaskCalls(root, Drives(root)).begin({**TASK, name: POWERS[name]}, None, caller=caller)
    assert (refused.value.code, name in refused.value.message) == ("MCP403", True)
    assert not list(root.rglob("run.json"))
