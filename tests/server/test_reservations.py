"""The toolset `reservations` through a client: what it lists, what each tool answers, and what it refuses."""

import asyncio
import gc
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import TextResourceContents
from syrupy.assertion import SnapshotAssertion

from interlock.journal import Journal
from interlock.reservations import MAX_ANSWER_BYTES, place
from interlock.server import make_server
from interlock.server.mcp.concurrency import CALLS
from interlock.server.mcp.reservations import RESERVATIONS_URI, ReservationCalls
from tests.server.reservation_team import Answer, call, codes, team
from tests.server.test_app import error_of, tool_list

pytestmark = pytest.mark.anyio

TOOLS = {
    "reserve_files",
    "release_files",
    "release_all",
    "check_conflicts",
    "my_reservations",
    "send_message",
    "fetch_inbox",
    "list_agents",
    "request_release",
    "negotiate_release",
    "respond_to_release",
}
MAX_TOOLSET_BYTES = 9_856


async def ids(client: Client) -> list[str]:
    """Return the ids of what a client holds."""
    return [lease["reservation_id"] for lease in (await call(client, "my_reservations"))["reservations"]]


async def current_state(client: Client) -> Answer:
    """Read the resource."""
    (content,) = (await client.read_resource(RESERVATIONS_URI)).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)


async def test_the_eleven_tools_are_the_ones_that_were_reviewed(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    listed = await tool_list(tmp_path, "reservations")
    assert {tool["name"] for tool in listed} == TOOLS
    assert len(json.dumps(listed, separators=(",", ":"))) <= MAX_TOOLSET_BYTES
    assert json.dumps(listed, indent=1) == snapshot


async def test_two_agents_conflict_negotiate_and_hand_over_while_one_waits(anna: Client, ben: Client) -> None:
    assert codes(await call(anna, "reserve_files", patterns=["a.py"], reason="r")) == []
    refused = await call(ben, "reserve_files", patterns=["a.py"])
    assert (codes(refused), refused["errors"][0]["conflict"]["holder"]) == (["RSV201"], "anna")
    assert refused["errors"][0]["next"]["tool"] in TOOLS
    answers: list[Answer] = []

    async def wait() -> None:
        answers.append(await call(ben, "negotiate_release", file="a.py", reason="fix", wait_seconds=40))

    thread = ""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            thread = await asked(anna)
            done = await call(anna, "respond_to_release", thread_id=thread, action="release")
            assert (done["status"], len(done["released"])) == ("released", 1)
    assert answers[0]["status"] == "release"
    (lease,) = (await call(ben, "my_reservations"))["reservations"]
    assert (lease["pattern"], lease["holder"]) == ("a.py", "ben")
    (ack,) = [each for each in (await call(ben, "fetch_inbox"))["messages"] if each["topic"] == "release-ack"]
    assert (ack["thread_id"], json.loads(ack["body"])["released_by"]) == (thread, "anna")
    assert (await call(anna, "fetch_inbox"))["messages"] == [], "it was read"


async def asked(client: Client) -> str:
    """Read the inbox until somebody asks for a release; return the thread."""
    while True:
        for message in (await call(client, "fetch_inbox"))["messages"]:
            if message["topic"] == "release-request":
                return message["thread_id"]
        await anyio.lowlevel.checkpoint()


async def queued(client: Client, count: int) -> None:
    """Wait until so many are in the wait queue."""
    while len((await current_state(client))["waiters"]) < count:
        await anyio.lowlevel.checkpoint()


async def test_a_wait_in_the_queue_blocks_nobody_and_ends_with_the_grant(anna: Client, ben: Client) -> None:
    await call(anna, "reserve_files", patterns=["a.py"])
    answers: list[Answer] = []

    async def wait() -> None:
        answers.append(await call(ben, "reserve_files", patterns=["a.py"], wait_seconds=45))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await queued(anna, 1)
            assert (await call(ben, "my_reservations"))["reservations"] == [], "the waiting agent may call too"
            assert (await call(anna, "release_files", reservation_ids=await ids(anna)))["released"]
    assert codes(answers[0]) == []
    assert await ids(ben) == [answers[0]["reservations"][0]["reservation_id"]]


async def test_more_waits_than_one_caller_may_have_leave_slots_for_every_other_call(anna: Client, ben: Client) -> None:
    await call(anna, "reserve_files", patterns=["**"])
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def wait(number: int) -> None:
                await call(ben, "reserve_files", patterns=[f"f{number}"], wait_seconds=45)

            for number in range(CALLS + 4):
                group.start_soon(wait, number)
            await queued(anna, CALLS)
            assert codes(await call(ben, "check_conflicts", patterns=["x"])) == []
            assert (await call(anna, "release_all"))["released_count"] == 1


def test_a_wait_whose_client_went_away_ends_at_its_next_look(tmp_path: Path) -> None:
    gone = threading.Event()
    mine = ReservationCalls(tmp_path).of("ben", gone)
    mine.runtime.pause(0)
    gone.set()
    with pytest.raises(asyncio.CancelledError):
        mine.runtime.pause(60)


async def test_a_call_that_its_client_takes_back_leaves_the_queue_and_no_trace_in_the_log(
    caplog: pytest.LogCaptureFixture, anna: Client, ben: Client
) -> None:
    await call(anna, "reserve_files", patterns=["a.py"])
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call(ben, "reserve_files", patterns=["a.py"], wait_seconds=45))
            await queued(anna, 1)
            group.cancel_scope.cancel()
        while (await current_state(anna))["waiters"]:
            await anyio.lowlevel.checkpoint()
    assert codes(await call(ben, "reserve_files", patterns=["b.py"])) == []
    gc.collect()
    assert caplog.records == []


