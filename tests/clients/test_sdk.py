"""The SDK's own client against real servers: a task from its beginning to APPROVED, over stdio and over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent

from interlock.graph import verify_journal
from tests.clients.scripted import TASK, answer, envelope, make_project
from tests.server.http_process import connected, new_token, running
from tests.server.reservation_team import call
from tests.server.stdio_process import client as over_stdio

MODES: tuple[Literal["auto", "legacy"], ...] = ("auto", "legacy")
RUN = "HELLO-001.1"
ROLES = ("builder", "tester", "reviewer")


async def refused(client: Client, name: str, code: str, **arguments: Any) -> None:
    """Call a tool that must refuse with a code."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert f'"code":"{code}"' in content.text


async def hand_in(client: Client, ask: dict[str, Any], text: str) -> dict[str, Any]:
    """Hand an answer in."""
    return await call(client, "task_submit", run_id=RUN, role=ask["role"], envelope=text, ask_id=ask["ask_id"])


async def next_ask(client: Client) -> dict[str, Any]:
    """Return the one ask that the client may see."""
    (ask,) = (await call(client, "task_next", run_id=RUN))["asks"]
    return ask


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make the project of the scripted agents."""
    return make_project(tmp_path / "project")


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("mode", MODES)
def test_a_task_is_walked_over_stdio_with_a_refusal_and_a_rework(
    project: Path, mode: Literal["auto", "legacy"]
) -> None:
    async def walk() -> None:
        async with over_stdio(project, mode=mode) as client:
            assert (await call(client, "task_begin", task=TASK))["run_id"] == RUN
            ask = await next_ask(client)
            done = await hand_in(client, ask, envelope(ask, "APPROVED"))
            assert (done["ok"], done["outcome"]) == (False, "invalid")
            await refused(client, "task_submit", "RUN605", run_id=RUN, role="tester", envelope="x")
            path: list[str] = []
            done: dict[str, Any] = {}
            for greeting in ("hallo", "hallo", "hello", "hello", "hello"):
                ask = await next_ask(client)
                done = await hand_in(client, ask, answer(project, ask, greeting))
                path.append(f"{ask['role']} {done['outcome']}")
            assert path == ["builder handover", "tester fail", "builder handover", "tester pass", "reviewer pass"]
            assert (done["status"], done["attempt"]) == ("APPROVED", 2)
            status = await call(client, "task_status", run_id=RUN)
            assert all(gate["passed"] for gate in status["gates"])

    anyio.run(walk)
    assert verify_journal(project).problems == ()


@pytest.mark.long
def test_a_server_that_is_started_anew_goes_on_where_the_last_one_ended(project: Path) -> None:
    async def one_step(number: int) -> str:
        async with over_stdio(project) as client:
            if number == 0:
                await call(client, "task_begin", task=TASK)
            ask = await next_ask(client)
            return (await hand_in(client, ask, answer(project, ask)))["status"]

    assert [anyio.run(one_step, number) for number in range(3)] == ["QA_IN_PROGRESS", "READY_FOR_REVIEW", "APPROVED"]


@asynccontextmanager
async def team(url: str, tokens: dict[str, str]) -> AsyncGenerator[dict[str, Client]]:
    """Connect one client for each role, in both protocol revisions."""
    async with AsyncExitStack() as stack:
        yield {
            role: await stack.enter_async_context(connected(url, token, MODES[number % 2]))
            for number, (role, token) in enumerate(tokens.items())
        }


@pytest.mark.long
def test_a_team_walks_a_task_over_http_and_each_agent_speaks_for_itself(project: Path) -> None:
    tokens = {role: new_token(project, role) for role in ROLES}

    async def walk(url: str) -> None:
        async with team(url, tokens) as clients:
            await call(clients["builder"], "task_begin", task=TASK)
            done: dict[str, Any] = {}
            for role in ROLES:
                ask = await next_ask(clients[role])
                text = answer(project, ask)
                for other in set(ROLES) - {role}:
                    await refused(clients[other], "task_next", "MCP401", run_id=RUN, role=role)
                    await refused(
                        clients[other],
                        "task_submit",
                        "MCP401",
                        run_id=RUN,
                        role=role,
                        envelope=text,
                        ask_id=ask["ask_id"],
                    )
                    foreign = await call(clients[other], "task_next", run_id=RUN, wait_seconds=0)
                    assert foreign["asks"] == []
                done = await hand_in(clients[role], ask, text)
            assert done["status"] == "APPROVED"

    with running(project) as served:
        anyio.run(walk, served.url)
    assert verify_journal(project).problems == ()
