"""The routing function over every combination of its inputs."""

from itertools import product
from typing import Literal, get_args

from syrupy.assertion import SnapshotAssertion

from interlock.envelope.protocol import DEFAULT_PROTOCOL, STATUSES, TRANSITIONS, RoleKind, Status
from interlock.graph.task.machine import (
    OUTCOMES,
    Budget,
    Next,
    Outcome,
    Tally,
    Verdict,
    certified,
    outcome_of,
    route,
    tally,
)
from tests.table import each_row

KINDS: tuple[RoleKind, ...] = get_args(RoleKind)
TALLIES: tuple[Tally, ...] = get_args(Tally)
BUDGETS = [Budget(*flags) for flags in product((True, False), repeat=3)]
FROM: tuple[Status | None, ...] = (None, *STATUSES)
COMBINATIONS = list(product(FROM, KINDS, OUTCOMES, TALLIES, BUDGETS))
LEGAL = {(row.source, row.target) for row in TRANSITIONS}

Case = tuple[Status | None, RoleKind, Outcome, Tally, Budget]


def test_route_answers_every_combination_with_a_legal_move_or_no_move() -> None:
    for case in COMBINATIONS:
        target = route(*case)
        if target in STATUSES:
            assert (case[0], target) in LEGAL, case
        else:
            assert target in ("ASK_AGAIN", "ASK_PERSON", "TALLY", "WAIT", "END"), case


def test_only_the_orchestrators_own_check_after_a_passed_review_leads_to_approved() -> None:
    ways = {case[:4] for case in COMBINATIONS if route(*case) == "APPROVED"}
    assert ways == {("READY_FOR_REVIEW", "orchestrator", "holds", "pass")}


def test_no_agents_answer_leads_past_ready_for_qa() -> None:
    beyond: set[Next] = {"QA_IN_PROGRESS", "READY_FOR_REVIEW", "APPROVED"}
    for case in COMBINATIONS:
        if case[1] != "orchestrator":
            assert route(*case) not in beyond, case


def test_an_invalid_answer_is_asked_again_exactly_while_the_budget_lasts() -> None:
    phases: list[tuple[Status, RoleKind]] = [
        ("IN_PROGRESS", "build"),
        ("QA_IN_PROGRESS", "qa"),
        ("READY_FOR_REVIEW", "review"),
    ]
    for (status, kind), count, budget in product(phases, TALLIES, BUDGETS):
        again = route(status, kind, "invalid", count, budget) == "ASK_AGAIN"
        assert again is budget.reask


def test_a_blocked_task_is_dispatched_again_exactly_while_the_rework_budget_lasts() -> None:
    for outcome, count, budget in product(OUTCOMES, TALLIES, BUDGETS):
        again: Next = "IN_PROGRESS" if budget.rework or outcome == "answered" else "END"
        again = "ASK_PERSON" if outcome == "objection" else again
        assert route("BLOCKED", "orchestrator", outcome, count, budget) == again


def test_a_person_is_asked_after_an_objection_and_where_nothing_but_a_waiver_is_missing() -> None:
    ways = {case[:4] for case in COMBINATIONS if route(*case) == "ASK_PERSON"}
    objected = {("BLOCKED", "orchestrator", "objection", count) for count in TALLIES}
    assert ways == objected | {("READY_FOR_REVIEW", "orchestrator", "waive", "pass")}


def test_every_row_of_the_transition_table_is_reached() -> None:
    moves = {(case[0], target) for case in COMBINATIONS if (target := route(*case)) in STATUSES}
    assert moves == LEGAL


def render_table() -> str:
    """Return the whole function as text, rows with equal targets over a free input merged."""
    lines: list[str] = []
    for status, kind in product(FROM, KINDS):
        targets: dict[str, set[str]] = {}
        for outcome, count, budget in product(OUTCOMES, TALLIES, BUDGETS):
            spent = ",".join(name for name in ("reask", "rework", "progress") if getattr(budget, name)) or "nothing"
            targets.setdefault(route(status, kind, outcome, count, budget), set()).add(f"{outcome}/{count}/{spent}")
        if len(targets) == 1:
            lines.append(f"{status} {kind} *: {next(iter(targets))}")
            continue
        for target, cases in sorted(targets.items()):
            outcomes = sorted({case.split("/")[0] for case in cases})
            lines.append(f"{status} {kind} {target}: {len(cases)} combinations, after {', '.join(outcomes)}")
    return "\n".join(lines)


def test_the_routing_table_is_as_reviewed(snapshot: SnapshotAssertion) -> None:
    assert render_table() == snapshot


def verdict(
    role: str, gates: list[str], *, attempt: int = 1, tree: str = "t", result: Literal["PASS", "FAIL", "NONE"] = "PASS"
) -> Verdict:
    return Verdict(
        role=role, result=result, cause="gate", attempt=attempt, tree=tree, gates=gates, evidence=[], reasons=[]
    )


@each_row(
    ("role", "status", "ok", "derived", "expected"),
    [
        ("frontend-implementer", "READY_FOR_QA", True, None, "handover"),
        ("frontend-implementer", "READY_FOR_QA", False, None, "invalid"),
        ("frontend-implementer", "IN_PROGRESS", True, None, "progress"),
        ("frontend-implementer", "BLOCKED", True, None, "blocked"),
        ("frontend-implementer", "APPROVED", True, None, "invalid"),
        ("web-design-lead", "READY_FOR_QA", True, None, "invalid"),
        ("visual-qa", "QA_IN_PROGRESS", True, "PASS", "pass"),
        ("visual-qa", "BLOCKED", True, "FAIL", "fail"),
        ("visual-qa", "QA_IN_PROGRESS", True, None, "invalid"),
        ("code-reviewer", "READY_FOR_REVIEW", True, "PASS", "pass"),
    ],
)
def test_an_outcome_is_derived_from_the_checked_reading(
    role: str, status: Status, ok: bool, derived: str | None, expected: Outcome
) -> None:
    assert outcome_of(DEFAULT_PROTOCOL.roles[role], ok=ok, status=status, verdict=derived) == expected


def test_a_tally_is_pending_until_every_named_role_has_a_verdict_of_this_attempt() -> None:
    names = ("visual-qa", "a11y-auditor")
    one = {"visual-qa": verdict("visual-qa", [])}
    old = one | {"a11y-auditor": verdict("a11y-auditor", [], attempt=0)}
    both = one | {"a11y-auditor": verdict("a11y-auditor", [])}
    failed = one | {"a11y-auditor": verdict("a11y-auditor", [], result="NONE")}
    assert [tally(names, rows, 1) for rows in ({}, one, old, both, failed)] == [
        "pending",
        "pending",
        "pending",
        "pass",
        "fail",
    ]
    assert tally((), both, 1) == "pending"


def test_a_gate_that_anybody_may_list_is_always_held() -> None:
    assert certified(DEFAULT_PROTOCOL, {}, 1, "t") == frozenset({"GATE-MSG-STRICT"})