BIG = "x" * 1_000_000
BAD: list[tuple[str, Answer, list[str]]] = [
    ("reserve_files", {"patterns": [f"f{n}" for n in range(10_000)]}, ["RSV105"]),
    ("reserve_files", {"patterns": ["../x"]}, ["RSV101"]),
    ("reserve_files", {"patterns": [BIG]}, ["RSV102"]),
    ("reserve_files", {"patterns": ["a"], "ttl_minutes": 1e300}, ["RSV105"]),
    ("reserve_files", {"patterns": "a"}, ["MCP202"]),
    ("reserve_files", {}, ["MCP202"]),
    ("reserve_files", {"patterns": ["a"], "agent_id": "ben"}, ["MCP202"]),
    ("release_files", {"reservation_ids": ["rsv_ffffffffffffffff"]}, ["RSV202"]),
    ("release_files", {"reservation_ids": ["HELD"]}, ["RSV202"]),
    ("send_message", {"to": "nobody", "body": "x"}, ["RSV301"]),
    ("send_message", {"to": "anna", "body": BIG}, ["RSV302"]),
    ("fetch_inbox", {"cursor": "one"}, ["MCP202"]),
    ("request_release", {"agent_name": "anna", "pattern": "free.py", "reason": "r"}, ["RSV303"]),
    ("negotiate_release", {"file": "held.py", "reason": "r", "urgency": "asap"}, ["MCP202"]),
    ("respond_to_release", {"thread_id": "neg_ffffffffffffffff", "action": "release"}, ["RSV305"]),
    ("respond_to_release", {"thread_id": "THREAD", "action": "release"}, ["RSV305"]),
    ("respond_to_release", {"thread_id": "THREAD", "action": "defer", "eta_minutes": 1e9}, ["RSV105"]),
]


def stored(root: Path) -> dict[str, list[Any]]:
    """Return every row that a refused call must leave as it is: all but signs of life and the record of refusals."""
    with sqlite3.connect(place.find(str(root)).store_path) as rows:
        named = rows.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        tables = {name for (name,) in named} - {"agent", "event", "process", "meta", "counter"}
        found = {name: sorted(map(repr, rows.execute(f"SELECT * FROM {name}"))) for name in sorted(tables)}
    rows.close()
    return found


async def test_bad_input_is_refused_with_its_rule_and_changes_nothing(tmp_path: Path) -> None:
    async with team(tmp_path, "anna", "ben", "cleo") as (anna, ben, cleo):
        held = (await call(anna, "reserve_files", patterns=["held.py"]))["reservations"][0]["reservation_id"]
        thread = (await call(cleo, "negotiate_release", file="held.py", reason="r"))["thread_id"]
        await call(ben, "my_reservations")
        before = stored(tmp_path)
        assert {"lease", "message", "negotiation"} <= set(before)
        for tool, arguments, expected in BAD:
            text = json.dumps(arguments).replace('"HELD"', f'"{held}"').replace('"THREAD"', f'"{thread}"')
            result = await ben.call_tool(tool, json.loads(text))
            if result.is_error:
                error = error_of(result)
                found = [error["code"]]
                assert error["fix"]
            else:
                assert result.structured_content is not None
                found = codes(result.structured_content)
            assert found == expected, (tool, text[:200])
            assert len(str(result.content)) < 3000, "what was sent is not sent back"
            assert stored(tmp_path) == before, (tool, text[:200])


