"""Rows of what a claim about a gate needs (ENV41x)."""

from collections.abc import Iterator
from typing import Final

from interlock.core.rule import error_rule
from interlock.core.text import closest
from interlock.envelope.case import Case, Gate, add, choice, draft, drop
from interlock.envelope.draft import Draft, Op, Patch
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey
from interlock.envelope.repair import (
    blocked,
    deny,
    evidence_advice,
    evidence_path,
    give_reasons,
    open_gate,
    state,
    unpassed_by_qa,
)


def _first_claims(case: Case) -> Iterator[Gate]:
    """Yield the first claim of each gate; a repeated one is refused as such."""
    seen: set[str] = set()
    for gate in case.passed:
        if gate.id and gate.id not in seen:
            seen.add(gate.id)
            yield gate


def _subset(case: Case) -> Iterator[Draft]:
    field = case.fields.get("GATES_PASSED")
    if case.required is None or field is None or not case.required:
        return
    for gate in _first_claims(case):
        if gate.id not in case.required:
            message = f"{gate.id} is in GATES_PASSED and not in GATES_REQUIRED."
            expected = "one of " + ", ".join(case.required)
            yield draft("ENV410", "GATES_PASSED", gate.item, message, expected, [drop(field, gate.item)])


def _all_passed(case: Case) -> Iterator[Draft]:
    item = case.value("STATUS")
    if case.status != "APPROVED" or item is None or case.required is None or "GATES_PASSED" not in case.fields:
        return
    missing = [gate for gate in case.required if gate not in case.passed_ids]
    if missing:
        message = f"APPROVED while {', '.join(missing)} of GATES_REQUIRED is not in GATES_PASSED."
        ops = state(case, "BLOCKED", missing)
        advice = "Or list the gates in GATES_PASSED once they have passed, with their evidence."
        yield draft("ENV411", "STATUS", item, message, "GATES_PASSED equal to GATES_REQUIRED", ops, advice)


def _ready_for_review(case: Case) -> Iterator[Draft]:
    item = case.value("STATUS")
    if case.status != "READY_FOR_REVIEW" or case.status == case.echo or item is None or case.required is None:
        return
    missing = [gate for gate in unpassed_by_qa(case) if gate not in case.excused]
    if missing and "GATES_PASSED" in case.fields:
        message = f"READY_FOR_REVIEW while {', '.join(missing)} of QA is not in GATES_PASSED."
        ops = state(case, "BLOCKED", missing)
        advice = "Or list the gates in GATES_PASSED once QA has passed them, with their evidence."
        yield draft("ENV423", "STATUS", item, message, "every gate of QA in GATES_PASSED", ops, advice)
    elif case.reasons:
        message = "STATUS is READY_FOR_REVIEW and FAIL_REASONS gives reasons."
        advice = "Or write FAIL_REASONS: NONE once nothing fails any more."
        yield draft("ENV423", "STATUS", item, message, "BLOCKED, or FAIL_REASONS: NONE", state(case, "BLOCKED"), advice)


def _evidence(case: Case) -> Iterator[Draft]:
    for gate in case.claims:
        spec = case.protocol.gate(gate.id)
        lacking: list[EvidenceKey] = [key for key in spec.evidence if not case.items(f"EVIDENCE.{key}")]
        if spec.any_evidence and not any(case.items(f"EVIDENCE.{key}") for key in EVIDENCE_KEYS):
            lacking = ["reports"]
        lacking = [key for key in lacking if f"EVIDENCE.{key}" in case.fields]
        if not lacking:
            continue
        ops: list[Op] = []
        for key in lacking:
            ops += add(case.fields[f"EVIDENCE.{key}"], [evidence_path(gate.id, key)])
        wanted = " and ".join(f"`{key}`" for key in lacking) if spec.evidence else "any key"
        message = f"{gate.id} is in GATES_PASSED and EVIDENCE has no entry under {wanted}."
        advice = evidence_advice(case, gate.id, lacking)
        yield draft("ENV412", "GATES_PASSED", gate.item, message, f"an entry under {wanted}", ops, advice)


def _self_approval(case: Case) -> Iterator[Draft]:
    field = case.fields.get("GATES_PASSED")
    if case.role is None or field is None:
        return
    for gate in _first_claims(case):
        known = not case.required or gate.id in case.required
        if known and not case.may_claim(gate.id):
            spec = case.protocol.gate(gate.id)
            certifier = "its command" if spec.by_command else spec.certifier or "a QA or review agent"
            decides = "its command decides it" if spec.by_command else f"only {certifier} certifies it"
            message = f"{case.role.name} lists {gate.id} in GATES_PASSED; {decides}."
            expected = f"{gate.id} left to {certifier}"
            yield draft("ENV413", "GATES_PASSED", gate.item, message, expected, [drop(field, gate.item)])


