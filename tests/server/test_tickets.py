"""The ticket tools over MCP: a text is judged as it came, refusals are results, and every answer has its shape."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from syrupy.assertion import SnapshotAssertion

from interlock.graph import TicketStore
from interlock.server import make_server
from interlock.server.mcp.concurrency import CallSlots
from interlock.server.mcp.tickets import CALLS_ON_A_RUN

pytestmark = pytest.mark.anyio

FETCHED = {"external_source": "github", "external_ticket_id": "A-1", "title": "Sign-up", "description": "A form."}


async def called(connected: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured content, which must fit the schema that the tool lists."""
    result = await connected.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    schema = next(tool.output_schema for tool in (await connected.list_tools()).tools if tool.name == name)
    assert schema is not None
    jsonschema.validate(result.structured_content, schema)
    return result.structured_content


async def begun(connected: Client, run_id: str = "r1") -> dict[str, Any]:
    """Begin a run and return its ticket."""
    return (await called(connected, "interlock_begin_run", ticket_id="A-1", run_id=run_id))["ticket_json"]


@pytest.mark.parametrize("form", ["object", "text"])
async def test_a_ticket_is_taken_as_an_object_and_as_text(form: str, connected: Client) -> None:
    ticket = {**await begun(connected), "payload": FETCHED}
    given = ticket if form == "object" else json.dumps(ticket, indent=2)
    answer = await called(connected, "interlock_submit_ticket", ticket_json=given)
    assert (answer["gate_result"]["status"], answer["next_state"]) == ("pass", "extract_requirements")
    assert answer["continue"] is True
    assert "payload" not in answer["ticket_json"]["history"][0]


@pytest.mark.parametrize("form", ["object", "text"])
async def test_a_payload_can_be_sent_alone(form: str, connected: Client) -> None:
    ticket = await begun(connected)
    payload = FETCHED if form == "object" else json.dumps(FETCHED)
    answer = await called(
        connected, "interlock_submit_payload", run_id="r1", revision=ticket["revision"], payload=payload
    )
    assert answer["gate_result"]["status"] == "pass"


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", ["interlock_submit_ticket", "interlock_next_step"])
@pytest.mark.parametrize(
    "text",
    [
        "", "not JSON", "[]", "7", "null", '{"run_id":"r1","run_id":"r2"}', '{"run_id":"r1","payload":{"a":1,"a":2}}',
        '{"run_id":NaN}', '{"a":' * 5000 + "1" + "}" * 5000, '{"run_id":"r1\\u0000"}', '{"run_id":"\\ud800"}',
    ],
    ids=lambda text: repr(text)[:30],
)  # fmt: skip
async def test_a_text_is_judged_unparsed_and_is_refused_as_a_result(connected: Client, name: str, text: str) -> None:
    """A lenient reader on the way would hide the second key, the NaN and the depth."""
    before = await begun(connected)
    answer = await called(connected, name, ticket_json=text)
    assert answer["gate_result"]["status"] in {"retry", "stop"}
    assert answer["gate_result"]["issues"]
    assert (await begun(connected)) == before


async def test_a_payload_with_a_key_twice_is_refused(connected: Client) -> None:
    await begun(connected)
    text = json.dumps(FETCHED)[:-1] + ',"title":"Another"}'
    answer = await called(connected, "interlock_submit_payload", run_id="r1", revision=1, payload=text)
    assert answer["gate_result"]["status"] == "retry"
    assert (await called(connected, "interlock_run_status", run_id="r1"))["revision"] == 1


async def test_refusals_are_results_with_a_gate_result(connected: Client) -> None:
    ticket = await begun(connected)
    tampered = await called(
        connected, "interlock_submit_ticket", ticket_json={**ticket, "state": "complete", "payload": FETCHED}
    )
    unknown = await called(connected, "interlock_submit_payload", run_id="none", revision=1, payload={})
    status = await called(connected, "interlock_run_status", run_id="none")
    empty = await called(connected, "interlock_submit_payload", run_id="r1", revision=1, payload={})
    assert tampered["ticket_json"]["state"] == "fetch_ticket"
    for answer in (tampered, unknown, status, empty):
        assert answer["gate_result"]["status"] in {"retry", "stop"}
        assert all(issue["message"] and issue["fix"] for issue in answer["gate_result"]["issues"])


