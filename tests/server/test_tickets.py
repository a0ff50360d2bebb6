"""The ticket tools over MCP: a text is judged as it came, refusals are results, and every answer has its shape."""

import json
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from interlock.graph import MinimalResponse, RunStatus, TicketResponse
from interlock.server import make_server

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


@pytest.mark.parametrize("name", ["interlock_submit_ticket", "interlock_next_step"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"run_id":"r1","payload":{"a":1,"a":2}}',
        '{"run_id":NaN}',
        '{"a":' * 5000 + "1" + "}" * 5000,
    ],
    ids=lambda text: repr(text)[:30],
)
async def test_a_text_is_judged_unparsed_and_is_refused_as_a_result(connected: Client, name: str, text: str) -> None:
    """A lenient reader on the way would hide the second key, the NaN and the depth."""
    before = await begun(connected)
    answer = await called(connected, name, ticket_json=text)
    assert answer["gate_result"]["status"] in {"retry", "stop"}
    assert answer["gate_result"]["issues"]
    assert (await begun(connected)) == before


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


async def test_every_answer_has_the_shape_that_was_reviewed(connected: Client) -> None:
    ticket = await begun(connected)
    passed = await called(connected, "interlock_submit_ticket", ticket_json={**ticket, "payload": FETCHED})
    retry = await called(connected, "interlock_submit_payload", run_id="r1", revision=2, payload={})
    stale = await called(connected, "interlock_submit_ticket", ticket_json={**ticket, "payload": FETCHED})
    unknown = await called(connected, "interlock_run_status", run_id="none")
    for answer in (passed, retry, stale, unknown):
        assert set(answer) == set(TicketResponse.__required_keys__)
        assert set(answer["gate_result"]) == {"status", "missing_or_invalid_fields", "issues"}
        assert answer["next_role"]
    assert [answer["gate_result"]["status"] for answer in (passed, retry, stale)] == ["pass", "retry", "pass"]
    minimal = {"ticket_id": "A-2", "title": "Sign-up", "state": "intake", "run_id": "poc-1"}
    short = await called(connected, "interlock_next_step", ticket_json=minimal)
    assert set(short) == set(MinimalResponse.__annotations__)
    assert (short["status"], short["gate_result"]["reasons"], short["fixes"]) == ("pass", [short["reason"]], [])
    assert set(await called(connected, "interlock_run_status", run_id="r1")) == set(RunStatus.__annotations__)


async def read(connected: Client, uri: str) -> Any:
    """Read a resource as JSON."""
    (content,) = (await connected.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/json"
    return json.loads(content.text)


async def test_the_ticket_of_a_run_is_the_authoritative_one(connected: Client) -> None:
    await begun(connected)
    answer = await called(connected, "interlock_submit_payload", run_id="r1", revision=1, payload=FETCHED)
    assert await read(connected, "interlock://runs/r1/ticket") == answer["ticket_json"]


async def test_events_come_in_order_and_in_pages(connected: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    await begun(connected)
    await called(connected, "interlock_submit_payload", run_id="r1", revision=1, payload=FETCHED)
    whole = await read(connected, "interlock://runs/r1/events")
    numbers = [event["seq"] for event in whole["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert whole["next_after"] is None
    assert {"tool_call", "gate_passed", "transition"} <= {event["type"] for event in whole["events"]}
    monkeypatch.setattr("interlock.server.mcp.tickets.MAX_EVENTS", 2)
    paged: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = await read(connected, f"interlock://runs/r1/events?after={after}")
        assert len(page["events"]) <= 2
        paged += page["events"]
        after = page["next_after"]
    assert paged == whole["events"]


@pytest.mark.parametrize(
    "uri", ["interlock://runs/none/ticket", "interlock://runs/r1/events?after=zz", "interlock://nothing"]
)
async def test_what_cannot_be_read_is_the_readers_error(uri: str, connected: Client) -> None:
    await begun(connected)
    with pytest.raises(MCPError) as caught:
        await connected.read_resource(uri)
    assert caught.value.error.code == -32602
    assert "INTERNAL" not in caught.value.error.message


async def test_a_query_that_does_not_fit_is_named_with_what_was_found(connected: Client) -> None:
    await begun(connected)
    with pytest.raises(MCPError) as caught:
        await connected.read_resource("interlock://runs/r1/events?after=zz")
    data = caught.value.error.data
    assert (data["code"], data["place"], data["found"]) == ("MCP202", "after", 'the text "zz"')


async def test_each_move_of_a_run_is_announced(tmp_path: Path) -> None:
    wanted = [f"interlock://runs/{name}/ticket" for name in ("a", "b", "c")]
    async with Client(make_server(tmp_path)) as connected, connected.listen(resource_subscriptions=wanted) as changes:
        with anyio.fail_after(30):
            for name, uri in zip("abc", wanted, strict=True):
                await begun(connected, name)
                assert getattr(await anext(changes), "uri", "") == uri
            for name, uri in zip("cba", reversed(wanted), strict=True):
                await called(connected, "interlock_submit_payload", run_id=name, revision=1, payload=FETCHED)
                assert getattr(await anext(changes), "uri", "") == uri
