"""Promises of `reply`: what it writes is a valid answer of every role, and holds nothing that was not said."""

from pathlib import Path

import pytest

from interlock.agents import Ask, reply
from interlock.envelope import Case, validate
from interlock.envelope.protocol import DEFAULT_PROTOCOL, EvidenceKey, Status
from tests.agents.conftest import AskMaker

GATES = tuple(DEFAULT_PROTOCOL.gates)


def ask(role: str, root: Path, required: tuple[str, ...] = GATES) -> Ask:
    return AskMaker()(root, task_id="A-1", role=role, evidence={}, task="Build the page", required=required)


@pytest.mark.parametrize(
    ("role", "status", "now", "gate"),
    [
        ("web-design-lead", "IN_PROGRESS", "IN_PROGRESS", ""),
        ("frontend-implementer", "READY_FOR_QA", "IN_PROGRESS", ""),
        ("visual-qa", "QA_IN_PROGRESS", "QA_IN_PROGRESS", "GATE-VISUAL-QA"),
        ("code-reviewer", "READY_FOR_REVIEW", "READY_FOR_REVIEW", "GATE-CODE-REVIEW"),
    ],
)
def test_a_reply_of_every_kind_of_role_is_valid(tmp_path: Path, role: str, status: str, now: Status, gate: str) -> None:
    evidence: dict[EvidenceKey, tuple[str, ...]] = {
        "screenshots": ("artifacts/screenshots/a.png",),
        "console": ("artifacts/console/a.jsonl",),
        "reports": ("artifacts/reports/A-1/1/review.md",),
    }
    text = reply(ask(role, tmp_path), status, gate, evidence=evidence if gate else None)
    report = validate(text, Case(agent=role, task_id="A-1", gates=GATES, current_status=now, protocol=DEFAULT_PROTOCOL))
    assert [item.code for item in report.findings if item.level == "error"] == []


def test_a_failure_names_its_reason_and_passes_the_gate_of_the_envelope_where_that_is_required(tmp_path: Path) -> None:
    text = reply(ask("visual-qa", tmp_path), "BLOCKED", fail_reasons=("GATE-VISUAL-QA: an error",), output="No.")
    report = validate(text, Case(agent="visual-qa", task_id="A-1", gates=GATES, current_status="QA_IN_PROGRESS"))
    assert report.envelope is not None
    assert report.envelope.fail_reasons == ("GATE-VISUAL-QA: an error",)
    assert report.envelope.gates_passed == ("GATE-MSG-STRICT",)
    assert report.ok
    text = reply(ask("visual-qa", tmp_path, ("GATE-VISUAL-QA",)), "BLOCKED", fail_reasons=("GATE-VISUAL-QA: no",))
    assert "GATES_PASSED: []" in text
