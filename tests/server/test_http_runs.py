"""Runs over HTTP from end to end: whose they are, several servers on one project, and no token on the disk."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import TextContent

from tests.campaign.test_kills import greeting_project
from tests.server.http_process import Served, connected, new_project, new_token, running
from tests.server.reservation_team import call

PAYLOAD = {
    "external_source": "local",
    "external_ticket_id": "DOC-1",
    "title": "Say what a token is",
    "description": "The guide does not say what a token is.",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_project(tmp_path / "project")


def codes(answer: dict[str, Any]) -> list[str]:
    return [issue["code"] for issue in answer["gate_result"]["issues"]]


@pytest.mark.long
def test_a_ticket_run_is_continued_by_the_agent_that_began_it_alone(project: Path) -> None:
    tokens = {name: new_token(project, name) for name in ("claude", "codex")}
    second = new_token(project, "claude")

    async def run(server: Served) -> None:
        async with connected(server.url, tokens["claude"]) as own, connected(server.url, tokens["codex"]) as foreign:
            begun = await call(own, "interlock_begin_run", ticket_id="DOC-1", run_id="doc-1")
            assert begun["ticket_json"]["state"] == "fetch_ticket"
            filled = {**begun["ticket_json"], "payload": PAYLOAD}
            revision = begun["ticket_json"]["revision"]

            for answer in (
                await call(foreign, "interlock_begin_run", ticket_id="DOC-1", run_id="doc-1"),
                await call(foreign, "interlock_submit_ticket", ticket_json=json.dumps(filled)),
                await call(foreign, "interlock_next_step", ticket_json=filled),
                await call(foreign, "interlock_submit_payload", run_id="doc-1", revision=revision, payload=PAYLOAD),
            ):
                assert (answer["gate_result"]["status"], codes(answer)) == ("stop", ["TKT112"])

            assert (await call(own, "interlock_run_status", run_id="doc-1"))["revision"] == revision
        async with connected(server.url, second) as own:
            passed = await call(own, "interlock_submit_payload", run_id="doc-1", revision=revision, payload=PAYLOAD)
            assert (passed["gate_result"]["status"], passed["next_state"]) == ("pass", "extract_requirements")

    with running(project) as server:
        anyio.run(run, server)


@pytest.mark.long
def test_two_servers_work_on_one_project_and_one_of_two_equal_submissions_counts(project: Path) -> None:
    token = new_token(project)

    async def run(first: Served, second: Served) -> None:
        async with connected(first.url, token) as one, connected(second.url, token, "legacy") as two:
            begun = await call(one, "interlock_begin_run", ticket_id="DOC-1", run_id="doc-1")
            revision = begun["ticket_json"]["revision"]
            answers: list[dict[str, Any]] = []

            async def submit(client: Client, title: str) -> None:
                payload = {**PAYLOAD, "title": title}
                answers.append(
                    await call(client, "interlock_submit_payload", run_id="doc-1", revision=revision, payload=payload)
                )

            async with anyio.create_task_group() as group:
                group.start_soon(submit, one, "by the first")
                group.start_soon(submit, two, "by the second")
            statuses = sorted(answer["gate_result"]["status"] for answer in answers)
            assert statuses[0] == "pass"
            assert statuses[1] != "pass"
            for client in (one, two):
                status = await call(client, "interlock_run_status", run_id="doc-1")
                assert (status["state"], status["path"].count("fetch_ticket")) == ("extract_requirements", 1)

    with running(project) as first, running(project) as second:
        anyio.run(run, first, second)


@pytest.mark.long
def test_a_run_begun_over_http_is_seen_over_stdio(project: Path) -> None:
    token = new_token(project)
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "interlock", "mcp", "--root", str(project)], env=dict(os.environ)
    )

    async def run(server: Served) -> None:
        async with connected(server.url, token) as remote, Client(stdio_client(parameters)) as local:
            begun = await call(remote, "interlock_begin_run", ticket_id="DOC-1", run_id="doc-1")
            revision = begun["ticket_json"]["revision"]
            await call(local, "interlock_submit_payload", run_id="doc-1", revision=revision, payload=PAYLOAD)
            assert (await call(remote, "interlock_run_status", run_id="doc-1"))["state"] == "extract_requirements"

    with running(project) as server:
        anyio.run(run, server)


@pytest.mark.long
def test_no_token_is_written_anywhere(project: Path) -> None:
    tokens = [new_token(project, name) for name in ("claude", "codex")]

    async def run(server: Served) -> None:
        async with connected(server.url, tokens[0]) as client:
            begun = await call(client, "interlock_begin_run", ticket_id="DOC-1", run_id="doc-1")
            revision = begun["ticket_json"]["revision"]
            await call(client, "interlock_submit_payload", run_id="doc-1", revision=revision, payload={})
            await call(client, "interlock_submit_payload", run_id="doc-1", revision=revision + 1, payload=PAYLOAD)
        async with connected(server.url, tokens[1], "legacy") as client:
            await client.call_tool("interlock_submit_payload", {"run_id": "doc-1", "revision": 1, "payload": {}})
            await client.call_tool("no_such_tool", {})

    with running(project) as server:
        anyio.run(run, server)
        server.stop()
        written = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
        written[server.log] = server.log.read_bytes()
    assert any(path.name == "events.jsonl" for path in written)
    secrets = [token.split("_", 2)[2].encode() for token in tokens]
    assert [path for path, data in written.items() if any(secret in data for secret in secrets)] == []


TASK = {
    "task_id": "HELLO-001",
    "task": "Write the greeting",
    "gates_required": ["GATE-MSG-STRICT", "GATE-TESTS", "GATE-LINT", "GATE-REVIEW"],
    "scope": ["src/**"],
}


def envelope(role: str) -> str:
    """Return the hand-over of a role."""
    gates = "".join(f"- {gate}\n" for gate in TASK["gates_required"])
    return (
        f"STATUS: READY_FOR_QA\nTASK_ID: HELLO-001\nTASK: Write the greeting\nASSIGNED_AGENT: {role}\n"
        f"REPORTS_TO: orchestrator\nINPUTS_USED: []\nGATES_REQUIRED:\n{gates}GATES_PASSED:\n- GATE-MSG-STRICT\n"
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []\n"
        "FAIL_REASONS: NONE\nOUTPUT:\nWrote src/greeting.txt.\nNEXT_ACTIONS:\n1. tester to run the tests\n"
    )


@pytest.mark.long
def test_an_agent_answers_for_its_own_role_alone(project: Path) -> None:
    shutil.rmtree(project)
    greeting_project(project)
    tokens = {role: new_token(project, role) for role in ("builder", "reviewer")}

    async def refused(client: Client, tool: str, **arguments: Any) -> str:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert isinstance(result.content[0], TextContent)
        return json.loads(result.content[0].text)["error"]["code"]

    async def run(server: Served) -> None:
        async with connected(server.url, tokens["builder"]) as builder:
            async with connected(server.url, tokens["reviewer"], "legacy") as reviewer:
                begun = await call(builder, "task_begin", task=TASK, run_id="hello")
                assert begun["waiting"] == ["builder"]

                # Neither in the builder's name nor with the builder's envelope does the reviewer get a word in.
                named = {"run_id": "hello", "role": "builder", "envelope": envelope("builder")}
                assert await refused(reviewer, "task_submit", **named) == "MCP401"
                assert await refused(reviewer, "task_submit", **{**named, "role": "reviewer"}) != "MCP401"
                assert await refused(reviewer, "task_next", run_id="hello", role="builder") == "MCP401"
                seen = await call(reviewer, "task_next", run_id="hello", wait_seconds=0)
                assert seen["asks"] == []

            # The builder's token does not make the reviewer's envelope the builder's.
            [ask] = (await call(builder, "task_next", run_id="hello"))["asks"]
            given = {"run_id": "hello", "role": "builder", "ask_id": ask["ask_id"]}
            foreign = await call(builder, "task_submit", **given, envelope=envelope("reviewer"))
            assert foreign["ok"] is False
            assert {finding["field"] for finding in foreign["findings"]} >= {"ASSIGNED_AGENT"}
            assert foreign["status"] == "IN_PROGRESS"

            (project / "src" / "greeting.txt").write_text("hello\n")
            [again] = (await call(builder, "task_next", run_id="hello"))["asks"]
            given["ask_id"] = again["ask_id"]
            done = await call(builder, "task_submit", **given, envelope=envelope("builder"))
            assert done["ok"] is True
            assert done["status"] == "QA_IN_PROGRESS"

    with running(project) as server:
        anyio.run(run, server)
