"""Repairs that reach over several fields: another status, a failed verdict, a missing field, a text without fields."""

from dataclasses import replace
from typing import TYPE_CHECKING

from interlock.core.text import closest
from interlock.envelope.case import REASON, add, drop, put
from interlock.envelope.draft import Delete, Draft, Insert, Op, Patch
from interlock.envelope.fields import says_nothing
from interlock.envelope.protocol import ECHO, EVIDENCE_KEYS, LABELS, STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.envelope.blocks import Gap
    from interlock.envelope.case import Case
    from interlock.envelope.protocol import Status

_INPUTS = LABELS.index("INPUTS_USED")
_STEP = "1. <next step, such as orchestrator to read the output>"


def better_status(case: "Case") -> "Status | None":
    """Return the status to state instead: the nearest legal one that claims no more than the response does."""
    item = case.value("STATUS")
    word = item.text.upper().replace("-", "_").replace(" ", "_") if item else ""
    near = word if word in STATUSES else closest(word, STATUSES, 0.75)
    for legal in case.legal:
        if legal == near and legal != "BLOCKED" and _is_open(case, legal):
            return legal
    if not case.legal:
        return None
    role = case.role
    if role is not None and role.kind in {"qa", "review"}:
        passes = case.own_gate in case.passed_ids and not case.own_reasons and case.own_gate not in case.failed
        return case.echo if case.echo and passes else "BLOCKED"
    if role is not None and role.kind == "build":
        work: tuple[Status, ...] = ("READY_FOR_QA", "IN_PROGRESS")
        for wanted in work:
            if wanted in case.legal and near != "BLOCKED":
                return wanted
    onward: list[Status] = [
        status for status in case.legal if status not in {"BLOCKED", "APPROVED"} and _is_open(case, status)
    ]
    if case.current_status is not None and onward and near != "BLOCKED":
        return onward[-1]
    return "BLOCKED" if "BLOCKED" in case.legal else None


def unpassed_by_qa(case: "Case") -> list[str]:
    """Return the required gates of QA roles that the response does not list as passed."""
    of_qa = {role.certifies for role in case.protocol.of_kind("qa")}
    return [gate for gate in case.required or () if gate in of_qa and gate not in case.passed_ids]


def _is_open(case: "Case", status: "Status") -> bool:
    """Return whether no gate and no reason keeps the orchestrator from a status; for other roles it is an echo."""
    if case.role is None or case.role.kind != "orchestrator" or status not in {"READY_FOR_REVIEW", "APPROVED"}:
        return True
    lacking = unpassed_by_qa(case) if status == "READY_FOR_REVIEW" else set(case.required or ()) - case.passed_ids
    return not (lacking or case.reasons or case.failed - case.certified)


def _may_stay(case: "Case") -> bool:
    """Return whether the stated status may stay once GATES_PASSED, which is missing, is written as far as is known."""
    if case.status != case.echo or case.own_gate is None:
        return case.status is None or _is_open(case, case.status)
    there = all(case.items(f"EVIDENCE.{key}") for key in case.protocol.gate(case.own_gate).evidence)
    return there and not case.own_reasons and case.own_gate not in case.failed


def _in_the_end(case: "Case") -> "Status | None":
    """Return the status that the response has when every stated fix is made."""
    status = case.status or better_status(case)
    if case.status is not None and case.status == case.echo:
        passes = case.own_gate in case.passed_ids if "GATES_PASSED" in case.fields else _may_stay(case)
        return case.echo if passes and case.own_gate not in case.failed - case.certified else "BLOCKED"
    return status if status is None or _is_open(case, status) else "BLOCKED"


def state(case: "Case", status: "Status | None", failed: "Iterable[str]" = ()) -> tuple[Op, ...]:
    """Return the changes that state another status, and what that status asks of other fields.

    Args:
        case: The response.
        status: The status to state.
        failed: For BLOCKED, the gates to name in any case.
    """
    item = case.value("STATUS")
    if status is None or item is None:
        return ()
    ops: list[Op] = [put(item, status)]
    if status == "BLOCKED":
        ops += blocked(case, failed)
    if status != "APPROVED":
        ops += some_action(case)
    return tuple(ops)


def blocked(case: "Case", gates: "Iterable[str]" = ()) -> tuple[Op, ...]:
    """Return the changes that a BLOCKED response needs: reasons that name gates, and no claim that a reason denies."""
    wanted = [gate for gate in gates if gate not in case.reason_gates]
    role = case.role
    if role is not None and role.kind in {"qa", "review"} and case.own_gate:
        named = any(case.own_gate == gate.id for item in case.reasons for gate in case.named_gates(item))
        # A reason that names no gate yet will be given this role's own.
        waits = any(not case.named_gates(item) for item in case.reasons)
        wanted += [] if named or waits else [case.own_gate]
    elif not wanted and not case.reasons:
        wanted = sorted(case.failed - case.certified) or [open_gate(case)]
    own = {case.own_gate} if role and role.kind in {"qa", "review"} else set[str | None]()
    return (*give_reasons(case, wanted), *deny(case, own))