async def test_the_caller_comes_from_the_connection_and_not_from_the_ticket(tmp_path: Path) -> None:
    who = ["alice"]
    async with Client(make_server(tmp_path, caller=lambda: who[0])) as connected:
        ticket = await begun(connected)
        who[0] = "mallory"
        answer = await called(connected, "interlock_submit_ticket", ticket_json={**ticket, "payload": FETCHED})
        assert answer["gate_result"]["status"] == "stop"
        who[0] = "alice"
        answer = await called(connected, "interlock_submit_ticket", ticket_json={**ticket, "payload": FETCHED})
        assert answer["gate_result"]["status"] == "pass"


CHANGING = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=sha256\": \")[0-9a-f:sha]+")


def stable(answer: dict[str, Any]) -> str:
    """Return an answer with what differs from run to run left out."""
    shown = {**answer, "ticket_json": "…"} if "ticket_json" in answer else answer
    return CHANGING.sub("…", json.dumps(shown, indent=1, sort_keys=True, ensure_ascii=False))


async def test_every_answer_has_the_shape_that_was_reviewed(connected: Client, snapshot: SnapshotAssertion) -> None:
    ticket = await begun(connected)
    passed = await called(connected, "interlock_submit_ticket", ticket_json={**ticket, "payload": FETCHED})
    retry = await called(connected, "interlock_submit_payload", run_id="r1", revision=2, payload={})
    stale = await called(connected, "interlock_submit_ticket", ticket_json={**ticket, "payload": FETCHED})
    minimal = {"ticket_id": "A-2", "title": "Sign-up", "state": "intake", "run_id": "poc-1"}
    answers = {
        "begin_run": {**await called(connected, "interlock_begin_run", ticket_id="A-1", run_id="r1")},
        "submit pass": passed,
        "submit retry": retry,
        "submit again": stale,
        "next_step minimal": await called(connected, "interlock_next_step", ticket_json=minimal),
        "run_status": await called(connected, "interlock_run_status", run_id="r1"),
        "run_status unknown": await called(connected, "interlock_run_status", run_id="none"),
    }
    for name, answer in answers.items():
        assert stable(answer) == snapshot(name=name)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"}),
        ("interlock_submit_ticket", {"ticket_json": {"run_id": "r1"}}),
        ("interlock_submit_payload", {"run_id": "r1", "revision": 1, "payload": FETCHED}),
        ("interlock_next_step", {"ticket_json": '{"run_id": "r1"}'}),
    ],
)
async def test_a_call_that_finds_no_slot_of_its_run_is_answered_that_the_run_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    monkeypatch.setattr("interlock.server.mcp.tickets.CallSlots", partial(CallSlots, patience_seconds=0))
    answers: list[dict[str, Any]] = []
    async with Client(make_server(tmp_path)) as connected:
        await begun(connected)
        async with anyio.create_task_group() as group:
            with TicketStore(tmp_path, "r1").locked():
                for _ in range(CALLS_ON_A_RUN):
                    group.start_soon(connected.call_tool, tool, arguments)
                await anyio.wait_all_tasks_blocked()
                answers.append(await called(connected, tool, **arguments))
    (answer,) = answers
    (issue,) = answer["gate_result"]["issues"]
    assert (issue["code"], answer["continue"], answer["ticket_json"]) == ("TKT114", True, None)
    assert ("status" in answer) == (tool == "interlock_next_step")


async def test_of_many_runs_each_move_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.server.mcp.tickets.MAX_REMEMBERED", 2)
    wanted = [f"interlock://runs/{name}/ticket" for name in ("a", "b", "c")]
    async with Client(make_server(tmp_path)) as connected, connected.listen(resource_subscriptions=wanted) as changes:
        with anyio.fail_after(30):
            for name, uri in zip("abc", wanted, strict=True):
                await begun(connected, name)
                assert getattr(await anext(changes), "uri", "") == uri
            for name, uri in zip("cba", reversed(wanted), strict=True):
                await called(connected, "interlock_submit_payload", run_id=name, revision=1, payload=FETCHED)
                assert getattr(await anext(changes), "uri", "") == uri
