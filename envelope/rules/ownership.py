"""Rows of who may say what, and when (ENV40x, ENV42x)."""

from collections.abc import Callable, Iterator
from typing import Final

from interlock.core.rule import error_rule
from interlock.envelope.case import TASK_ID, Case, draft, put
from interlock.envelope.draft import Delete, Draft, Insert, Op, Patch, snippet
from interlock.envelope.protocol import ECHO, STATUS_OWNER, STATUSES
from interlock.envelope.repair import better_status, blocked, state, way_to_pass

_SKIPS: Final = {
    ("READY_FOR_QA", "APPROVED"): ("ENV406", "it skips QA"),
    ("READY_FOR_QA", "READY_FOR_REVIEW"): ("ENV407", "it skips QA"),
    ("IN_PROGRESS", "APPROVED"): ("ENV408", "it skips everything"),
}
_BEYOND: Final = frozenset(STATUSES[STATUSES.index("READY_FOR_QA") + 1 :])


def _verdict_on_status(case: Case) -> tuple[str, str] | None:
    """Return the code and the reason why the stated status is refused; the first row that applies decides."""
    status, role = case.stated_status, case.role
    if status is None or role is None or status in case.legal:
        return None
    current = case.current_status
    if not case.protocol.may_set(role, status):
        if status == "APPROVED":
            return "ENV403", f"{role.name} sets APPROVED; the orchestrator alone may."
        if role.hands_over and status in _BEYOND:
            return "ENV402", f"{role.name} sets {status}; it may not set a status beyond READY_FOR_QA."
        if ECHO.get(role.kind) == status:
            known = f"the task is {current}" if current else "the task's status was not given"
            return "ENV404", f"{role.name} repeats {status}, but {known}."
        return "ENV401", f"{role.name} sets {status}, which belongs to: {STATUS_OWNER[status]}."
    if current is None:
        return None
    code, why = _SKIPS.get((current, status), ("ENV405", "the status machine has no such edge"))
    return code, f"The task is {current}; it cannot become {status}: {why}."


def _status_row(code: str) -> Callable[[Case], Iterator[Draft]]:
    def check(case: Case) -> Iterator[Draft]:
        verdict = _verdict_on_status(case)
        item = case.value("STATUS")
        if verdict is None or verdict[0] != code or item is None:
            return
        better = better_status(case)
        legal = " or ".join(case.legal) or "no envelope at all: the task is closed"
        advice = way_to_pass(case) if case.legal else "Send nothing: the task is closed."
        yield draft(code, "STATUS", item, verdict[1], legal, state(case, better), advice)

    return check


def _verdict(case: Case) -> Iterator[Draft]:
    """QA and review agents say PASS or FAIL in one way each."""
    role, gate, item = case.role, case.own_gate, case.value("STATUS")
    if role is None or role.kind not in ECHO or gate is None or item is None or case.current_status is None:
        return
    if not {"GATES_PASSED", "FAIL_REASONS"} <= case.fields.keys():
        return
    passed = gate in case.passed_ids
    to_pass = f"PASS ({ECHO[role.kind]}, {gate} in GATES_PASSED, FAIL_REASONS NONE)"
    expected = f"{to_pass} or FAIL (BLOCKED, a reason that names {gate})"
    if case.status is not None and case.status == case.echo:
        if passed and not case.own_reasons:
            if gate in case.failed - case.certified:
                message = f"{role.name} says that {gate} passed, and the journal of this task says that it failed."
                yield draft("ENV419", "STATUS", item, message, expected, state(case, "BLOCKED"))
            return
        what = "with reasons for a failure" if passed else f"without {gate} in GATES_PASSED"
        message = f"{role.name} repeats {case.status} {what}: neither a pass nor a fail."
        advice = f"If {gate} did pass, list it in GATES_PASSED with its evidence and keep FAIL_REASONS: NONE."
        yield draft("ENV419", "STATUS", item, message, expected, state(case, "BLOCKED"), advice)
    elif case.status == "BLOCKED" and case.reasons:
        names = any(gate == named.id for reason in case.reasons for named in case.named_gates(reason))
        unnamed = any(not case.named_gates(reason) for reason in case.reasons)
        if names and passed and gate not in case.reason_gates:
            message = f"{role.name} is BLOCKED, a reason names {gate}, and GATES_PASSED lists it."
            yield draft("ENV419", "FAIL_REASONS", case.reasons[0], message, expected, blocked(case))
        if not names and not unnamed:
            message = f"{role.name} is BLOCKED and no reason names {gate}: neither a pass nor a fail."
            yield draft("ENV419", "FAIL_REASONS", case.reasons[0], message, expected, blocked(case))


