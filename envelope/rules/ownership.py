"""Rows of who may set which status, and of the verdicts of judges (ENV40x, ENV419)."""

from collections.abc import Callable, Iterator
from typing import Final

from interlock.core.rule import error_rule
from interlock.envelope.case import GATE_IN_TEXT, REASON, Case, add, draft, drop, state
from interlock.envelope.draft import Draft
from interlock.envelope.protocol import ECHO, STATUS_OWNER


def _verdict_on_status(case: Case) -> tuple[str, str] | None:
    """Return the code and the reason why the stated status is refused; the first row that applies decides."""
    status, role = case.stated_status, case.role
    if status is None or role is None or status in case.legal:
        return None
    current = case.current_status
    if case.protocol.may_set(role, status):
        return "ENV405", f"The task is {current}; the status machine has no edge to {status}."
    # The most telling reason first: an agent that approves hears that, and not whose status it is.
    if status == "APPROVED":
        return "ENV403", f"{role.name} sets APPROVED; the orchestrator alone may."
    if role.hands_over and status in {"QA_IN_PROGRESS", "READY_FOR_REVIEW"}:
        return "ENV402", f"{role.name} sets {status}; it may not set a status beyond READY_FOR_QA."
    if ECHO.get(role.kind) == status:
        known = f"the task is {current}" if current else "the task's status was not given"
        return "ENV404", f"{role.name} repeats {status}, but {known}."
    return "ENV401", f"{role.name} sets {status}, which belongs to: {STATUS_OWNER[status]}."


def _status_row(code: str) -> Callable[[Case], Iterator[Draft]]:
    def check(case: Case) -> Iterator[Draft]:
        verdict = _verdict_on_status(case)
        item = case.value("STATUS")
        if verdict is None or verdict[0] != code or item is None:
            return
        advice = case.way_to_pass if case.legal else "Send nothing: the task is closed."
        expected = " or ".join(case.legal) or "no envelope at all: the task is closed"
        yield draft(code, "STATUS", item, verdict[1], expected, *state(case, case.better_status), advice=advice)

    return check


def _verdict(case: Case) -> Iterator[Draft]:
    """QA and review agents say PASS or FAIL in one way each."""
    role, gate, item = case.role, case.own_gate, case.value("STATUS")
    if role is None or role.kind not in ECHO or gate is None or item is None or case.current_status is None:
        return
    # A verdict is in three fields; where one is missing, there is none to judge.
    if not {"GATES_PASSED", "FAIL_REASONS"} <= case.fields.keys():
        return
    passed = gate in case.passed_ids
    to_pass = f"PASS ({ECHO[role.kind]}, {gate} in GATES_PASSED, FAIL_REASONS NONE)"
    expected = f"{to_pass} or FAIL (BLOCKED, a reason that names {gate})"
    if case.status is not None and case.status == case.echo:
        if passed and not case.own_reasons:
            if gate in case.now_failed:
                message = f"{role.name} says that {gate} passed, and the journal of this task says that it failed."
                yield draft("ENV419", "STATUS", item, message, expected, *state(case, "BLOCKED"))
            return
        what = "with reasons for a failure" if passed else f"without {gate} in GATES_PASSED"
        message = f"{role.name} repeats {case.status} {what}: neither a pass nor a fail."
        advice = f"If {gate} did pass, list it in GATES_PASSED with its evidence and keep FAIL_REASONS: NONE."
        yield draft("ENV419", "STATUS", item, message, expected, *state(case, "BLOCKED"), advice=advice)
    elif case.status == "BLOCKED" and case.reasons:
        named = [GATE_IN_TEXT.findall(reason.text) for _, reason in case.reasons]
        names = any(gate in gates for gates in named)
        place = case.reasons[0][1]
        if names and passed and gate not in case.reason_gates:
            message = f"{role.name} is BLOCKED, a reason names {gate}, and GATES_PASSED lists it."
            claim = next(each for each in case.first_claims if each.id == gate)
            yield draft("ENV419", "FAIL_REASONS", place, message, expected, drop("GATES_PASSED", claim.position))
        # A reason that names no gate is refused as such (ENV311), and its fix names this one.
        if not names and all(named):
            message = f"{role.name} is BLOCKED and no reason names {gate}: neither a pass nor a fail."
            yield draft("ENV419", "FAIL_REASONS", place, message, expected, add("FAIL_REASONS", f"{gate}: <{REASON}>"))


_OWNERSHIP: Final = "Strict Envelope §3 STATUS, Status Ownership"

OWNERSHIP_RULES: Final = (
    error_rule(
        "ENV401",
        "A status is set by the agent that owns it.",
        _OWNERSHIP,
        "State a status that this agent may set.",
        check=_status_row("ENV401"),
    ),
    error_rule(
        "ENV402",
        "frontend-implementer does not set a status beyond READY_FOR_QA.",
        "Strict Envelope §4 frontend-implementer CANNOT set status beyond READY_FOR_QA",
        "State READY_FOR_QA and leave the rest to the orchestrator.",
        check=_status_row("ENV402"),
    ),
    error_rule(
        "ENV403",
        "The orchestrator alone sets APPROVED.",
        "Strict Envelope §6 Any agent setting APPROVED except orchestrator",
        "State a status that this agent may set.",
        check=_status_row("ENV403"),
    ),
    error_rule(
        "ENV404",
        "A QA or review agent repeats only the status that the task has.",
        "Interlock: set and echo; Strict Envelope §3 gives these agents no way to say that they passed",
        "Repeat QA_IN_PROGRESS (QA) or READY_FOR_REVIEW (review) while the task has it; otherwise state BLOCKED.",
        check=_status_row("ENV404"),
    ),
    error_rule(
        "ENV405",
        "A status follows from the one before it along an edge of the status machine; nothing skips QA.",
        "Strict Envelope §6 Transitions that are FORBIDDEN",
        "State a status that may follow.",
        check=_status_row("ENV405"),
    ),
    error_rule(
        "ENV419",
        "A QA or review agent says PASS or FAIL, and nothing between.",
        "Strict Envelope §6 visual-qa + a11y-auditor PASS / FAIL, code-reviewer PASS / FAIL",
        "PASS: repeat the task's status, list your gate with its evidence, FAIL_REASONS: NONE. "
        "FAIL: BLOCKED, and a reason that names your gate.",
        check=_verdict,
    ),
)