def open_gate(case: "Case") -> str:
    """Return the gate that most likely failed: the role's own, else one that is not said to have passed."""
    still = [gate for gate in case.required or () if gate not in case.passed_ids]
    return case.own_gate or (still or ["GATE-MSG-STRICT"])[0]


def deny(case: "Case", gates: "Iterable[str | None]") -> tuple[Op, ...]:
    """Return the changes that take gates out of GATES_PASSED: a reason that names one denies it."""
    field, denied = case.fields.get("GATES_PASSED"), frozenset(gates)
    return tuple(drop(field, gate.item) for gate in case.passed if gate.id in denied) if field else ()


def give_reasons(case: "Case", gates: "Iterable[str]") -> tuple[Op, ...]:
    """Return the changes that add a reason for each gate, and take it out of GATES_PASSED."""
    field, named = case.fields.get("FAIL_REASONS"), tuple(dict.fromkeys(gates))
    texts = [f"{gate}: <{REASON}>" for gate in named]
    if field is None or not field.items or not texts:
        return ()
    if case.reasons:
        return (*add(field, texts), *deny(case, named))
    none = field.items[0]
    gone: Op = (
        Delete(none.line, none.line) if none.marker else Patch(field.line, field.value_column, field.value_end, "")
    )
    return (gone, Insert(none.line, tuple(f"- {text}" for text in texts)), *deny(case, named))


def some_action(case: "Case") -> tuple[Op, ...]:
    """Return the changes that put a step in place of NONE."""
    items = case.items("NEXT_ACTIONS")
    if len(items) != 1 or not says_nothing(items[0].text):
        return ()
    item = items[0]
    if item.marker:
        return (put(item, _STEP.partition(" ")[2]),)
    return (Patch(item.line, item.column, item.end, ""), Insert(item.line, (_STEP,)))


def fill(case: "Case", gap: "Gap") -> Draft:
    """Turn a gap into a draft whose fix says what this task and this agent would write there."""
    if gap.kind == "report":
        return _wrap(case, gap)
    labels = gap.labels
    listed = ", ".join(label.partition(".")[2] or label for label in labels)
    if gap.kind == "empty":
        value, under = _content(case, gap.label)
        ops: tuple[Op, ...] = (Patch(gap.line, gap.column, gap.column, f" {value}"),) if value else ()
        ops = (*ops, Insert(gap.line, under)) if under else ops
        message = f"{gap.label} is empty."
        expected = f"a value of {gap.label}"
        return Draft("ENV210", gap.label, gap.line, gap.column, message, "nothing", expected, (*ops, *_also(case, gap)))
    lines = [line for label in labels for line in _written(case, label)]
    ops = (Insert(gap.line, tuple(lines), gap.rank), *_also(case, gap))
    if "." in labels[0]:
        message = f"EVIDENCE lacks the key{'s' if len(labels) > 1 else ''} {listed}."
        return Draft("ENV216", gap.label, gap.line, 1, message, "nothing", f"`{lines[0].strip()}`", ops, rank=gap.rank)
    index = LABELS.index(gap.label)
    place = f"after {LABELS[index - 1]}" if index else "as the first line"
    message = f"The field {gap.label} is missing."
    advice = "Name each file that you read; write `INPUTS_USED: []` only if there was none." if index == _INPUTS else ""
    return Draft(
        "ENV203", gap.label, max(gap.line, 1), 1, message, "nothing", f"`{gap.label}:` {place}", ops, advice,
        rank=gap.rank,
    )  # fmt: skip


def _written(case: "Case", label: str) -> list[str]:
    """Return the lines of a whole field."""
    value, under = _content(case, label)
    indent, name = ("  ", label.partition(".")[2]) if "." in label else ("", label)
    return [f"{indent}{name}: {value}" if value else f"{indent}{name}:", *under]


def _wrap(case: "Case", gap: "Gap") -> Draft:
    """Make a plain report the OUTPUT of an envelope whose other fields are to be filled in."""
    judges = [role for role in case.protocol.roles.values() if case.current_status == ECHO.get(role.kind, "none")]
    likely = (*judges, *case.protocol.of_kind("build"), *case.protocol.roles.values())[0].name
    known = case if case.role else replace(case, agent=likely)
    status = better_status(known) or "<status>"
    if len(known.legal) > 1:
        status = f"<your status: {' or '.join(known.legal)}, such as {status}>"
    lines = ["STATUS: " + status]
    for label in LABELS[1:]:
        lines += ["OUTPUT:"] if label == "OUTPUT" else _written(known, label)
    if case.agent is None:
        lines[LABELS.index("ASSIGNED_AGENT")] = f"ASSIGNED_AGENT: <your role, such as {likely}>"
    ops = (Insert(0, tuple(lines)), Delete(1, gap.line, kept=True))
    message = "The response is a plain report: put it under OUTPUT of an envelope, as it is."
    found = f"of the twelve labels {'only ' + ' and '.join(gap.labels) if gap.labels else 'none'}"
    expected = "the twelve fields, with this text under OUTPUT"
    return Draft("ENV223", "", 1, 1, message, found, expected, ops, way_to_pass(known))