def _other_agent(case: Case) -> Iterator[Draft]:
    item = case.value("ASSIGNED_AGENT")
    if item is None or case.agent not in case.protocol.roles or item.text not in case.protocol.roles:
        return
    if item.text == case.agent:
        return
    message = f"The task was assigned to {case.agent}, and {item.text} answers."
    yield draft("ENV420", "ASSIGNED_AGENT", item, message, f"`{case.agent}`", [put(item, case.agent)])


def _other_task(case: Case) -> Iterator[Draft]:
    item = case.value("TASK_ID")
    if item is None or case.task_id is None or item.text == case.task_id or not TASK_ID.fullmatch(item.text):
        return
    message = f"The assignment is {case.task_id}, and the response is for {item.text}."
    yield draft("ENV421", "TASK_ID", item, message, f"`{case.task_id}`", [put(item, case.task_id)])


def _other_gates(case: Case) -> Iterator[Draft]:
    field = case.fields.get("GATES_REQUIRED")
    if field is None or not field.items or case.gates is None:
        return
    stated = {gate.id for gate in case.gate_items("GATES_REQUIRED") if gate.id}
    missing = [gate for gate in case.gates if gate not in stated]
    extra = sorted(stated - set(case.gates))
    if not missing and not extra:
        return
    parts = [f"lacks {', '.join(missing)}"] if missing else []
    parts += [f"adds {', '.join(extra)}"] if extra else []
    message = f"GATES_REQUIRED is not what the assignment requires: it {' and '.join(parts)}."
    ops: list[Op] = []
    if field.value_end > field.value_column:
        ops.append(Patch(field.line, field.value_column, field.value_end, ""))
    if field.end_line > field.line:
        ops.append(Delete(field.line + 1, field.end_line))
    ops.append(Insert(field.line, tuple(f"- {gate}" for gate in case.gates)))
    expected = ", ".join(f"`{gate}`" for gate in case.gates)
    found = snippet(", ".join(sorted(stated)))
    yield draft("ENV422", "GATES_REQUIRED", field.items[0], message, expected, ops, found=found)


_OWNERSHIP: Final = "Strict Envelope §3 STATUS, Status Ownership"
_FORBIDDEN: Final = "Strict Envelope §6 Transitions that are FORBIDDEN"

