"""No answer of a reservation tool outgrows a client, whatever was reserved, asked for or left behind."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types import TextContent, TextResourceContents

from interlock.reservations import MAX_ANSWER_BYTES, MAX_INBOX_BYTES
from interlock.server.mcp.reservations import RESERVATIONS_URI, ReservationCalls
from tests.server.reservation_team import call, team
from tests.server.test_reservations import TOOLS

pytestmark = pytest.mark.anyio

WIDE = "\N{GRINNING FACE}"
ANN, BOB = "ann" + WIDE * 97, "bob" + WIDE * 97
REASON = WIDE * 500
HELD = [f"packages/{number:04}_{'x' * 250}" for number in range(1000)]


def crowded(root: Path, held: int) -> dict[str, list[str]]:
    """Fill a project: leases of one agent with long names, a hundred agents with long names, requests and messages.

    Returns:
        What the calls need: the ids of the leases, and the threads of requests about them.
    """
    calls = ReservationCalls(root)
    ann, bob = calls.of(ANN), calls.of(BOB)
    ids: list[str] = []
    for begin in range(0, held, 100):
        granted = ann.reserve_files(HELD[begin : begin + 100], REASON)
        ids += [row["reservation_id"] for row in granted["reservations"]]
    for number in range(100):
        calls.of(f"{number:03}" + WIDE * 97).reserve_files([f"shared/{number}"], REASON)
    threads = [bob.negotiate_release(name, REASON)["thread_id"] or "" for name in HELD[:20]]
    for _ in range(20):
        bob.send_message(ANN, "x" * 2000)
    calls.drain()
    return {"ids": ids, "threads": threads}


@pytest.mark.long
async def test_every_tool_answers_within_the_bound_in_the_worst_case(tmp_path: Path) -> None:
    known = crowded(tmp_path, 1000)
    bad = [f"../{'x' * 200}{number}" for number in range(100)]
    fresh = [f"fresh/{number:03}_{'v' * 200}" for number in range(99)]
    steps: list[tuple[str, str, dict[str, Any]]] = [
        (BOB, "reserve_files", {"patterns": HELD[:100], "reason": REASON}),
        (BOB, "reserve_files", {"patterns": HELD[:100], "reason": REASON, "wait_seconds": 0.01}),
        (BOB, "reserve_files", {"patterns": ["**"]}),
        (BOB, "reserve_files", {"patterns": bad}),
        (BOB, "reserve_files", {"patterns": [*fresh[:50], *HELD[:50]], "partial": True, "reason": REASON}),
        (BOB, "reserve_files", {"patterns": fresh, "reason": REASON}),
        (BOB, "check_conflicts", {"patterns": HELD[:100]}),
        (BOB, "check_conflicts", {"patterns": ["**"]}),
        (BOB, "check_conflicts", {"patterns": [f"free/{name}" for name in HELD[:100]]}),
        (BOB, "check_conflicts", {"patterns": bad}),
        (BOB, "list_agents", {}),
        (BOB, "negotiate_release", {"file": "**", "reason": REASON}),
        (BOB, "negotiate_release", {"file": HELD[0], "reason": REASON, "urgency": "urgent"}),
        (BOB, "request_release", {"agent_name": ANN, "pattern": HELD[30], "reason": REASON}),
        (BOB, "send_message", {"to": "nobody" + WIDE * 90, "body": "x"}),
        (BOB, "release_files", {"reservation_ids": known["ids"]}),
        (ANN, "my_reservations", {}),
        (ANN, "fetch_inbox", {"limit": 100}),
        (ANN, "reserve_files", {"patterns": ["**"], "partial": True}),
        (ANN, "respond_to_release", {"thread_id": known["threads"][0], "action": "release", "file": HELD[0]}),
        (ANN, "respond_to_release", {"thread_id": known["threads"][1], "action": "release", "file": "**"}),
        (ANN, "release_files", {"reservation_ids": known["ids"]}),
        (ANN, "release_all", {}),
    ]
    assert {tool for _, tool, _ in steps} == TOOLS
    async with team(tmp_path, ANN, BOB) as (ann, bob):
        (content,) = (await bob.read_resource(RESERVATIONS_URI)).contents
        assert isinstance(content, TextResourceContents)
        assert 0 < len(content.text.encode()) <= MAX_ANSWER_BYTES
        cut = 0
        for who, tool, arguments in steps:
            result = await {ANN: ann, BOB: bob}[who].call_tool(tool, arguments)
            (text,) = result.content
            assert isinstance(text, TextContent)
            assert not result.is_error, text.text[:200]
            assert json.loads(text.text) == result.structured_content
            limit = MAX_INBOX_BYTES if tool == "fetch_inbox" else MAX_ANSWER_BYTES
            assert len(text.text.encode()) <= limit, (tool, list(arguments))
            cut += '"rest"' in text.text
        assert cut >= 8


@pytest.mark.long
async def test_the_rest_of_a_long_answer_is_had_by_the_call_that_it_names(tmp_path: Path) -> None:
    crowded(tmp_path, 100)
    async with team(tmp_path, ANN, BOB) as (ann, bob):
        for client, tool, part, count in (
            (ann, "my_reservations", "reservations", 100),
            (bob, "list_agents", "agents", 102),
        ):
            found: list[str] = []
            arguments: dict[str, int] = {}
            while True:
                page = await call(client, tool, **arguments)
                found += [str(row.get("pattern") or row.get("name")) for row in page[part]]
                if "rest" not in page:
                    break
                assert page["rest"][part]["more"] == count - len(found)
                arguments = {"cursor": int(page["rest"][part]["how"].rstrip(".").split()[-1])}
            assert len(found) == len(set(found)) == count
        refused = await call(bob, "reserve_files", patterns=HELD[:100])
        left = [row["pattern"] for row in refused["rest"]["errors"]["brief"]]
        narrow = await call(bob, "check_conflicts", patterns=left[:2])
        assert [(row["pattern"], row["holder"], row["reason"]) for row in narrow["conflicts"]] == [
            (name, ANN, REASON) for name in left[:2]
        ]