def way_to_pass(case: "Case") -> str:
    """Return how a judge says that its gate passed, where the status of the task is not given; nothing for others."""
    role = case.role
    if role is None or role.kind not in ECHO or case.current_status is not None:
        return ""
    echo, gate = ECHO[role.kind], case.own_gate or "the gate"
    return (
        f"If {gate} passed, state `STATUS: {echo}` instead, with it in GATES_PASSED and no reasons. That is valid "
        f"while the task is {echo}: say so where this is checked, with `--current-status {echo}`; an open run of the "
        "task below the root says so itself."
    )


def _also(case: "Case", gap: "Gap") -> tuple[Op, ...]:
    """Return what a status that must be written asks of other fields."""
    if gap.label == "FAIL_REASONS":
        moved = case.status is not None and case.status != _in_the_end(case)
        return (*(state(case, "BLOCKED") if moved else ()), *deny(case, _missing_reasons(case)))
    if gap.label == "GATES_PASSED" and (case.status == "BLOCKED" or not _may_stay(case)):
        return state(case, "BLOCKED")
    if gap.label != "STATUS":
        return ()
    status = better_status(case)
    return (*(blocked(case) if status == "BLOCKED" else ()), *(some_action(case) if status != "APPROVED" else ()))


def _content(case: "Case", label: str) -> tuple[str, tuple[str, ...]]:
    """Return what to write behind a label, and the lines to write under it."""
    if label.startswith("EVIDENCE."):
        return _entries(case, label.partition(".")[2])
    if label == "EVIDENCE":
        lines: list[str] = []
        for key in EVIDENCE_KEYS:
            value, under = _entries(case, key)
            lines += [f"  {key}: {value}".rstrip(), *under]
        return "", tuple(lines)
    if label == "GATES_REQUIRED":
        known = list(
            case.gates or dict.fromkeys([*(gate.id for gate in case.passed if gate.id), *sorted(case.reason_gates)])
        )
        return "", tuple(f"  - {gate}" for gate in known) or ("  - <gate id, such as GATE-MSG-STRICT>",)
    if label == "GATES_PASSED" and case.status is not None and case.status == case.echo and _may_stay(case):
        return "", (f"  - <gates that passed, such as {case.own_gate}>",)
    if label == "INPUTS_USED":
        return "", ("  - <what you read, such as the assignment>",)
    if label == "FAIL_REASONS":
        gates = _missing_reasons(case)
        return ("", tuple(f"- {gate}: <{REASON}>" for gate in gates)) if gates else ("NONE", ())
    if label == "OUTPUT":
        return "", ("<what you deliver, such as a summary of the work>",)
    if label == "NEXT_ACTIONS":
        return ("NONE", ()) if case.status == "APPROVED" == _in_the_end(case) else ("", (_STEP,))
    return _single(case, label), ()


def _missing_reasons(case: "Case") -> tuple[str, ...]:
    """Return the gates that a FAIL_REASONS which is not there has to name; none where it is NONE."""
    failed = sorted(case.failed - case.certified)
    if _in_the_end(case) != "BLOCKED":
        return tuple(failed)
    return tuple(dict.fromkeys((*((open_gate(case),) if case.own_gate or not failed else ()), *failed)))


def _single(case: "Case", label: str) -> str:
    status = case.stated_status
    # Whose own the stated status could be.
    names = [
        role.name
        for role in case.protocol.roles.values()
        if status is None or (case.protocol.may_set(role, status) and role.kind != "orchestrator")
    ]
    values = {
        "STATUS": better_status(case) or "<status, such as IN_PROGRESS>",
        "TASK_ID": case.task_id or "<task id, such as HOME-IA-001>",
        "TASK": "<what was attempted, such as Correct the total>",
        "ASSIGNED_AGENT": case.agent or f"<your role, such as {(names or ['frontend-implementer'])[0]}>",
        "REPORTS_TO": "orchestrator",
    }
    return values.get(label, "[]")


def _entries(case: "Case", key: str) -> tuple[str, tuple[str, ...]]:
    wanting = [gate.id for gate in case.claims if key in case.protocol.gate(gate.id).evidence]
    if not wanting:
        return "[]", ()
    return "", tuple(f"    - {evidence_path(gate, key)}" for gate in wanting[:1])


def evidence_path(gate: str, key: str) -> str:
    """Return a placeholder for the path of one evidence file; it suggests no name, so that nobody invents one."""
    return f"<path of a {key} file for {gate} that exists>"


def evidence_advice(case: "Case", gate: str, keys: "Iterable[str]") -> str:
    """Return what makes the evidence of a gate, and what to do without it."""
    if case.protocol.gate(gate).command:
        made = "Interlock makes that file when it runs the command of the gate; the assignment names it."
    elif page := [key for key in keys if key != "reports"]:
        makers = " and ".join(f"`interlock evidence {key} PAGE`" for key in page)
        made = f"In a run Interlock makes such a file, and the assignment names it; elsewhere {makers} does."
    else:
        made = "Write the report first."
    last = ", and answer BLOCKED" if gate == case.own_gate else ""
    return f"{made} Without a file that exists, take {gate} out of GATES_PASSED instead{last}."