def _blocked_reasons(case: Case) -> Iterator[Draft]:
    field = case.fields.get("FAIL_REASONS")
    if case.status != "BLOCKED" or field is None or not field.items or case.reasons:
        return
    message = "STATUS is BLOCKED and FAIL_REASONS gives no reason."
    expected = "one bullet for each failure, each naming its gate"
    yield draft("ENV414", "FAIL_REASONS", field.items[0], message, expected, blocked(case))


def _reason_known(case: Case) -> Iterator[Draft]:
    if case.required is None:
        return
    known = case.known_gates
    for item in case.reasons:
        named = case.named_gates(item)
        if not named or named[0].id in known:
            continue
        found, begin, end, _ = named[0]
        guess = closest(found, known, 0.7)
        best = guess or choice([open_gate(case)], "the gate that failed")
        start = item.column + begin
        message = f"A reason names {found}, which is neither required here nor a gate of this project."
        ops = [Patch(item.line, start, item.column + end, best), *deny(case, [guess or open_gate(case)])]
        yield draft(
            "ENV415", "FAIL_REASONS", item._replace(column=start), message, "one of " + ", ".join(case.required), ops
        )


def _both(case: Case) -> Iterator[Draft]:
    field = case.fields.get("GATES_PASSED")
    if field is None:
        return
    for gate in _first_claims(case):
        failed = gate.id in case.failed and gate.id not in case.certified
        if gate.id in case.reason_gates or failed:
            where = "FAIL_REASONS" if gate.id in case.reason_gates else "the journal of this task"
            message = f"{gate.id} is in GATES_PASSED, and {where} says that it failed."
            expected = "each gate either passed or failed"
            yield draft("ENV416", "GATES_PASSED", gate.item, message, expected, [drop(field, gate.item)])


def _failed_reason(case: Case) -> Iterator[Draft]:
    field = case.fields.get("FAIL_REASONS")
    if field is None or not field.items:
        return
    named = {gate.id for item in case.reasons for gate in case.named_gates(item)}
    missing = sorted(case.failed - case.certified - named)
    if missing:
        message = f"{', '.join(missing)} failed, and FAIL_REASONS does not say so."
        ops = give_reasons(case, missing)
        if case.status == "APPROVED" or (case.status == "READY_FOR_REVIEW" and case.status != case.echo):
            ops = state(case, "BLOCKED", missing)
        yield draft("ENV417", "FAIL_REASONS", field.items[0], message, "a bullet for each failed gate", ops)


def _approved_reasons(case: Case) -> Iterator[Draft]:
    item = case.value("STATUS")
    if case.status == "APPROVED" and case.reasons and item is not None:
        message = "STATUS is APPROVED and FAIL_REASONS gives reasons."
        advice = "Or write FAIL_REASONS: NONE once nothing fails any more."
        yield draft("ENV418", "STATUS", item, message, "BLOCKED, or FAIL_REASONS: NONE", state(case, "BLOCKED"), advice)