async def test_an_answer_keeps_its_bound_and_counts_the_rest(anna: Client) -> None:
    answer = await call(anna, "reserve_files", patterns=[f"../{'x' * 200}{number}" for number in range(100)])
    assert len(json.dumps(answer, separators=(",", ":"))) <= MAX_ANSWER_BYTES
    assert answer["rest"]["errors"] == 100 - len(answer["errors"])


async def test_a_broken_configuration_stops_no_call_and_a_broken_store_is_reported_with_a_fix(tmp_path: Path) -> None:
    async with team(tmp_path, "anna") as (anna,):
        (tmp_path / "interlock.toml").write_text("[reservations]\nttl_minuts = 1\n")
        assert codes(await call(anna, "reserve_files", patterns=["a"])) == []
        (tmp_path / "interlock.toml").write_text("")
    store = Path(place.find(str(tmp_path)).store_path)
    store.write_bytes(b"no database at all" * 1000)
    async with team(tmp_path, "anna") as (anna,):
        error = error_of(await anna.call_tool("reserve_files", {"patterns": ["a"]}))
        assert (error["code"], bool(error["fix"])) == ("RSV902", True)
        assert str(store) in error["message"]
        assert not (await anna.call_tool("envelope_template", {"role": "visual-qa"})).is_error


async def test_reading_the_resource_makes_no_store_and_no_agent_and_shows_what_the_calls_made(
    tmp_path: Path, anna: Client, ben: Client
) -> None:
    assert await current_state(anna) == {"leases": [], "waiters": [], "negotiations": []}
    assert list(tmp_path.iterdir()) == []
    await call(anna, "reserve_files", patterns=["a.py"])
    assert len((await current_state(ben))["leases"]) == 1
    assert [row["name"] for row in (await call(anna, "list_agents"))["agents"]] == ["anna"]
    await call(ben, "negotiate_release", file="a.py", reason="r", urgency="low")
    shown = await current_state(anna)
    assert [lease["pattern"] for lease in shown["leases"]] == ["a.py"]
    (row,) = shown["negotiations"]
    assert (row["requester"], row["holder"], row["urgency"], row["state"]) == ("ben", "anna", "low", "pending")


async def test_who_listens_is_notified_when_leases_change_and_not_when_they_are_looked_at(tmp_path: Path) -> None:
    server = make_server(tmp_path, caller=lambda: "anna")
    async with Client(server) as anna, anna.listen(resource_subscriptions=[RESERVATIONS_URI]) as events:
        await call(anna, "check_conflicts", patterns=["a.py"])
        await call(anna, "my_reservations")
        await call(anna, "reserve_files", patterns=["a.py"])
        with anyio.fail_after(30):
            event = await anext(events)
        assert isinstance(event, ResourceUpdated)
        assert event.uri == RESERVATIONS_URI
        await call(anna, "list_agents")
        with anyio.move_on_after(0.1) as quiet:
            await anext(events)
        assert quiet.cancelled_caught


async def test_what_happened_is_in_the_journal_when_the_server_has_ended(tmp_path: Path) -> None:
    server = make_server(tmp_path, caller=lambda: "anna")
    async with Client(server) as anna:
        await call(anna, "reserve_files", patterns=["a.py"])
        await call(anna, "release_all")
    server.close()
    journal = Journal(tmp_path / "artifacts" / "interlock" / "events.jsonl")
    assert [entry.type for entry in journal.entries("reservations")] == [
        "agent_joined",
        "lease_granted",
        "lease_released",
    ]


async def test_a_journal_that_cannot_be_written_costs_no_answer_and_no_event(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "artifacts").write_text("no folder")
    server = make_server(tmp_path, caller=lambda: "anna")
    async with Client(server) as anna:
        assert codes(await call(anna, "reserve_files", patterns=["a.py"])) == []
        server.close()
        assert any("queued" in row.message for row in caplog.records)
        (tmp_path / "artifacts").unlink()
    server.close()
    journal = Journal(tmp_path / "artifacts" / "interlock" / "events.jsonl")
    assert "lease_granted" in [entry.type for entry in journal.entries("reservations")]


async def test_the_name_of_a_session_is_looked_up_on_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Client(make_server(tmp_path)) as client:
        await call(client, "reserve_files", patterns=["a"])
        monkeypatch.setenv("INTERLOCK_AGENT_ID", "named-later")
        (lease,) = (await call(client, "reserve_files", patterns=["b"]))["reservations"]
        assert lease["holder"] == "named-later"
        kinds = {row["name"]: row["kind"] for row in (await call(client, "list_agents"))["agents"]}
    assert kinds.pop("named-later") == "agent"
    assert list(kinds.values()) == ["agent"]
