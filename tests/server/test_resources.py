"""What can be read without a tool, and who is notified when it changes."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceTemplateReference, TextResourceContents

from interlock.envelope.protocol import STATUSES, TRANSITIONS
from interlock.graph import drive, load_task, start_run
from interlock.server import make_server
from interlock.server.mcp.resources import MAX_EVENTS, task_object
from tests.campaign.test_kills import greeting_project
from tests.server.stdio_process import INITIALIZE, INITIALIZED, Wire, call, server

pytestmark = pytest.mark.anyio

FETCHED = {"external_source": "github", "external_ticket_id": "7", "title": "Sign-up", "description": "A form."}


async def read(connected: Client, uri: str) -> Any:
    """Read a resource as JSON."""
    (content,) = (await connected.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/json"
    return json.loads(content.text)


async def test_the_ticket_of_a_run_is_the_authoritative_one(connected: Client) -> None:
    await connected.call_tool("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"})
    arguments = {"run_id": "r1", "revision": 1, "payload": FETCHED}
    result = await connected.call_tool("interlock_submit_payload", arguments)
    assert result.structured_content is not None
    whole, sent = await read(connected, "interlock://runs/r1/ticket"), result.structured_content["ticket_json"]
    assert {name for name in whole if whole[name] != sent[name]} == {"agent_role", "history"}
    assert whole["history"][0]["payload"] == FETCHED
    # The whole ticket can be sent back too.
    again = {**whole, "payload": {"acceptance_criteria": ["It works."], "constraints": [], "unknowns": []}}
    result = await connected.call_tool("interlock_submit_ticket", {"ticket_json": again})
    assert result.structured_content is not None
    assert result.structured_content["gate_result"]["status"] == "pass"


async def test_events_come_in_order_and_in_pages(connected: Client) -> None:
    await connected.call_tool("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"})
    await connected.call_tool("interlock_submit_payload", {"run_id": "r1", "revision": 1, "payload": FETCHED})
    whole = await read(connected, "interlock://runs/r1/events")
    numbers = [event["seq"] for event in whole["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert whole["next_after"] is None
    assert {"tool_call", "gate_passed", "transition"} <= {event["type"] for event in whole["events"]}
    paged: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = await read(connected, f"interlock://runs/r1/events?after={after}&limit=2")
        assert len(page["events"]) <= 2
        paged += page["events"]
        after = page["next_after"]
    assert paged == whole["events"]
    assert await read(connected, f"interlock://runs/r1/events?limit={MAX_EVENTS * 9}") == whole
    assert len((await read(connected, "interlock://runs/r1/events?limit=-5"))["events"]) == 1


async def test_a_task_reads_as_status_and_explain_print_it(tmp_path: Path) -> None:
    task = load_task(greeting_project(tmp_path / "project"))
    root = tmp_path / "project"
    run_id = start_run(root, task)
    drive(run_id, root=root)
    async with Client(make_server(root)) as connected:
        found = await read(connected, f"interlock://tasks/{task.task_id}")
        assert found == await read(connected, f"interlock://tasks/{run_id}")
    assert (found["status"]["status"], found["explanation"]["schema"]) == ("APPROVED", "interlock.explanation/1")
    assert found == json.loads(json.dumps(task_object(root, task.task_id)))


async def test_protocol_and_gates_are_the_tables_with_the_roster_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text('[gates.GATE-UNIT]\ncommand = ["true"]\n')
    async with Client(make_server(tmp_path)) as connected:
        protocol = await read(connected, "interlock://protocol")
        gates = await read(connected, "interlock://gates")
    assert [row["status"] for row in protocol["statuses"]] == list(STATUSES)
    assert all(row["meaning"] and row["owner"] for row in protocol["statuses"])
    assert [(row["from"], row["to"]) for row in protocol["transitions"]] == [
        (row.source, row.target) for row in TRANSITIONS
    ]
    assert "code-reviewer" in {row["name"] for row in protocol["roles"]}
    assert "GATE-UNIT" in {row["id"] for row in gates["gates"]}


@pytest.mark.parametrize(
    "uri",
    [
        "interlock://runs/none/ticket", "interlock://runs/none/events", "interlock://runs/..%2F..%2Fetc/ticket",
        "interlock://runs/../ticket", "interlock://tasks/none", "interlock://tasks/..", "interlock://nothing",
    ],
)  # fmt: skip
async def test_what_is_not_there_is_refused_as_such(uri: str, connected: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await connected.read_resource(uri)
    assert caught.value.error.code == -32602


async def test_run_ids_are_completed(connected: Client) -> None:
    for name in ("alpha", "beta", "alpine"):
        await connected.call_tool("interlock_begin_run", {"ticket_id": "A-1", "run_id": name})
    reference = ResourceTemplateReference(type="ref/resource", uri="interlock://runs/{run_id}/ticket")
    found = await connected.complete(reference, {"name": "run_id", "value": "al"})
    assert found.completion.values == ["alpha", "alpine"]


def until(wire: Wire, number: int) -> list[str]:
    """Return the addresses of the changes that are announced before the answer to a request."""
    uris: list[str] = []
    while True:
        message = wire.read()
        if message.get("id") == number:
            return uris
        assert message["method"] == "notifications/resources/updated"
        uris.append(message["params"]["uri"])


@pytest.mark.long
def test_a_client_of_an_older_revision_is_notified_of_what_it_subscribed_to(tmp_path: Path) -> None:
    uri = "interlock://runs/r1/ticket"
    with server(tmp_path, greet=False) as wire:
        greeting = wire.ask(INITIALIZE)
        assert greeting["result"]["capabilities"]["resources"]["subscribe"] is True
        wire.send(INITIALIZED)
        begin = call("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r0"}, 1)
        wire.send(begin)
        assert until(wire, 1) == [], "it did not subscribe to anything"
        subscribe = {"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}}
        assert wire.ask(subscribe)["id"] == 2
        wire.send(call("interlock_begin_run", {"ticket_id": "A-1", "run_id": "r1"}, 3))
        assert until(wire, 3) == [uri]
        wire.send(call("interlock_submit_payload", {"run_id": "r1", "revision": 1, "payload": FETCHED}, 4))
        assert until(wire, 4) == [uri]
        assert wire.ask({**subscribe, "id": 5, "method": "resources/unsubscribe"})["id"] == 5
        wire.send(call("interlock_submit_payload", {"run_id": "r1", "revision": 2, "payload": {}}, 6))
        assert until(wire, 6) == []


async def test_a_task_that_moves_in_a_thread_is_announced(tmp_path: Path) -> None:
    root = tmp_path / "project"
    task = load_task(greeting_project(root))
    made = make_server(root)
    uri = f"interlock://tasks/{task.task_id}"
    async with Client(made) as connected, connected.listen(resource_subscriptions=[uri]) as changes:
        await connected.call_tool("envelope_template", {"role": "nobody"})
        run_id = start_run(root, task)
        view = await anyio.to_thread.run_sync(lambda: made.drives.advance(run_id))
        assert view.status == "APPROVED"
        with anyio.fail_after(30):
            event = await anext(changes)
    assert isinstance(event, ResourceUpdated)
    assert event.uri == uri