OWNERSHIP_RULES: Final = (
    error_rule(
        "ENV401",
        "A status is set by the agent that owns it.",
        _OWNERSHIP,
        "State a status that this agent may set.",
        "STATUS: IN_PROGRESS\nASSIGNED_AGENT: web-design-lead",
        "STATUS: READY_FOR_QA\nASSIGNED_AGENT: web-design-lead",
        _status_row("ENV401"),
    ),
    error_rule(
        "ENV402",
        "frontend-implementer does not set a status beyond READY_FOR_QA.",
        "Strict Envelope §4 frontend-implementer CANNOT set status beyond READY_FOR_QA",
        "State READY_FOR_QA and leave the rest to the orchestrator.",
        "STATUS: READY_FOR_QA\nASSIGNED_AGENT: frontend-implementer",
        "STATUS: READY_FOR_REVIEW\nASSIGNED_AGENT: frontend-implementer",
        _status_row("ENV402"),
    ),
    error_rule(
        "ENV403",
        "The orchestrator alone sets APPROVED.",
        "Strict Envelope §6 Any agent setting APPROVED except orchestrator",
        "State a status that this agent may set.",
        "STATUS: READY_FOR_QA\nASSIGNED_AGENT: frontend-implementer",
        "STATUS: APPROVED\nASSIGNED_AGENT: frontend-implementer",
        _status_row("ENV403"),
    ),
    error_rule(
        "ENV404",
        "A QA or review agent repeats only the status that the task has.",
        "Interlock: set and echo; Strict Envelope §3 gives these agents no way to say that they passed",
        "Repeat QA_IN_PROGRESS (QA) or READY_FOR_REVIEW (review) while the task has it; otherwise state BLOCKED.",
        "STATUS: QA_IN_PROGRESS\nASSIGNED_AGENT: visual-qa\n(while the task is QA_IN_PROGRESS)",
        "STATUS: QA_IN_PROGRESS\nASSIGNED_AGENT: visual-qa\n(while the task is READY_FOR_REVIEW)",
        _status_row("ENV404"),
    ),
    error_rule(
        "ENV405",
        "A status follows from the one before it along an edge of the status machine.",
        "Strict Envelope §6 Status Transition Rules",
        "State a status that may follow.",
        "STATUS: READY_FOR_QA\n(while the task is IN_PROGRESS)",
        "STATUS: READY_FOR_QA\n(while the task is BLOCKED)",
        _status_row("ENV405"),
    ),
    error_rule(
        "ENV406",
        "READY_FOR_QA does not become APPROVED: QA comes between.",
        _FORBIDDEN,
        "State QA_IN_PROGRESS and invoke the QA agents.",
        "STATUS: QA_IN_PROGRESS\n(while the task is READY_FOR_QA)",
        "STATUS: APPROVED\n(while the task is READY_FOR_QA)",
        _status_row("ENV406"),
    ),
    error_rule(
        "ENV407",
        "READY_FOR_QA does not become READY_FOR_REVIEW: QA comes between.",
        _FORBIDDEN,
        "State QA_IN_PROGRESS and invoke the QA agents.",
        "STATUS: QA_IN_PROGRESS\n(while the task is READY_FOR_QA)",
        "STATUS: READY_FOR_REVIEW\n(while the task is READY_FOR_QA)",
        _status_row("ENV407"),
    ),
    error_rule(
        "ENV408",
        "IN_PROGRESS does not become APPROVED: everything comes between.",
        _FORBIDDEN,
        "Wait for the hand-over, QA and review.",
        "STATUS: READY_FOR_QA\n(while the task is IN_PROGRESS)",
        "STATUS: APPROVED\n(while the task is IN_PROGRESS)",
        _status_row("ENV408"),
    ),
    error_rule(
        "ENV419",
        "A QA or review agent says PASS or FAIL, and nothing between.",
        "Strict Envelope §6 visual-qa + a11y-auditor PASS / FAIL, code-reviewer PASS / FAIL",
        "PASS: repeat the task's status, list your gate with its evidence, FAIL_REASONS: NONE. "
        "FAIL: BLOCKED, and a reason that names your gate.",
        "STATUS: BLOCKED\nASSIGNED_AGENT: visual-qa\nFAIL_REASONS:\n- GATE-VISUAL-QA: the menu covers the title",
        "STATUS: BLOCKED\nASSIGNED_AGENT: visual-qa\nFAIL_REASONS:\n- GATE-A11Y-BASELINE: contrast is too low",
        _verdict,
    ),
    error_rule(
        "ENV420",
        "The agent that answers is the one that was asked.",
        "Strict Envelope §3 ASSIGNED_AGENT: The agent completing the task",
        "Write the agent of the assignment.",
        "ASSIGNED_AGENT: frontend-implementer",
        "ASSIGNED_AGENT: web-design-lead\n(when frontend-implementer was asked)",
        _other_agent,
    ),
    error_rule(
        "ENV421",
        "The response is for the task of the assignment.",
        "Strict Envelope §3 TASK_ID: A stable identifier provided by the Orchestrator",
        "Copy the task id from the assignment.",
        "TASK_ID: HOME-IA-001",
        "TASK_ID: HOME-IA-002\n(when HOME-IA-001 was assigned)",
        _other_task,
    ),
    error_rule(
        "ENV422",
        "GATES_REQUIRED is what the assignment requires.",
        "Strict Envelope §3 GATES_REQUIRED: List of gate IDs that must pass for this task",
        "Copy the gates from the assignment.",
        "GATES_REQUIRED:\n- GATE-MSG-STRICT\n- GATE-VISUAL-QA",
        "GATES_REQUIRED:\n- GATE-MSG-STRICT\n(when GATE-VISUAL-QA was required too)",
        _other_gates,
    ),
)
