"""Runs over HTTP from end to end: whose they are, several servers on one project, and no token on the disk."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.clients.scripted import TASK, answer, make_project
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

            begun_again = await call(foreign, "interlock_begin_run", ticket_id="DOC-1", run_id="doc-1")
            assert codes(begun_again) == ["TKT106"]
            for answer in (
                await call(foreign, "interlock_submit_ticket", ticket_json=json.dumps(filled)),
                await call(foreign, "interlock_next_step", ticket_json=filled),
                await call(foreign, "interlock_submit_payload", run_id="doc-1", revision=revision, payload=PAYLOAD),
            ):
                assert (answer["gate_result"]["status"], codes(answer)) == ("stop", ["TKT111"])

            assert (await call(own, "interlock_run_status", run_id="doc-1"))["revision"] == revision
        async with connected(server.url, second) as own:
            passed = await call(own, "interlock_submit_payload", run_id="doc-1", revision=revision, payload=PAYLOAD)
            assert (passed["gate_result"]["status"], passed["next_state"]) == ("pass", "extract_requirements")

    with running(project) as server:
        anyio.run(run, server)


@pytest.mark.long
def test_a_task_is_played_to_its_end_by_roles_with_tokens_of_their_own(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    tokens = {role: new_token(root, role) for role in ("builder", "tester", "reviewer")}

    async def run(server: Served) -> None:
        async with connected(server.url, tokens["builder"]) as client:
            await call(client, "task_begin", task=TASK, run_id="hello")
        for role, status in zip(tokens, ("QA_IN_PROGRESS", "READY_FOR_REVIEW", "APPROVED"), strict=True):
            async with connected(server.url, tokens[role]) as client:
                (ask,) = (await call(client, "task_next", run_id="hello"))["asks"]
                given = {"run_id": "hello", "role": role, "envelope": answer(root, ask), "ask_id": ask["ask_id"]}
                for repeated in (False, True):
                    done = await call(client, "task_submit", **given)
                    assert (done["ok"], done["repeated"], done["status"]) == (True, repeated, status)

    with running(root) as server:
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
