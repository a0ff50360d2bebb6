"""A ticket run: begun, worked on, refused and finished, through the one object that the server uses."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.graph.engine.folder import copies_dir, journal_run
from interlock.graph.ticket.answers import SAME_ENDS
from interlock.graph.ticket.contract import SentTicket, TicketResponse
from interlock.graph.ticket.explain import explain_ticket, summary_text, ticket_summary
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import MAX_LINE_BYTES
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
    assert set(answer) == {
        "ticket_json", "field_types", "continue", "reason", "next_role", "next_state", "gate_result",
    }  # fmt: skip
    assert set(ticket) == {
        "schema_version", "run_id", "ticket_id", "state", "agent_role", "required_fields", "payload",
        "next_stage_fields", "validation", "invalidation_report", "history", "created_at", "updated_at", "revision",
    }  # fmt: skip
    assert set(answer["gate_result"]) == {"status", "missing_or_invalid_fields", "issues"}


def test_a_ticket_walks_every_stage_in_order_to_complete(tickets: Tickets, root: Path, ticket: SentTicket) -> None:
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
    assert set(answer) == set(TicketResponse.__annotations__)


def test_a_payload_alone_may_be_submitted_for_a_revision(tickets: Tickets) -> None:
    tickets.begin("SHOP-7", "run-1")
    answer = tickets.submit_payload("run-1", 1, PAYLOADS["fetch_ticket"])
    assert answer["next_state"] == "extract_requirements"
    assert codes(tickets.submit_payload("run-1", 1, {"title": "other"})) == ["TKT121"]
    assert codes(tickets.submit_payload("run-1", 9, PAYLOADS["extract_requirements"])) == ["TKT122"]


def test_beginning_with_a_known_id_returns_the_present_ticket(tickets: Tickets, ticket: SentTicket) -> None:
    after = ticket_of(tickets.submit(filled(ticket)))
    assert ticket_of(tickets.begin("SHOP-7", "run-1")) == after
    assert codes(tickets.begin("SHOP-8", "run-1")) == ["TKT112"]


def test_several_runs_share_a_ticket(tickets: Tickets) -> None:
    first, second = ticket_of(tickets.begin("SHOP-7")), ticket_of(tickets.begin("SHOP-7"))
    assert first["run_id"] != second["run_id"]
    assert len(tickets.runs()) == 2


@pytest.mark.parametrize("ticket_id", ["", " ", " SHOP", "a\nb", "x" * 201, None, 7])
def test_a_ticket_id_that_cannot_be_used_is_refused(tickets: Tickets, ticket_id: Any) -> None:
    assert codes(tickets.begin(ticket_id)) == ["TKT106"]
    assert tickets.runs() == []


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "x" * 129, ".hidden", "a\0b", 7])
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


def test_the_third_identical_failure_fails_closed(tickets: Tickets, ticket: SentTicket) -> None:
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
    if end == "fail_closed":
        ticket = ticket_of(tickets.submit({**ticket, "schema_version": "9.9.9"}))
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
    assert events(tickets) == [
        "run_started", "tool_call", "gate_retry", "tool_call", "gate_passed", "transition",
    ]  # fmt: skip
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
    ticket = tickets.ticket("run-1")
    assert "Requirement ids: ac_001, ac_002, con_001. Evidence ids: ev_1, ev_2." in ticket["agent_role"]
    assert ticket["history"][1].get("assigned") == {
        "ac_001": "The greeting ends with `!`.",
        "ac_002": "The name is kept.",
        "con_001": "No new file.",
    }


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


def test_a_ticket_with_thousands_of_unknown_fields_gets_a_bounded_answer(tickets: Tickets, ticket: SentTicket) -> None:
    answer = tickets.submit({**filled(ticket), **{f"field_{number}": 1 for number in range(5000)}})
    assert codes(answer) == ["TKT105"] * 21
    assert "4980" in answer["gate_result"]["issues"][-1]["message"]
    assert len(json.dumps(answer)) < 20_000


def test_a_text_that_quotes_the_escape_of_nul_holds_no_nul(tickets: Tickets, ticket: SentTicket) -> None:
    payload = {**PAYLOADS["fetch_ticket"], "description": r"It writes \\u0000 and \u0000 into the file."}
    assert tickets.submit(json.dumps({**ticket, "payload": payload}))["next_state"] == "extract_requirements"


def test_large_payloads_and_many_retries_never_make_a_run_that_cannot_go_on(root: Path) -> None:
    """A ticket with its whole history is one line of the snapshots, and each stage keeps space for its payload."""
    (root / "interlock.toml").write_text("[tickets]\nmax_retries = 20\nmax_retries_run = 100\n")
    tickets = Tickets(root)
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    for number in range(19):
        ticket = ticket_of(tickets.submit({**ticket, "payload": {f"x{number}_{at}": 1 for at in range(20)}}))
    while ticket["state"] != "complete":
        if ticket["state"] == "act_via_tools":
            do_the_work(root)
        size = 32_000
        while True:
            assert size > 4_000, f"{ticket['state']} has no space left"
            bad = tickets.submit({**ticket, "payload": {**_large(ticket["state"], size), "extra": {}}})
            good = (
                bad
                if codes(bad) == ["TKT103"]
                else tickets.submit({**ticket_of(bad), "payload": _large(ticket["state"], size)})
            )
            if codes(good) != ["TKT103"]:
                break
            ticket, size = ticket_of(good), size - 2_000
        assert good["gate_result"]["status"] == "pass", (codes(bad), good["gate_result"])
        ticket = ticket_of(good)
    assert len(json.dumps(ticket)) < MAX_LINE_BYTES


def _large(state: str, size: int) -> dict[str, Any]:
    """Return a payload that passes a stage and has about so many bytes."""
    payload = deepcopy(PAYLOADS[state])
    third = "x" * (size // 3 - 300)
    match state:
        case "fetch_ticket":
            payload |= {"title": third, "description": third, "external_source": third}
        case "extract_requirements":
            payload["acceptance_criteria"] = [
                "The greeting ends with `!`.",
                "The name is kept.",
                *["x" * 500] * (size // 520),
            ]
            payload["unknowns"] = ["x" * 500]
        case "scope_context":
            payload |= {"retrieval_targets": ["repo:app.py", third, third], "retrieval_justification": third}
        case "gather_evidence":
            more = {"source_type": "web", "snippet": third}
            payload["evidence_items"] += [{**more, "source_id": f"x{at}", "locator": f"x{at}"} for at in range(3)]
        case "propose_plan":
            step = {**payload["plan_steps"][0], "intent": third}
            payload["plan_steps"] += [{**step, "step_id": f"x{at}"} for at in range(3)]
        case "act_via_tools":
            payload["outputs"] = [third, third, third]
        case _:
            payload["artifacts"] = [third, third, third]
    return payload


def test_the_stage_of_the_plan_names_whole_ids_however_many_there_are(tickets: Tickets, root: Path) -> None:
    ticket = walk_to(tickets, "extract_requirements")
    many = {"acceptance_criteria": [f"It holds {at}." for at in range(100)], "constraints": [], "unknowns": []}
    ticket = ticket_of(tickets.submit({**ticket, "payload": many}))
    for _ in range(2):
        ticket = ticket_of(tickets.submit(filled(ticket)))
    role = tickets.ticket(ticket["run_id"])["agent_role"]
    named = re.findall(r"ac_[0-9]*", role.partition("Requirement ids")[2])
    assert named == [f"ac_{at:03d}" for at in range(1, 61)]
    assert "and 40 more" in role


# -- what makes a refusal enough to go on ------------------------------------------------------------------------------


def test_a_retry_says_how_many_are_left(tickets: Tickets, ticket: SentTicket) -> None:
    left: list[int] = []
    for number in range(5):
        ticket = ticket_of(tickets.submit({**ticket, "payload": {f"wrong{number}": "x"}}))
        gate = tickets.state("run-1")["gate"]
        left.append(gate["retries_left"])
    assert left == [4, 3, 2, 1, 0]
    ended = tickets.submit({**ticket, "payload": {"wrong": "x"}})
    assert ended["next_state"] == "fail_closed"
    assert cast("dict[str, Any]", tickets.status("run-1"))["retries_left"] == {"stage": 0, "run": 0, "identical": 0}


def test_the_last_but_one_identical_failure_says_that_the_same_once_more_ends_the_run(tickets: Tickets) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    warned: list[bool] = []
    left: list[int] = []
    for _ in range(2):
        answer = tickets.submit({**ticket, "payload": {"wrong": "x"}})
        ticket = ticket_of(answer)
        warned.append(SAME_ENDS in answer["reason"])
        left.append(cast("dict[str, Any]", tickets.status("run-1"))["retries_left"]["identical"])
    assert (warned, left) == ([False, True], [1, 0])
    assert SAME_ENDS in explain_ticket(tickets, "run-1")["why"]
    assert SAME_ENDS in summary_text(ticket_summary(tickets, "run-1"))
    ended = tickets.submit({**ticket, "payload": {"wrong": "x"}})
    assert ended["next_state"] == "fail_closed"


def test_another_failure_between_two_identical_ones_does_not_hide_what_is_left(tickets: Tickets) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    for name in ("wrong", "other", "wrong"):
        answer = tickets.submit({**ticket, "payload": {name: "x"}})
        ticket = ticket_of(answer)
    assert SAME_ENDS in answer["reason"]
    assert SAME_ENDS not in tickets.submit({**ticket, "payload": {"third": "x"}})["reason"]


@pytest.mark.parametrize(
    ("key", "warned"),
    [
        *((key, False) for key in ("SHOP-7", "shop-7", "7", "#7", "https://t.example/SHOP-7", "acme/x#SHOP-7")),
        *((key, True) for key in ("SHOP-8", "17", "X-SHOP-77", "P-7", "#")),
    ],
)
def test_a_fetched_ticket_that_seems_to_be_another_one_is_a_warning(tickets: Tickets, key: str, warned: bool) -> None:
    ticket = filled(ticket_of(tickets.begin("SHOP-7")))
    ticket["payload"] = {**ticket["payload"], "external_ticket_id": key}
    answer = tickets.submit(ticket)
    assert answer["gate_result"]["status"] == "pass"
    assert codes(answer) == (["TKT132"] if warned else [])


def test_an_answer_sent_back_whole_is_one_finding_that_names_the_ticket_in_it(tickets: Tickets) -> None:
    answer = tickets.begin("SHOP-7", "run-1")
    for given, name in ((answer, "ticket_json"), ({"updated_ticket": answer["ticket_json"]}, "updated_ticket")):
        refused = tickets.submit(json.dumps(given))
        assert codes(refused) == ["TKT102"]
        assert name in refused["gate_result"]["issues"][0]["fix"]


def test_a_revision_as_a_text_is_distinguished_from_the_number(tickets: Tickets) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7"))
    (item,) = tickets.submit(filled(ticket, revision="1"))["gate_result"]["issues"]
    assert (item["found"], item["expected"]) == ('"1"', "1")


def test_a_wrong_run_id_names_the_run_that_may_be_meant(tickets: Tickets) -> None:
    run_id = ticket_of(tickets.begin("SHOP-7"))["run_id"]
    refused = tickets.submit_payload("SHOP-7", 1, {})
    assert (codes(refused), refused["continue"]) == (["TKT111"], True)
    assert run_id in refused["gate_result"]["issues"][0]["fix"]
    assert run_id not in json.dumps(tickets.submit_payload("SHOP-7", 1, {}, caller="bob"))


def test_a_bad_payload_for_a_known_run_brings_its_ticket_back(tickets: Tickets, ticket: SentTicket) -> None:
    bad: tuple[tuple[Any, str], ...] = (("{", "TKT101"), ([], "TKT102"))
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
