"""Sentences of the Ticket Protocol and the Governance Design that no other test of the pipeline holds."""

import hashlib
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.answer_bytes import UNTIL_PLAN, walk
from benchmarks.tickets import make_project as make_benchmark
from interlock.graph.engine.folder import copies_dir, journal_path, journal_run, snapshots_path
from interlock.graph.ticket.contract import MinimalResponse, RunStatus, Ticket
from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.walk import (
    MINIMAL,
    MINIMAL_TICKET,
    PAYLOADS,
    STATES,
    codes,
    do_the_work,
    filled,
    make_project,
    ticket_of,
    walk_to,
)

EVERY_STATE = dict.fromkeys((*STATES, "fail_closed", "intake", "act", "finalize"))


def walked(tickets: Tickets, root: Path, run_id: str = "run-1") -> list[dict[str, Any]]:
    """Work a ticket to its end and return each answer."""
    ticket = ticket_of(tickets.begin("SHOP-7", run_id))
    answers: list[dict[str, Any]] = []
    while ticket["required_fields"]:
        if ticket["state"] == "act_via_tools":
            do_the_work(root)
        answers.append(dict(tickets.submit(filled(ticket))))
        ticket = ticket_of(answers[-1])
    assert ticket["state"] == "complete"
    return answers


def step(tickets: Tickets, **fields: Any) -> MinimalResponse:
    """Submit the minimal ticket with some fields changed."""
    answer = cast("MinimalResponse", tickets.next_step({**MINIMAL_TICKET, **fields}))
    assert set(answer) == set(MinimalResponse.__annotations__)
    return answer


# -- who moves a run -------------------------------------------------------------------------------------------------


def test_no_stage_can_be_skipped_or_repeated_by_naming_another_state(tickets: Tickets, root: Path) -> None:
    """Ticket Protocol §Non-Negotiable Constraints; Governance Design §FSM Engine."""
    (root / "interlock.toml").write_text("[tickets]\nmax_retries = 20\nmax_retries_run = 100\n")
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    while ticket["required_fields"]:
        others = [name for name in EVERY_STATE if name != ticket["state"]]
        for other in others[:: len(ticket["history"]) + 3]:
            payload = deepcopy(PAYLOADS.get(other, {}))
            answer = tickets.submit({**ticket, "state": other, "payload": payload})
            assert codes(answer) == ["TKT122"]
            assert ticket_of(answer) == ticket
            assert (answer["next_state"], answer["continue"]) == (ticket["state"], True)
        if ticket["state"] == "act_via_tools":
            do_the_work(root)
        ticket = ticket_of(tickets.submit(filled(ticket)))
    assert [row["state"] for row in ticket["history"]] == list(PAYLOADS)


def test_the_payload_of_another_stage_does_not_pass(tickets: Tickets) -> None:
    """Ticket Protocol §Workflow: Fill only `payload` for the current stage."""
    for number, (name, payload) in enumerate(PAYLOADS.items()):
        ticket = ticket_of(tickets.begin("SHOP-7", f"run-{number}"))
        answer = tickets.submit({**ticket, "payload": deepcopy(payload)})
        assert answer["next_state"] == ("extract_requirements" if name == "fetch_ticket" else "fetch_ticket")


