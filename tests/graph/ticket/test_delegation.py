"""A plan that is carried out by tasks of the status machine: their outcomes become the payload of the acting stage."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from interlock.graph.engine.folder import journal_run
from interlock.graph.task.persons import answer_question
from interlock.graph.task.questions import AnswerKind
from interlock.graph.task.runs import RunView, start_run, view_run
from interlock.graph.task.task import task_from_mapping
from interlock.graph.ticket.contract import SentTicket
from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.test_adversary import build
from tests.graph.ticket.walk import PAYLOADS, codes, filled, team, ticket_of, walk_to


def _to_acting(tickets: Tickets, steps: int = 2) -> SentTicket:
    """Take a run to its acting stage with a plan of some steps."""
    first = PAYLOADS["propose_plan"]["plan_steps"][0]
    plan = [{**first, "step_id": f"step_{number}"} for number in range(1, steps + 1)]
    return walk_to(tickets, "act_via_tools", propose_plan={"plan_steps": plan})


def test_each_plan_step_becomes_a_task_and_their_outcomes_fill_the_payload(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path))
    ticket = _to_acting(tickets)
    assert ticket["required_fields"] == []
    assert "delegated" in ticket["agent_role"]
    answer = tickets.submit({**ticket, "payload": {}})
    assert answer["next_state"] == "record_and_finalize", answer["gate_result"]
    assert ticket_of(answer)["history"][-1].get("outcomes") == {"step_1": "APPROVED", "step_2": "APPROVED"}
    done = tickets.state("run-1")["history"][-1].get("payload", {})
    assert [line.rpartition(" ")[2] for line in done["actions_taken"]] == ["APPROVED", "APPROVED"]
    assert done["outputs"] == ["added src/greeting.txt"]
    for number in (1, 2):
        view = view_run(f"run-1.s{number}", root=tickets.root)
        assert (view.status, view.task.task_id) == ("APPROVED", f"SHOP-7-S{number}")
        assert view.head is not None
    call = tickets.journal.find(journal_run("run-1"), f"{ticket['revision']}/tool_call")
    assert call is not None
    assert call.data["outcomes"] == {"step_1": "APPROVED", "step_2": "APPROVED"}
    assert [row["run_id"] for row in call.data["tasks"]] == ["run-1.s1", "run-1.s2"]
    assert tickets.submit({**ticket, "payload": {}}) == answer


def test_a_blocked_step_ends_the_plan_and_forbids_to_call_it_a_success(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path, wanted="nothing"))
    ticket = _to_acting(tickets)
    answer = tickets.submit({**ticket, "payload": {}})
    assert answer["next_state"] == "record_and_finalize"
    assert tickets.state("run-1")["outcomes"] == {"step_1": "BLOCKED", "step_2": "NOT_STARTED"}
    last = ticket_of(answer)
    refused = tickets.submit(filled(last))
    assert refused["gate_result"]["status"] == "retry"
    assert refused["gate_result"]["missing_or_invalid_fields"] == ["outcome"]
    payload = {**PAYLOADS["record_and_finalize"], "outcome": "blocked"}
    assert tickets.submit({**ticket_of(refused), "payload": payload})["next_state"] == "complete"


def test_a_task_that_asks_a_person_lets_the_ticket_wait_and_a_waived_gate_is_named_as_such(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path, wanted="objection"))
    ticket = _to_acting(tickets, steps=1)
    kinds: tuple[AnswerKind, ...] = ("accept", "waive")
    for number, kind in enumerate(kinds, 1):
        assert codes(tickets.submit({**ticket, "payload": {}})) == ["TKT142"]
        answer_question(tickets.root, "run-1.s1", kind, number=number, by="ada", reason="as it should be")
    assert tickets.submit({**ticket, "payload": {}})["next_state"] == "record_and_finalize"
    assert tickets.state("run-1")["outcomes"] == {"step_1": "APPROVED"}
    (check,) = tickets.state("run-1")["history"][-1].get("payload", {})["checkpoints"]
    assert check == "step_1: APPROVED (GATE-TESTS waived by ada); gates GATE-MSG-STRICT, GATE-REVIEW"


def test_a_delegated_stage_takes_no_payload_of_the_agent(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path))
    ticket = _to_acting(tickets)
    answer = tickets.submit(filled(ticket))
    assert codes(answer) == ["TKT141"]
    assert ticket_of(answer) == ticket


def test_a_task_that_waits_for_a_remote_agent_lets_the_ticket_wait(tmp_path: Path) -> None:
    tickets = Tickets(team(tmp_path, builder="remote"))
    ticket = _to_acting(tickets, steps=1)
    for _ in range(4):
        answer = tickets.submit({**ticket, "payload": {}})
        assert codes(answer) == ["TKT142"]
        assert ticket_of(answer) == ticket
        assert answer["continue"]
    status = tickets.status("run-1")
    assert "waiting" in status
    assert status["waiting"] == ["step_1: task run run-1.s1 waits for builder"]
    build(tickets.root)
    assert tickets.submit({**ticket, "payload": {}})["next_state"] == "record_and_finalize"


def test_a_task_run_that_somebody_else_began_under_the_steps_name_is_not_taken_over(tmp_path: Path) -> None:
    """The name is known beforehand, and its gates could be weaker."""
    root = team(tmp_path)
    tickets = Tickets(root)
    ticket = _to_acting(tickets)
    weak = {"task_id": "SHOP-7-S1", "task": "Nothing", "gates_required": ["GATE-MSG-STRICT"], "scope": ["src/**"]}
    agents = {name: {"runner": f"python:ticket_team:{name}"} for name in ("builder", "tester", "reviewer")}
    gates = ["GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW"]
    task = task_from_mapping({**weak, "gates_required": gates, "agents": agents}, base=str(root))
    start_run(root, task, run_id="run-1.s1")
    answer = tickets.submit({**ticket, "payload": {}})
    assert answer["next_state"] == "record_and_finalize"
    assert view_run("run-1.s1", root=root).phase == "new"
    assert view_run("run-1.s1-1", root=root).status == "APPROVED"


def test_a_run_does_not_begin_when_its_plan_could_not_be_delegated(tmp_path: Path) -> None:
    root = team(tmp_path)
    text = (root / "interlock.toml").read_text()
    (root / "interlock.toml").write_text(text.replace('"GATE-TESTS", "GATE-REVIEW"]\nscope', '"GATE-NONE"]\nscope'))
    answer = Tickets(root).begin("SHOP-7", "run-1")
    assert (codes(answer), answer["gate_result"]["status"], answer["continue"]) == (["TKT143"], "stop", False)
    assert Tickets(root).runs() == []


@pytest.mark.parametrize("ticket_id", ["shop-7", "7", "#12", "owner/repo#3", "ümlaut", "---"])
def test_a_ticket_of_any_name_has_tasks_of_a_legal_name(tmp_path: Path, ticket_id: str) -> None:
    answer = Tickets(team(tmp_path)).begin(ticket_id, "run-1")
    assert answer["gate_result"]["status"] == "pass", answer["gate_result"]


def test_all_steps_share_the_time_that_one_call_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client gives up after a minute, however many steps a plan has."""
    tickets = Tickets(team(tmp_path))
    ticket = _to_acting(tickets, steps=3)
    waits: list[float] = []
    now = 0.0
    advance = tickets.delegation.drives.advance

    def slow(run_id: str, *, wait_seconds: float) -> RunView:
        nonlocal now
        waits.append(wait_seconds)
        view = advance(run_id, wait_seconds=30.0)
        now += 12.0
        return view

    monkeypatch.setattr(tickets.delegation.drives, "advance", slow)
    monkeypatch.setattr("interlock.graph.ticket.delegation.time", SimpleNamespace(monotonic=lambda: now))
    tickets.delegation.advance(tickets.state(ticket["run_id"]))
    assert waits == [30.0, 18.0, 6.0]
