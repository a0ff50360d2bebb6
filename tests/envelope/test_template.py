"""Templates and examples: what the tables generate passes the rules that the tables state."""

import re

import pytest

from interlock.envelope.model import render
from interlock.envelope.outcomes import Outcome, outcomes
from interlock.envelope.protocol import DEFAULT_PROTOCOL, GATES, ROLES, GateSpec, Protocol, Role
from interlock.envelope.template import example, required_gates, template
from interlock.envelope.validation import parse
from tests.envelope.texts import check
from tests.table import each_row

TURNS = [(role, outcome) for role in ROLES for outcome in outcomes(role)]
NAMES = [f"{role.name}: {outcome.name}" for role, outcome in TURNS]

TESTER = Protocol(
    {
        role.name: role
        for role in (
            Role("orchestrator", "orchestrator"),
            Role("backend-engineer", "build", hands_over=True),
            Role("test-runner", "qa", certifies="GATE-UNIT"),
            Role("code-reviewer", "review", certifies="GATE-CODE-REVIEW"),
        )
    },
    {gate.id: gate for gate in (*GATES, GateSpec("GATE-UNIT", "the tests pass", "test-runner", any_evidence=True))},
)
TESTER_TURNS = [(role, outcome) for role in TESTER.roles.values() for outcome in outcomes(role)]

FILLED = {
    "<TASK_ID of the assignment>": "HOME-UI-001",
    "<what was attempted, in one line>": "Build the landing page",
    "<path of each file that was used>": "docs/wireframes.md",
    "<what failed, and where>": "the form has no label",
    "<the deliverable: what was done, found or decided>": "All of it was done.",
    "<who does what next>": "orchestrator to go on",
}


@each_row(("role", "outcome"), TURNS, ids=NAMES)
def test_every_example_is_valid_where_its_turn_ends(role: Role, outcome: Outcome):
    envelope = example(role.name, outcome=outcome.name)
    report = check(
        render(envelope),
        agent=role.name,
        task_id=envelope.task_id,
        gates=required_gates(),
        current_status=outcome.before,
    )
    assert (report.findings, report.envelope) == ((), envelope)
    assert report.verdict == {"pass": "PASS", "fail": "FAIL"}.get(outcome.name)


@each_row(("role", "outcome"), TESTER_TURNS, ids=lambda value: getattr(value, "name", None))
def test_the_examples_of_another_roster_are_valid_too(role: Role, outcome: Outcome):
    envelope = example(
        role.name, TESTER, outcome=outcome.name, task_id="API-7", gates=("GATE-UNIT", "GATE-CODE-REVIEW")
    )
    report = check(render(envelope), protocol=TESTER, agent=role.name, current_status=outcome.before)
    assert report.findings == ()


@each_row(("role", "outcome"), TURNS, ids=NAMES)
def test_a_filled_template_is_valid(role: Role, outcome: Outcome):
    text = template(role.name, outcome=outcome.name)
    for hole, value in FILLED.items():
        text = text.replace(hole, value)
    text = text.replace("<file>", "page.png")
    assert re.findall(r"<[^>]*>", text) == []
    report = check(text, agent=role.name, gates=required_gates(), current_status=outcome.before)
    assert report.findings == ()


def test_a_template_states_what_the_assignment_states():
    envelope = parse(
        template(
            "visual-qa",
            task_id="HOME-UI-007",
            task="Look at the page",
            gates=("GATE-VISUAL-QA", "GATE-CODE-REVIEW"),
            evidence={"screenshots": ("artifacts/screenshots/a.png",), "console": ("artifacts/console/c.jsonl",)},
        )
    ).envelope
    assert envelope is not None
    assert (envelope.task_id, envelope.task) == ("HOME-UI-007", "Look at the page")
    assert envelope.gates_required == ("GATE-VISUAL-QA", "GATE-CODE-REVIEW")
    assert envelope.evidence["screenshots"] == ("artifacts/screenshots/a.png",)
    assert envelope.evidence["a11y"] == ()


@pytest.mark.parametrize(
    ("current", "status"),
    [("READY_FOR_QA", "QA_IN_PROGRESS"), ("QA_IN_PROGRESS", "READY_FOR_REVIEW"), ("READY_FOR_REVIEW", "APPROVED")],
)
def test_the_current_status_picks_the_orchestrators_next_step(current: str, status: str):
    assert template("orchestrator", current_status=current).startswith(f"STATUS: {status}\n")  # pyright: ignore


def test_only_the_role_that_hands_over_can_hand_over():
    assert [row.name for row in outcomes(DEFAULT_PROTOCOL.roles["web-design-lead"])] == ["progress", "blocked"]
    with pytest.raises(KeyError):
        example("web-design-lead", outcome="hand-over")
    with pytest.raises(KeyError):
        example("nobody")


def test_a_blocked_task_with_one_gate_does_not_both_pass_and_fail_it():
    envelope = example("web-design-lead", outcome="blocked", gates=("GATE-MSG-STRICT",))
    assert envelope.gates_passed == ()
    assert envelope.fail_reasons[0].startswith("GATE-MSG-STRICT: ")