def test_no_file_that_an_agent_can_write_moves_a_run(tickets: Tickets, root: Path, ticket: Ticket) -> None:
    """Ticket Protocol §Non-Negotiable Constraints: No state transition without Interlock response."""
    forged = {**ticket, "state": "complete", "required_fields": []}
    for folder in (root / "tickets", copies_dir(root, "run-1")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ticket.json").write_text(json.dumps(forged))
    for again in (tickets, Tickets(root)):
        assert again.ticket("run-1") == ticket
        assert ticket_of(again.begin("SHOP-7", "run-1")) == ticket


# -- determinism -----------------------------------------------------------------------------------------------------


def test_the_same_ticket_walks_the_same_path_to_the_same_answers(tmp_path: Path) -> None:
    """Governance Design §Deterministic FSM: Same ticket → same workflow path; Reproducible runs."""

    def walk(name: str) -> list[Any]:
        root = make_project(tmp_path / name)
        return [timeless(answer) for answer in walked(Tickets(root), root)]

    one, two = walk("one"), walk("two")
    assert one == two
    assert [answer["next_state"] for answer in one] == list(STATES[1:])


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without its times; `ticket_json` is the ticket once more."""
    text = json.dumps({**answer, "ticket_json": ""})
    return json.loads(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "then", text))


# -- what is kept ----------------------------------------------------------------------------------------------------


def test_the_records_only_grow_and_hold_one_json_object_on_each_line(tickets: Tickets, root: Path) -> None:
    """Governance Design §Artifact Storage: Storage format: JSONL; append-only."""
    before = {journal_path(root): b"", snapshots_path(root): b""}
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    for payload in ({}, PAYLOADS["fetch_ticket"], PAYLOADS["extract_requirements"]):
        ticket = ticket_of(tickets.submit({**ticket, "payload": payload}))
        for path, old in before.items():
            now = path.read_bytes()
            assert now.startswith(old)
            assert len(now) > len(old)
            before[path] = now
    for path, text in before.items():
        assert text.endswith(b"\n")
        lines = [json.loads(line) for line in text.decode().splitlines()]
        assert all(isinstance(line, dict) for line in lines), path


def test_every_snapshot_is_the_ticket_as_it_was_answered(tickets: Tickets, root: Path) -> None:
    """Governance Design §Artifact Storage: All ticket snapshots."""
    answers = walked(tickets, root)
    kept = [dict(entry.data) for entry in tickets.snapshots.entries(journal_run("run-1"))]
    assert kept[1:] == [answer["ticket_json"] for answer in answers]
    assert kept[-1] == tickets.ticket("run-1")


def test_the_journal_holds_what_was_submitted_by_whom_and_with_which_tool(tickets: Tickets) -> None:
    """Governance Design §Artifact Storage: `tool_call`: Agent called the tool."""
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1", caller="alice"))
    payload = {**PAYLOADS["fetch_ticket"], "title": ""}
    tickets.submit({**ticket, "payload": payload}, caller="alice")
    (entry,) = [entry for entry in tickets.events("run-1") if entry.type == "tool_call"]
    said = {name: entry.data[name] for name in ("tool", "caller", "state", "revision", "payload")}
    assert said == {
        "tool": "interlock_submit_ticket",
        "caller": "alice",
        "state": "fetch_ticket",
        "revision": 1,
        "payload": payload,
    }


def test_created_at_stays_and_updated_at_is_the_time_of_the_last_attempt(tickets: Tickets, ticket: Ticket) -> None:
    """Governance Design §Ticket Schema: `created_at` / `updated_at`: Timestamps."""
    created = ticket["created_at"]
    assert created == tickets.events("run-1")[0].at
    for payload in ({}, PAYLOADS["fetch_ticket"]):
        ticket = ticket_of(tickets.submit({**ticket, "payload": payload}))
        assert ticket["created_at"] == created
        assert ticket["updated_at"] == tickets.state("run-1")["history"][-1]["at"] >= created
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", ticket["updated_at"])


# -- minimal tickets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["", None, 7])
@pytest.mark.parametrize("field", ["ticket_id", "title", "run_id", "state"])
def test_every_field_of_a_minimal_ticket_has_its_type_and_is_not_empty(
    tickets: Tickets, field: str, value: object
) -> None:
    """Governance Design §Ticket Schema: Non-empty strings; Valid FSM state enum; Type checking."""
    answer = step(tickets, **{field: value})
    assert answer["status"] in {"retry", "stop"}
    assert set(answer["gate_result"]["missing_or_invalid_fields"]) & {field, "run_id"}
    assert answer["fixes"]
    assert answer["next_state"] in {"", "intake"}


@pytest.mark.parametrize("value", [7, ""])
def test_the_description_of_a_minimal_ticket_is_a_text_where_there_is_one(tickets: Tickets, value: object) -> None:
    """Governance Design §Ticket Schema: `description`: Optional description."""
    answer = step(tickets, description=value)
    assert (answer["status"], answer["gate_result"]["missing_or_invalid_fields"]) == ("retry", ["description"])
    assert step(tickets, description="With a password.")["next_state"] == "extract_requirements"


def test_a_minimal_ticket_may_have_no_description_and_may_carry_its_timestamps(tickets: Tickets) -> None:
    times = {"created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z"}
    assert step(tickets, **times)["status"] == "pass"
    assert step(tickets, **times, run_id="run-124", description=None)["status"] == "pass"


@pytest.mark.parametrize("state", ["complete", "act", "INTAKE"])
def test_a_state_that_is_none_of_the_seven_is_refused(tickets: Tickets, state: str) -> None:
    """Governance Design §Ticket Schema: Current FSM state (one of 7 valid states)."""
    assert codes(step(tickets, state=state)) == ["TKT111"]
    assert tickets.runs() == []
    assert step(tickets)["status"] == "pass"
    assert codes(step(tickets, state=state)) == ["TKT122"]
    assert tickets.state("run-123")["state"] == "extract_requirements"


def test_a_minimal_step_that_cannot_be_read_is_to_be_sent_again_with_a_fix(tickets: Tickets) -> None:
    """Governance Design §Complete Flow: Invalid JSON/Schema: {status: "retry", reason, fixes}."""
    for given in ("{", "[]", json.dumps(MINIMAL_TICKET)[:-1], {**MINIMAL_TICKET, "title": ""}):
        answer = cast("MinimalResponse", tickets.next_step(given))
        assert answer["status"] == answer["gate_result"]["status"] == "retry"
        assert answer["reason"]
        assert answer["fixes"] == answer["gate_result"]["fixes"] != []


def test_a_minimal_step_that_fails_its_gate_says_retry_or_stop_with_reason_and_fixes(tickets: Tickets) -> None:
    """Governance Design §Complete Flow: Gate fails (retry/stop)."""
    step(tickets)
    for wanted in ("retry", "retry", "stop"):
        answer = step(tickets, state="extract_requirements")
        assert (answer["status"], answer["gate_result"]["status"]) == (wanted, wanted)
        assert answer["reason"]
        assert answer["fixes"] == answer["gate_result"]["fixes"] != []
        assert len(answer["gate_result"]["reasons"]) == len(answer["fixes"])
        assert answer["next_state"] == ("fail_closed" if wanted == "stop" else "extract_requirements")
        report = cast("RunStatus", tickets.status("run-123"))["invalidation_report"]
        assert report is not None
        assert report["fixable"] == (wanted == "retry")


def test_every_minimal_step_can_be_sent_again_the_last_one_too(tickets: Tickets, root: Path) -> None:
    answer = step(tickets)
    for state, payload in MINIMAL.items():
        if state == "act":
            do_the_work(root)
        answer = step(tickets, state=state, payload=payload)
        before = [entry.key for entry in tickets.events("run-123")]
        assert step(tickets, state=state, payload=payload) == answer
        assert [entry.key for entry in tickets.events("run-123")] == before
    assert (answer["status"], answer["next_state"]) == ("pass", "finalize")


def test_a_minimal_run_keeps_its_tickets_and_its_events(tickets: Tickets) -> None:
    """Governance Design §Complete Flow: save_ticket, save_event for call, gate and transition."""
    step(tickets)
    step(tickets, state="extract_requirements", payload=MINIMAL["extract_requirements"])
    attempt = ["tool_call", "gate_passed", "transition"]
    assert [entry.type for entry in tickets.events("run-123")] == ["run_started", *attempt, *attempt]
    kept = [entry.data["state"] for entry in tickets.snapshots.entries(journal_run("run-123"))]
    assert kept == ["intake", "extract_requirements", "scope_context"]


def test_a_success_without_a_change_has_to_say_so(tickets: Tickets, root: Path) -> None:
    ticket = walk_to(tickets, "act_via_tools")
    answer = tickets.submit(filled(ticket))
    assert codes(answer) == ["STG602"]
    refused = tickets.submit(filled(ticket_of(answer)))
    assert codes(refused) == ["STG704"]
    said = {**PAYLOADS["record_and_finalize"], "final_summary": "No file changed: it was there."}
    assert tickets.submit({**ticket_of(refused), "payload": said})["gate_result"]["status"] == "pass"


def test_the_journal_holds_digest_and_size_of_what_was_handed_over(tickets: Tickets, root: Path) -> None:
    walk_to(tickets, "complete")
    passed = [entry for entry in tickets.events("run-1") if entry.type == "gate_passed"][-1]
    data = (root / "app.py").read_bytes()
    record = {"path": "app.py", "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
    assert passed.data["artifacts"] == [record]


def test_the_answers_of_a_ticket_stay_small(tmp_path: Path) -> None:
    assert sum(walk(make_benchmark(tmp_path / "passing"), refused=False)[: UNTIL_PLAN + 1]) <= 12_000
    refused = walk(make_benchmark(tmp_path / "refused"), refused=True)
    assert len(refused) == 1 + 7 + 4
    assert sum(refused) <= 25_000
