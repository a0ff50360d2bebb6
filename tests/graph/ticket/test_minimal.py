"""Minimal tickets (Governance Design): begun by their first step, answered in short, and as strictly held."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.graph.engine.folder import journal_beside
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
    assert [*(stage.name for stage in POC.stages), POC.end_state] == [
        "intake", "extract_requirements", "scope_context", "gather_evidence", "propose_plan", "act", "finalize",
    ]  # fmt: skip
    assert [stage.name for stage in TICKET.stages] == list(PAYLOADS)


def test_unreadable_input_to_next_step_has_both_shapes(tickets: Tickets) -> None:
    answer = tickets.next_step("no json")
    assert set(answer) == set(TicketResponse.__annotations__) | set(MinimalResponse.__annotations__)


def test_a_minimal_ticket_with_an_old_revision_is_refused_once_and_its_repeat_answered(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    nothing: dict[str, Any] = {}
    ticket: dict[str, Any] = {**MINIMAL_TICKET, "state": "extract_requirements", "revision": 2, "payload": nothing}
    first = tickets.next_step(ticket)
    assert tickets.next_step(ticket) == first
    assert codes(tickets.next_step({**ticket, "payload": {"constraints": []}})) == ["TKT121"]
    assert tickets.state("run-123")["revision"] == 3


# -- where the fields of a stage are, and what is refused ------------------------------------------------------------


def walk_to_act(tickets: Tickets) -> dict[str, Any]:
    """Take the minimal run to `act`, with the fields of each stage beside the others, and return its ticket."""
    ticket: dict[str, Any] = dict(MINIMAL_TICKET)
    answer = cast("MinimalResponse", tickets.next_step(ticket))
    while answer["next_state"] != "act":
        ticket |= {"state": answer["next_state"], **MINIMAL[answer["next_state"]]}
        answer = cast("MinimalResponse", tickets.next_step(ticket))
        assert answer["status"] == "pass", answer
    return ticket | {"state": "act"}


def test_the_fields_of_a_stage_may_be_in_the_ticket_itself(tickets: Tickets, root: Path) -> None:
    ticket = walk_to_act(tickets)
    do_the_work(root)
    assert cast("MinimalResponse", tickets.next_step({**ticket, **MINIMAL["act"]}))["next_state"] == "finalize"


def test_a_field_that_passed_cannot_be_changed_beside_the_next_ones(tickets: Tickets) -> None:
    ticket = walk_to_act(tickets)
    answer = tickets.next_step({**ticket, "unknowns": ["everything"], **MINIMAL["act"]})
    assert [(item["code"], item["field"]) for item in answer["gate_result"]["issues"]] == [("TKT122", "unknowns")]


def test_a_field_with_two_values_is_refused(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    payload = MINIMAL["extract_requirements"]
    ticket = {**MINIMAL_TICKET, "state": "extract_requirements", "payload": payload, "constraints": ["Other."]}
    assert codes(tickets.next_step(ticket)) == ["TKT106"]
    assert codes(tickets.next_step({**ticket, "constraints": payload["constraints"]})) == []


@pytest.mark.parametrize("state", ["intake", "extract_requirements"])
@pytest.mark.parametrize(
    "more", [{"agent_role": "x"}, {"status": "pass"}, {"gate_result": {}, "reason": "r"}, {"history": []}]
)
def test_each_unknown_key_has_one_finding_and_the_ticket_comes_back(
    tickets: Tickets, state: str, more: dict[str, Any]
) -> None:
    if state != "intake":
        tickets.next_step(MINIMAL_TICKET)
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "state": state, **more}))
    assert set(answer) == set(MinimalResponse.__annotations__)
    named = [item["field"] for item in answer["gate_result"]["issues"] if item["code"] == "TKT105"]
    assert (answer["status"], named, codes(answer)) == ("retry", list(more), ["TKT105"] * len(more))
    assert (answer["next_state"], len(answer["fixes"])) == (state, len(more))
    assert answer["updated_ticket"] is not None
    assert answer["updated_ticket"]["state"] == state


def test_the_ticket_comes_back_after_a_forged_state_and_can_be_gone_on_with(tickets: Tickets) -> None:
    tickets.next_step(MINIMAL_TICKET)
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "state": "act", **MINIMAL["act"]}))
    assert (answer["status"], answer["gate_result"]["issues"][0]["code"]) == ("retry", "TKT122")
    back = {**(answer["updated_ticket"] or {}), **MINIMAL["extract_requirements"]}
    assert cast("MinimalResponse", tickets.next_step(back))["status"] == "pass"


@pytest.mark.parametrize("title", ["", "  ", None, 7])
def test_a_ticket_without_a_title_begins_nothing(tickets: Tickets, root: Path, title: object) -> None:
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, "title": title}))
    assert (answer["status"], answer["gate_result"]["missing_or_invalid_fields"]) == ("retry", ["title"])
    assert tickets.runs() == []
    assert not (root / "artifacts").exists()
    assert answer["updated_ticket"] is not None
    back = {**answer["updated_ticket"], "title": "Add authentication"}
    assert cast("MinimalResponse", tickets.next_step(back))["next_state"] == "extract_requirements"
    assert tickets.state("run-123")["failures"] == []


# -- the end ---------------------------------------------------------------------------------------------------------


def test_reaching_finalize_ends_the_run_and_keeps_what_the_last_submission_hands_over(
    tickets: Tickets, root: Path
) -> None:
    ticket = walk_to_act(tickets)
    do_the_work(root)
    answer = cast("MinimalResponse", tickets.next_step({**ticket, **MINIMAL["act"], **MINIMAL["finalize"]}))
    assert (answer["status"], answer["next_state"]) == ("pass", "finalize")
    assert tickets.state("run-123")["done"]
    assert tickets.ticket("run-123")["history"][-1].get("payload") == {**MINIMAL["act"], **MINIMAL["finalize"]}
    passed = [entry for entry in tickets.events("run-123") if entry.type == "gate_passed"][-1]
    assert [row["path"] for row in passed.data["artifacts"]] == ["app.py"]


def test_what_is_handed_over_may_come_once_after_the_end(tickets: Tickets, root: Path) -> None:
    ticket = walk_to_act(tickets)
    do_the_work(root)
    tickets.next_step({**ticket, **MINIMAL["act"]})
    assert tickets.state("run-123")["done"]
    last = {**MINIMAL_TICKET, "state": "finalize"}
    wrong = tickets.next_step({**last, **MINIMAL["finalize"], "artifacts": ["gone.py"]})
    assert (codes(wrong), wrong["gate_result"]["status"]) == (["STG702"], "retry")
    first = tickets.next_step({**last, **MINIMAL["finalize"]})
    assert first["gate_result"]["status"] == "pass"
    (recorded,) = [row for row in tickets.journal.entries(journal_beside("run-123")) if row.type == "recorded"]
    assert (recorded.data["payload"], recorded.data["artifacts"][0]["path"]) == (MINIMAL["finalize"], "app.py")
    assert tickets.next_step({**last, **MINIMAL["finalize"]}) == first
    assert codes(tickets.next_step({**last, **MINIMAL["finalize"], "outcome": "blocked"})) == ["TKT113"]


def test_refusals_of_what_comes_after_the_end_are_bounded(tickets: Tickets, root: Path) -> None:
    ticket = walk_to_act(tickets)
    do_the_work(root)
    tickets.next_step({**ticket, **MINIMAL["act"]})
    last = {**MINIMAL_TICKET, "state": "finalize", **MINIMAL["finalize"]}
    found = [codes(tickets.next_step({**last, "artifacts": [f"gone{at}.py"]}))[0] for at in range(12)]
    assert found[0] == "STG702"
    assert "TKT124" in found
    assert found[-1] == "TKT113"
    assert set(found[found.index("TKT124") + 1 :]) == {"TKT113"}
    assert codes(tickets.next_step(last)) == ["TKT113"]
    assert tickets.state("run-123")["done"]
