"""Minimal tickets (Governance Design): begun by their first step, answered in short, and as strictly held."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.graph.pipeline.contract import MinimalResponse, TicketResponse
from interlock.graph.pipeline.spec import POC, TICKET
from interlock.graph.pipeline.tickets import Tickets
from tests.graph.pipeline.walk import MINIMAL, PAYLOADS, codes, do_the_work

MINIMAL_TICKET = {"ticket_id": "DEMO-001", "title": "Add authentication", "state": "intake", "run_id": "run-123"}


def test_a_minimal_ticket_begins_a_run_and_walks_to_finalize(tickets: Tickets, root: Path) -> None:
    ticket: dict[str, Any] = dict(MINIMAL_TICKET)
    states: list[str] = []
    while True:
        if ticket["state"] == "act":
            do_the_work(root)
        answer = cast("MinimalResponse", tickets.next_step(json.dumps(ticket)))
        assert set(answer) == {"status", "next_state", "agent_role", "gate_result", "reason", "fixes"}
        assert answer["status"] == "pass", answer
        states.append(answer["next_state"])
        if ticket["state"] == "finalize":
            break
        ticket = {**MINIMAL_TICKET, "state": answer["next_state"], "payload": MINIMAL[answer["next_state"]]}
    assert states == [*MINIMAL, "finalize"]
    assert codes(tickets.next_step({**ticket, "payload": {"x": 1}})) == ["TKT113"]


def test_a_minimal_ticket_cannot_choose_its_state(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    answer = tickets.next_step({**MINIMAL_TICKET, "state": "act", "payload": MINIMAL["act"]})
    assert codes(answer) == ["TKT122"]
    assert tickets.state("run-123")["state"] == "extract_requirements"


def test_a_minimal_ticket_of_an_unknown_run_begins_only_in_intake(tickets: Tickets) -> None:
    answer = tickets.next_step({**MINIMAL_TICKET, "state": "act"})
    assert (codes(answer), cast("MinimalResponse", answer)["status"]) == (["TKT111"], "stop")
    assert tickets.runs() == []


@pytest.mark.parametrize("field", ["ticket_id", "title"])
def test_an_intake_without_a_field_is_not_passed(tickets: Tickets, field: str) -> None:
    without = {name: value for name, value in MINIMAL_TICKET.items() if name != field}
    for ticket in ({**MINIMAL_TICKET, field: ""}, without):
        answer = cast("MinimalResponse", tickets.next_step(ticket))
        assert answer["status"] == "retry"
        assert field in answer["gate_result"]["missing_or_invalid_fields"]


def test_an_intake_with_a_mended_title_passes(tickets: Tickets) -> None:
    tickets.next_step({**MINIMAL_TICKET, "title": ""})
    assert cast("MinimalResponse", tickets.next_step(MINIMAL_TICKET))["next_state"] == "extract_requirements"


def test_the_title_of_a_minimal_ticket_stands_once_it_passed(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    ticket = {**MINIMAL_TICKET, "state": "extract_requirements", "payload": MINIMAL["extract_requirements"]}
    assert codes(tickets.next_step({**ticket, "title": "Another"})) == ["TKT122"]
    assert codes(tickets.next_step({**ticket, "description": "Late"})) == ["TKT122"]
    assert codes(tickets.next_step({**ticket, "description": None})) == []


def test_a_minimal_step_that_is_repeated_returns_the_first_result(tickets: Tickets) -> None:
    first = tickets.next_step(MINIMAL_TICKET)
    assert tickets.next_step(MINIMAL_TICKET) == first
    ticket = {**MINIMAL_TICKET, "state": "extract_requirements", "payload": MINIMAL["extract_requirements"]}
    second = tickets.next_step(ticket)
    assert tickets.next_step(ticket) == second
    assert tickets.state("run-123")["revision"] == 3


def test_the_minimal_pipeline_has_the_seven_states(tickets: Tickets) -> None:
    assert [stage.name for stage in POC.stages] == [
        "intake", "extract_requirements", "scope_context", "gather_evidence", "propose_plan", "act", "finalize",
    ]  # fmt: skip
    assert [stage.name for stage in TICKET.stages] == list(PAYLOADS)


def test_unreadable_input_to_next_step_has_both_shapes(tickets: Tickets) -> None:
    answer = tickets.next_step("no json")
    assert set(answer) == set(TicketResponse.__annotations__) | set(MinimalResponse.__annotations__)


def test_the_last_minimal_step_can_be_repeated_too(tickets: Tickets, root: Path) -> None:
    """The state after it has the same name, and an agent that lost the answer must not be told to stop."""
    tickets.next_step(MINIMAL_TICKET)
    ticket: dict[str, Any] = {}
    answer: object = None
    for state, payload in MINIMAL.items():
        if state == "act":
            do_the_work(root)
        ticket = {**MINIMAL_TICKET, "state": state, "payload": payload}
        answer = tickets.next_step(ticket)
    assert cast("MinimalResponse", answer)["status"] == "pass"
    assert tickets.next_step(ticket) == answer


def test_a_minimal_ticket_with_an_old_revision_is_refused_once_and_its_repeat_answered(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    nothing: dict[str, Any] = {}
    ticket: dict[str, Any] = {**MINIMAL_TICKET, "state": "extract_requirements", "revision": 2, "payload": nothing}
    first = tickets.next_step(ticket)
    assert tickets.next_step(ticket) == first
    assert codes(tickets.next_step({**ticket, "payload": {"constraints": []}})) == ["TKT121"]
    assert tickets.state("run-123")["revision"] == 3