GATE_RULES: Final = (
    error_rule(
        "ENV410",
        "GATES_PASSED is a subset of GATES_REQUIRED.",
        "Strict Envelope §3 GATES_PASSED: Must be a subset of GATES_REQUIRED",
        "Take the gate out of GATES_PASSED.",
        "GATES_REQUIRED: [GATE-MSG-STRICT]\nGATES_PASSED: [GATE-MSG-STRICT]",
        "GATES_REQUIRED: [GATE-VISUAL-QA]\nGATES_PASSED: [GATE-MSG-STRICT]",
        _subset,
    ),
    error_rule(
        "ENV411",
        "APPROVED needs every gate of GATES_REQUIRED in GATES_PASSED.",
        "Strict Envelope §4 APPROVED requires ALL gates in GATES_REQUIRED to be in GATES_PASSED",
        "State BLOCKED and say which gates have not passed.",
        "STATUS: APPROVED\nASSIGNED_AGENT: orchestrator\n"
        "GATES_REQUIRED: [GATE-MSG-STRICT]\nGATES_PASSED: [GATE-MSG-STRICT]\nNEXT_ACTIONS: NONE",
        "STATUS: APPROVED\nASSIGNED_AGENT: orchestrator\n"
        "GATES_REQUIRED: [GATE-MSG-STRICT]\nGATES_PASSED: []\nNEXT_ACTIONS: NONE",
        _all_passed,
    ),
    error_rule(
        "ENV412",
        "Each gate in GATES_PASSED has its evidence.",
        "Strict Envelope §3 EVIDENCE is MANDATORY for gate claims",
        "Cite the evidence files of the gate, which exist already, or take it out of GATES_PASSED.",
        "ASSIGNED_AGENT: orchestrator\nGATES_REQUIRED: [GATE-CODE-REVIEW]\nGATES_PASSED: [GATE-CODE-REVIEW]\n"
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: [artifacts/reports/review.md]",
        "ASSIGNED_AGENT: orchestrator\nGATES_REQUIRED: [GATE-CODE-REVIEW]\nGATES_PASSED: [GATE-CODE-REVIEW]\n"
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []",
        _evidence,
    ),
    error_rule(
        "ENV413",
        "No agent certifies a gate that is not its own.",
        "Strict Envelope §4 No agent may self-approve its own work",
        "Take the gate out of GATES_PASSED and leave it to its certifier.",
        "ASSIGNED_AGENT: frontend-implementer\nGATES_REQUIRED: [GATE-CODE-REVIEW]\nGATES_PASSED: []",
        "ASSIGNED_AGENT: frontend-implementer\nGATES_REQUIRED: [GATE-CODE-REVIEW]\nGATES_PASSED: [GATE-CODE-REVIEW]",
        _self_approval,
    ),
    error_rule(
        "ENV414",
        "BLOCKED gives its reasons.",
        "Strict Envelope §3 FAIL_REASONS: If STATUS is BLOCKED",
        "Write one bullet for each failure, each naming its gate.",
        "STATUS: BLOCKED\nFAIL_REASONS:\n- GATE-VISUAL-QA: the page does not load",
        "STATUS: BLOCKED\nFAIL_REASONS: NONE",
        _blocked_reasons,
    ),
    error_rule(
        "ENV415",
        "A reason names a gate that the task requires or the project knows.",
        "Strict Envelope §3 FAIL_REASONS: Each failure must reference a gate ID",
        "Name the gate that failed.",
        "GATES_REQUIRED: [GATE-VISUAL-QA]\nSTATUS: BLOCKED\nFAIL_REASONS:\n- GATE-VISUAL-QA: the page does not load",
        "GATES_REQUIRED: [GATE-VISUAL-QA]\nSTATUS: BLOCKED\nFAIL_REASONS:\n- GATE-NO-SUCH: the page does not load",
        _reason_known,
    ),
    error_rule(
        "ENV416",
        "No gate has both passed and failed.",
        "Strict Envelope §3 GATES_PASSED: List of gate IDs that have been satisfied",
        "Take the gate out of GATES_PASSED.",
        "GATES_REQUIRED: [GATE-MSG-STRICT]\nGATES_PASSED: []\nSTATUS: BLOCKED\n"
        "FAIL_REASONS:\n- GATE-MSG-STRICT: three answers were refused",
        "GATES_REQUIRED: [GATE-MSG-STRICT]\nGATES_PASSED: [GATE-MSG-STRICT]\nSTATUS: BLOCKED\n"
        "FAIL_REASONS:\n- GATE-MSG-STRICT: three answers were refused",
        _both,
    ),
    error_rule(
        "ENV417",
        "A gate that failed has its reason, whatever the status is.",
        "Strict Envelope §3 FAIL_REASONS: or any gate failed",
        "Add a bullet that names the gate and says why it failed.",
        "FAIL_REASONS:\n- GATE-VISUAL-QA: the menu covers the title\n(after GATE-VISUAL-QA failed)",
        "FAIL_REASONS: NONE\n(after GATE-VISUAL-QA failed)",
        _failed_reason,
    ),
    error_rule(
        "ENV418",
        "APPROVED has no fail reasons.",
        "Strict Envelope §3 STATUS: All gates passed, all evidence verified",
        "State BLOCKED, or write FAIL_REASONS: NONE once nothing fails.",
        "STATUS: APPROVED\nASSIGNED_AGENT: orchestrator\nGATES_REQUIRED: [GATE-MSG-STRICT]\n"
        "GATES_PASSED: [GATE-MSG-STRICT]\nFAIL_REASONS: NONE",
        "STATUS: APPROVED\nASSIGNED_AGENT: orchestrator\nGATES_REQUIRED: [GATE-MSG-STRICT]\n"
        "GATES_PASSED: [GATE-MSG-STRICT]\nFAIL_REASONS:\n- GATE-VISUAL-QA: the menu covers the title",
        _approved_reasons,
    ),
    error_rule(
        "ENV423",
        "READY_FOR_REVIEW needs every required gate of QA in GATES_PASSED and no fail reason.",
        "Strict Envelope §3 READY_FOR_REVIEW: QA passed, awaiting code-reviewer",
        "State BLOCKED and say what QA found, or list what it passed.",
        "STATUS: READY_FOR_REVIEW\nASSIGNED_AGENT: orchestrator\nGATES_REQUIRED: [GATE-VISUAL-QA]\n"
        "GATES_PASSED: [GATE-VISUAL-QA]\nFAIL_REASONS: NONE",
        "STATUS: READY_FOR_REVIEW\nASSIGNED_AGENT: orchestrator\nGATES_REQUIRED: [GATE-VISUAL-QA]\n"
        "GATES_PASSED: []\nFAIL_REASONS:\n- GATE-VISUAL-QA: the menu covers the title",
        _ready_for_review,
    ),
)
