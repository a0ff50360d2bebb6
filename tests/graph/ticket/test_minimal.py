"""Minimal tickets (Governance Design): begun by their first step, answered in short, and as strictly held."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.graph.ticket.contract import MinimalResponse, TicketResponse
from interlock.graph.ticket.spec import POC, TICKET
from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.walk import MINIMAL, MINIMAL_TICKET, PAYLOADS, codes, do_the_work


def test_a_minimal_ticket_begins_a_run_and_walks_to_finalize(tickets: Tickets, root: Path) -> None:
    ticket: dict[str, Any] = dict(MINIMAL_TICKET)
    states: list[str] = []
    while True:
        if ticket["state"] == "act":
            do_the_work(root)
        answer = cast("MinimalResponse", tickets.next_step(json.dumps(ticket)))
        keys = {"status", "next_state", "agent_role", "gate_result", "reason", "fixes", "updated_ticket"}
        assert set(answer) == keys
        assert answer["status"] == "pass", answer
        states.append(answer["next_state"])
        if ticket["state"] == "finalize":
            break
        ticket = {**MINIMAL_TICKET, "state": answer["next_state"], "payload": MINIMAL[answer["next_state"]]}
    assert states == [*MINIMAL, "finalize"]
    assert codes(tickets.next_step({**ticket, "payload": {"x": 1}})) == ["TKT113"]


def test_the_title_of_a_minimal_ticket_is_fixed_once_it_passed(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    ticket = {**MINIMAL_TICKET, "state": "extract_requirements", "payload": MINIMAL["extract_requirements"]}
    assert codes(tickets.next_step({**ticket, "title": "Another"})) == ["TKT122"]
    assert codes(tickets.next_step({**ticket, "description": "Late"})) == ["TKT122"]
    assert codes(tickets.next_step({**ticket, "description": None})) == []


def test_the_minimal_pipeline_has_the_seven_states(tickets: Tickets) -> None:
    assert [stage.name for stage in POC.stages] == ["intake", *MINIMAL]
    assert [stage.name for stage in TICKET.stages] == list(PAYLOADS)


def test_unreadable_input_to_next_step_has_both_shapes(tickets: Tickets) -> None:
    answer = tickets.next_step("no json")
    assert set(answer) == set(TicketResponse.__required_keys__) | set(MinimalResponse.__annotations__)


def test_a_minimal_ticket_with_an_old_revision_is_refused_once_and_its_repeat_answered(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    nothing: dict[str, Any] = {}
    ticket: dict[str, Any] = {**MINIMAL_TICKET, "state": "extract_requirements", "revision": 2, "payload": nothing}
    first = tickets.next_step(ticket)
    assert tickets.next_step(ticket) == first
    assert codes(tickets.next_step({**ticket, "payload": {"constraints": []}})) == ["TKT121"]
    assert tickets.state("run-123")["revision"] == 3


# -- what is refused -------------------------------------------------------------------------------------------------


def walk_to_act(tickets: Tickets) -> dict[str, Any]:
    """Take the minimal run to `act`, and return its ticket."""
    ticket: dict[str, Any] = dict(MINIMAL_TICKET)
    answer = cast("MinimalResponse", tickets.next_step(ticket))
    while answer["next_state"] != "act":
        ticket |= {"state": answer["next_state"], "payload": MINIMAL[answer["next_state"]]}
        answer = cast("MinimalResponse", tickets.next_step(ticket))
        assert answer["status"] == "pass", answer
    return ticket | {"state": "act", "payload": MINIMAL["act"]}


@pytest.mark.parametrize("state", ["intake", "extract_requirements"])
@pytest.mark.parametrize("more", [{"agent_role": "x"}, {"gate_result": {}, "reason": "r"}, {"unknowns": []}])
def test_fields_that_no_minimal_ticket_has_are_named_in_one_finding(
    tickets: Tickets, state: str, more: dict[str, Any]
) -> None:
    if state != "intake":
        tickets.next_step(MINIMAL_TICKET)
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "state": state, **more}))
    (item,) = answer["gate_result"]["issues"]
    assert (answer["status"], item["code"], item["found"]) == ("retry", "TKT122", ", ".join(more))
    assert (answer["updated_ticket"] is None) == (state == "intake")


def test_a_payload_in_the_first_stage_is_refused_with_the_place_for_its_fields(tickets: Tickets) -> None:
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "payload": {}}))
    assert (answer["status"], codes(answer)) == ("retry", ["TKT122"])
    assert "the ticket itself holds" in answer["fixes"][0]


def test_a_budget_that_is_spent_is_the_first_reason_and_its_fix_is_to_stop(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    nothing: dict[str, Any] = {}
    wrong: dict[str, Any] = {**MINIMAL_TICKET, "state": "extract_requirements", "payload": nothing}
    answer = cast("MinimalResponse", [tickets.next_step(wrong) for _ in range(3)][-1])
    assert (answer["status"], answer["next_state"]) == ("stop", "fail_closed")
    assert answer["gate_result"]["reasons"][0] == answer["reason"]
    assert answer["fixes"][0] == "Stop and report this to the user."
    assert len(answer["gate_result"]["reasons"]) == len(answer["fixes"])


def test_the_ticket_comes_back_after_a_forged_state_and_can_be_gone_on_with(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "state": "act", "payload": MINIMAL["act"]}))
    assert (answer["status"], answer["gate_result"]["issues"][0]["code"]) == ("retry", "TKT122")
    back = {**(answer["updated_ticket"] or {}), "payload": MINIMAL["extract_requirements"]}
    assert cast("MinimalResponse", tickets.next_step(back))["status"] == "pass"


@pytest.mark.parametrize("title", ["", None])
def test_a_ticket_without_a_title_begins_nothing(tickets: Tickets, root: Path, title: object) -> None:
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "title": title}))
    assert (answer["status"], answer["gate_result"]["missing_or_invalid_fields"]) == ("retry", ["title"])
    assert tickets.runs() == []
    assert not (root / "artifacts").exists()
    assert cast("MinimalResponse", tickets.next_step(MINIMAL_TICKET))["next_state"] == "extract_requirements"
    assert tickets.state("run-123")["failures"] == []


# -- the end ---------------------------------------------------------------------------------------------------------


def test_the_last_stage_hands_over_and_ends_the_run(tickets: Tickets, root: Path) -> None:
    """Governance Design §FSM Engine: `FINALIZE` → Store artifacts, post summary (terminal)."""
    ticket = walk_to_act(tickets)
    do_the_work(root)
    answer = cast("MinimalResponse", tickets.next_step(ticket))
    assert (answer["next_state"], tickets.state("run-123")["done"]) == ("finalize", False)
    final = MINIMAL["finalize"]
    last = {**MINIMAL_TICKET, "state": "finalize", "payload": final}
    wrong = tickets.next_step({**last, "payload": {**final, "artifacts": ["gone.py"]}})
    assert (codes(wrong), wrong["gate_result"]["status"]) == (["STG702"], "retry")
    first = tickets.next_step(last)
    assert first["gate_result"]["status"] == "pass"
    assert tickets.state("run-123")["done"]
    passed = [entry for entry in tickets.events("run-123", limit=1000) if entry.type == "gate_passed"][-1]
    assert [row["path"] for row in passed.data["artifacts"]] == ["app.py"]
    assert tickets.next_step(last) == first
    assert codes(tickets.next_step({**last, "payload": {**final, "outcome": "blocked"}})) == ["TKT113"]
