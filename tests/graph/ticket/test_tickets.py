"""A ticket run: begun, worked on, refused and finished, through the one object that the server uses."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.graph.engine.folder import copies_dir, journal_run
from interlock.graph.ticket.contract import Ticket, TicketResponse
from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.walk import (
    PAYLOADS,
    STATES,
    codes,
    do_the_work,
    events,
    filled,
    make_project,
    ticket_of,
    walk_to,
)

# -- Ticket Protocol §Tools and §Workflow --------------------------------------------------------------------------


def test_a_begun_run_returns_a_clean_ticket_at_fetch_ticket(tickets: Tickets) -> None:
    answer = tickets.begin("SHOP-7")
    ticket = ticket_of(answer)
    assert (ticket["state"], ticket["payload"], ticket["revision"], ticket["history"]) == ("fetch_ticket", {}, 1, [])
    assert ticket["validation"] == {"status": "pending", "errors": []}
    assert ticket["invalidation_report"] is None
    assert ticket["required_fields"] == ["external_source", "external_ticket_id", "title", "description"]
    assert ticket["next_stage_fields"] == ["acceptance_criteria", "constraints", "unknowns"]
    assert answer["field_types"] == dict.fromkeys(ticket["required_fields"], "text")
    assert answer["continue"]
    assert set(answer) == set(TicketResponse.__required_keys__)
    assert set(ticket) == set(Ticket.__annotations__)
    assert set(answer["gate_result"]) == {"status", "missing_or_invalid_fields", "issues"}


def test_a_ticket_walks_every_stage_in_order_to_complete(tickets: Tickets, root: Path, ticket: Ticket) -> None:
    seen = [ticket["state"]]
    while ticket["state"] != "complete":
        if ticket["state"] == "act_via_tools":
            do_the_work(root)
        answer = tickets.submit(json.dumps(filled(ticket)))
        assert answer["gate_result"]["status"] == "pass", answer["gate_result"]
        assert answer["next_state"] == ticket_of(answer)["state"]
        assert answer["next_role"].startswith(ticket_of(answer)["agent_role"].removesuffix("."))
        assert ticket_of(answer)["revision"] == ticket["revision"] + 1
        ticket = ticket_of(answer)
        seen.append(ticket["state"])
    assert tuple(seen) == STATES
    assert not tickets.begin("SHOP-7", "run-1")["continue"]
    assert ticket["required_fields"] == ticket["next_stage_fields"] == []
    assert [row["gate"] for row in ticket["history"]] == ["pass"] * 7


def test_each_stage_asks_for_the_fields_of_the_table(tickets: Tickets, root: Path) -> None:
    walk_to(tickets, "complete")
    shown = [tickets.snapshots.find(journal_run("run-1"), str(number)) for number in range(1, 9)]
    asked = {entry.data["state"]: entry.data["required_fields"] for entry in shown if entry is not None}
    assert asked == {**{name: list(payload) for name, payload in PAYLOADS.items()}, "complete": []}


def test_the_text_form_and_the_object_form_of_a_ticket_are_the_same(tickets: Tickets) -> None:
    one = tickets.submit(filled(ticket_of(tickets.begin("SHOP-7", "one"))))
    two = tickets.submit(json.dumps(filled(ticket_of(tickets.begin("SHOP-7", "two")))))
    assert one["gate_result"] == two["gate_result"]
    assert one["next_state"] == two["next_state"] == "extract_requirements"


def test_next_step_is_an_alias_of_submit(tickets: Tickets) -> None:
    ticket = filled(ticket_of(tickets.begin("SHOP-7")))
    answer = cast("TicketResponse", tickets.next_step(ticket))
    assert tickets.submit(ticket) == answer
    assert answer["next_state"] == "extract_requirements"
    assert set(answer) == set(TicketResponse.__required_keys__)


def test_a_payload_alone_may_be_submitted_for_a_revision(tickets: Tickets) -> None:
    tickets.begin("SHOP-7", "run-1")
    answer = tickets.submit_payload("run-1", 1, PAYLOADS["fetch_ticket"])
    assert answer["next_state"] == "extract_requirements"
    assert codes(tickets.submit_payload("run-1", 1, {"title": "other"})) == ["TKT121"]
    assert codes(tickets.submit_payload("run-1", 9, PAYLOADS["extract_requirements"])) == ["TKT122"]


def test_beginning_with_a_known_id_returns_the_present_ticket(tickets: Tickets, ticket: Ticket) -> None:
    after = ticket_of(tickets.submit(filled(ticket)))
    assert ticket_of(tickets.begin("SHOP-7", "run-1")) == after
    assert codes(tickets.begin("SHOP-8", "run-1")) == ["TKT106"]


def test_several_runs_share_a_ticket(tickets: Tickets) -> None:
    first, second = ticket_of(tickets.begin("SHOP-7")), ticket_of(tickets.begin("SHOP-7"))
    assert first["run_id"] != second["run_id"]
    assert len(tickets.runs()) == 2


@pytest.mark.parametrize("ticket_id", ["", " SHOP", "a\nb", "x" * 201])
def test_a_ticket_id_that_cannot_be_used_is_refused(tickets: Tickets, ticket_id: Any) -> None:
    assert codes(tickets.begin(ticket_id)) == ["TKT106"]
    assert tickets.runs() == []


@pytest.mark.parametrize("run_id", ["", "../x", "a\0b"])
def test_a_run_id_that_cannot_be_used_is_refused(tickets: Tickets, run_id: Any) -> None:
    answer = tickets.begin("SHOP-7", run_id)
    assert codes(answer) == ["TKT106"]
    assert tickets.runs() == []


# -- retries, stops, terminal states -------------------------------------------------------------------------------


def test_a_retry_names_the_fields_and_the_fixed_ticket_passes(tickets: Tickets) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7"))
    answer = tickets.submit({**ticket, "payload": {**PAYLOADS["fetch_ticket"], "title": ""}})
    assert answer["gate_result"]["status"] == "retry"
    assert answer["gate_result"]["missing_or_invalid_fields"] == ["title"]
    assert answer["continue"]
    again = ticket_of(answer)
    assert (again["state"], again["revision"]) == ("fetch_ticket", 2)
    assert again["validation"]["status"] == "invalid_fixable"
    assert again["payload"]["title"] == ""
    report = again["invalidation_report"]
    assert report is not None
    assert (report["fixable"], report["missing_or_invalid_fields"]) == (True, ["title"])
    assert tickets.submit(filled(again))["gate_result"]["status"] == "pass"


def test_the_third_identical_failure_fails_closed(tickets: Tickets, ticket: Ticket) -> None:
    for _ in range(2):
        answer = tickets.submit({**ticket, "payload": {}})
        assert answer["gate_result"]["status"] == "retry"
        ticket = ticket_of(answer)
    answer = tickets.submit({**ticket, "payload": {}})
    assert (answer["gate_result"]["status"], answer["next_state"], answer["continue"]) == ("stop", "fail_closed", False)
    report = ticket_of(answer)["invalidation_report"]
    assert report is not None
    assert (report["reason_code"], report["fixable"], report["state"]) == ("repeated_failure", False, "fetch_ticket")
    *_, stop, closed = tickets.events("run-1")
    assert (stop.type, closed.type, stop.data["reason_code"]) == ("gate_stop", "fail_closed", "repeated_failure")
    assert (closed.data["from"], closed.data["to"]) == ("fetch_ticket", "fail_closed")
    assert report["required_next_action"]
    assert ticket_of(answer)["validation"]["status"] == "invalid_blocking"


def test_the_retries_of_a_stage_are_bounded(root: Path) -> None:
    (root / "interlock.toml").write_text("[tickets]\nmax_retries = 2\n")
    tickets = Tickets(root)
    ticket = ticket_of(tickets.begin("SHOP-7"))
    statuses: list[str] = []
    for number in range(3):
        answer = tickets.submit({**ticket, "payload": {**PAYLOADS["fetch_ticket"], "title": " " * number}})
        statuses.append(answer["gate_result"]["status"])
        ticket = ticket_of(answer)
    assert statuses == ["retry", "retry", "stop"]
    assert (ticket["invalidation_report"] or {}).get("reason_code") == "stage_retries_spent"


def test_the_retries_of_a_run_are_bounded(root: Path) -> None:
    (root / "interlock.toml").write_text("[tickets]\nmax_retries_run = 2\n")
    tickets = Tickets(root)
    ticket = ticket_of(tickets.begin("SHOP-7"))
    given: list[dict[str, Any] | None] = [{"title": "x"}, None, {"constraints": []}, None, {"retrieval_targets": []}]
    for payload in given:
        answer = tickets.submit(filled(ticket) if payload is None else {**ticket, "payload": payload})
        ticket = ticket_of(answer)
    assert ticket["state"] == "fail_closed"
    assert (ticket["invalidation_report"] or {}).get("reason_code") == "run_retries_spent"


@pytest.mark.parametrize("end", ["complete", "fail_closed"])
def test_a_run_that_is_over_takes_nothing_more(tickets: Tickets, root: Path, end: str) -> None:
    ticket = walk_to(tickets, "complete" if end == "complete" else "fetch_ticket")
    while ticket["state"] != end:
        ticket = ticket_of(tickets.submit({**ticket, "payload": {}}))
    assert ticket["state"] == end
    before = events(tickets)
    answer = tickets.submit({**ticket, "payload": {"title": "more"}})
    assert codes(answer) == ["TKT113"]
    assert (answer["gate_result"]["status"], answer["continue"]) == ("stop", False)
    assert ticket_of(answer) == ticket
    assert events(tickets) == before


# -- what is kept ----------------------------------------------------------------------------------------------------


def test_every_attempt_is_in_the_journal_and_every_ticket_in_the_snapshots(tickets: Tickets, root: Path) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    ticket = ticket_of(tickets.submit({**ticket, "payload": {}}))
    tickets.submit(filled(ticket))
    assert " ".join(events(tickets)) == "run_started tool_call gate_retry tool_call gate_passed transition"
    kept = [entry.data["revision"] for entry in tickets.snapshots.entries(journal_run("run-1"))]
    assert kept == [1, 2, 3]


def test_each_passed_payload_and_the_last_ticket_are_files_for_people(tickets: Tickets, root: Path) -> None:
    walk_to(tickets, "complete")
    kept = {
        name: json.loads((copies_dir(root, "run-1") / f"{name}.json").read_text()) for name in (*PAYLOADS, "ticket")
    }
    assert kept == {**PAYLOADS, "ticket": tickets.ticket("run-1")}


def test_the_stage_of_the_plan_names_the_ids_that_it_may_use(tickets: Tickets, root: Path) -> None:
    walk_to(tickets, "propose_plan")
    role = tickets.begin("SHOP-7", "run-1")["next_role"]
    assert "Requirement ids: ac_001, ac_002, con_001. Evidence ids: ev_1, ev_2." in role


def test_a_status_shows_the_stage_of_a_run(tickets: Tickets, root: Path) -> None:
    walk_to(tickets, "scope_context")
    status = cast("dict[str, Any]", tickets.status("run-1"))
    assert (status["state"], status["revision"], status["terminal"]) == ("scope_context", 3, False)
    assert status["path"] == ["fetch_ticket", "extract_requirements", "scope_context"]
    assert status["retries_left"] == {"stage": 5, "run": 20, "identical": 2}


# -- evidence and acting -----------------------------------------------------------------------------------------------


def test_conflicting_evidence_stops_the_run_with_both_shown(tickets: Tickets, root: Path) -> None:
    ticket = walk_to(tickets, "gather_evidence")
    items = deepcopy(PAYLOADS["gather_evidence"]["evidence_items"])
    items.append({"source_id": "ev_3", "source_type": "web", "locator": "the style guide", "snippet": "Be rude."})
    answer = tickets.submit({**ticket, "payload": {"evidence_items": items}})
    assert (answer["gate_result"]["status"], answer["next_state"]) == ("stop", "fail_closed")
    shown = json.dumps(answer["gate_result"]["issues"])
    assert "Be rude." in shown
    assert "Be polite." in shown


def test_edits_before_the_plan_are_reported(tickets: Tickets, root: Path) -> None:
    ticket = walk_to(tickets, "propose_plan")
    (root / "README.md").write_text("# Changed too early\n")
    answer = tickets.submit(filled(ticket))
    assert answer["next_state"] == "act_via_tools"
    assert codes(answer) == ["TKT131"]
    assert "README.md" in answer["gate_result"]["issues"][0]["message"]


def test_the_agents_own_ticket_file_is_no_edit(tickets: Tickets, root: Path) -> None:
    ticket = walk_to(tickets, "act_via_tools")
    do_the_work(root)
    (root / "tickets").mkdir()
    (root / "tickets" / "ticket.json").write_text(json.dumps(ticket))
    assert tickets.submit(filled(ticket))["gate_result"]["status"] == "pass"


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_ticket_with_thousands_of_unknown_fields_gets_a_bounded_answer(tickets: Tickets, ticket: Ticket) -> None:
    answer = tickets.submit({**filled(ticket), **{f"field_{number}": 1 for number in range(5000)}})
    assert codes(answer) == ["TKT122"]
    assert len(json.dumps(answer)) < 5_000


# -- what makes a refusal enough to go on ------------------------------------------------------------------------------


def test_a_retry_says_how_many_are_left(tickets: Tickets, ticket: Ticket) -> None:
    left: list[int] = []
    for number in range(5):
        ticket = ticket_of(tickets.submit({**ticket, "payload": {f"wrong{number}": "x"}}))
        gate = tickets.state("run-1")["gate"]
        left.append(gate["retries_left"])
    assert left == [4, 3, 2, 1, 0]
    ended = tickets.submit({**ticket, "payload": {"wrong": "x"}})
    assert ended["next_state"] == "fail_closed"
    assert cast("dict[str, Any]", tickets.status("run-1"))["retries_left"] == {"stage": 0, "run": 0, "identical": 0}


def test_a_revision_as_a_text_is_distinguished_from_the_number(tickets: Tickets) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7"))
    (item,) = tickets.submit(filled(ticket, revision="1"))["gate_result"]["issues"]
    assert (item["found"], item["expected"]) == ('"1"', "1")


def test_a_bad_payload_for_a_known_run_brings_its_ticket_back(tickets: Tickets, ticket: Ticket) -> None:
    bad: tuple[tuple[Any, str], ...] = (("{", "TKT101"), ([], "TKT101"))
    for payload, code in bad:
        refused = tickets.submit_payload("run-1", 1, payload)
        assert (codes(refused), ticket_of(refused)) == ([code], ticket)


def test_a_ticket_describes_each_field_and_names_the_files_that_may_change(tickets: Tickets, root: Path) -> None:
    def step(state: str, run_id: str) -> Any:
        make_project(root)
        return tickets.begin("SHOP-7", walk_to(tickets, state, run_id)["run_id"])

    items = (
        "list of {source_id: text, source_type: text, locator: text, snippet: text, "
        "claim: {subject: text, value: text}, may be left out}"
    )
    assert step("gather_evidence", "a")["field_types"] == {"evidence_items": items}
    assert "evidence_refs: list of texts}" in step("propose_plan", "b")["field_types"]["plan_steps"]
    assert '"app.py"' in step("act_via_tools", "c")["next_role"]
    assert step("record_and_finalize", "d")["field_types"]["outcome"] == "one of success, partial, blocked"
    assert step("complete", "e")["field_types"] == {}
