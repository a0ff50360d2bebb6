"""Rows of what single values, reasons and steps may say (ENV110, ENV301-ENV304, ENV311-ENV314)."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from interlock.core.rule import error_rule
from interlock.core.text import closest
from interlock.envelope.case import REASON, TASK_ID, Case, choice, draft, put
from interlock.envelope.characters import name
from interlock.envelope.draft import Delete, Draft, Patch, snippet
from interlock.envelope.fields import says_nothing
from interlock.envelope.labels import IN_OUTPUT, label_in_output
from interlock.envelope.lookalikes import changes, fold, looks, non_ascii, plain
from interlock.envelope.model import Item
from interlock.envelope.protocol import EVIDENCE_KEYS, STATUSES
from interlock.envelope.repair import better_status, deny, open_gate, some_action, state, way_to_pass

_ASCII_FIELDS: Final = ("STATUS", "TASK_ID", "ASSIGNED_AGENT", "REPORTS_TO", "GATES_REQUIRED", "GATES_PASSED")
_HOLE: Final = re.compile(r"[<\[{].*[>\]}]")
_NUMBER: Final = re.compile(r"[0-9]+\.")


def _look_alikes(case: Case) -> Iterator[Draft]:
    labels = (*_ASCII_FIELDS, *(f"EVIDENCE.{key}" for key in EVIDENCE_KEYS))
    for label in labels:
        for item in case.items(label):
            if not item.text.isascii() and fold(item.text).isascii():
                yield _alike(label, item, 0, len(item.text), plain(item.text))
    yield from _in_reasons(case)
    yield from _around_inputs(case)
    yield from _labels_in_output(case)


def _alike(label: str, item: Item, start: int, end: int, meant: str) -> Draft:
    """Report characters between two indexes of an item that only look like ASCII."""
    found = list(changes(item.text[start:end]))
    first = start + found[0][0]
    char = item.text[first]
    ops = [Patch(item.line, item.column + start + at, item.column + start + at + 1, shape) for at, shape in found]
    message = f"{name(char)} {looks(char)}; a program reads another text than `{meant}`."
    expected = f"`{meant}` in ASCII"
    return Draft("ENV110", label, item.line, item.column + first, message, snippet(item.text), expected, tuple(ops))


def _in_reasons(case: Case) -> Iterator[Draft]:
    for item in case.items("FAIL_REASONS"):
        if not item.text.isascii() and says_nothing(item.text) and fold(item.text).isascii():
            yield _alike("FAIL_REASONS", item, 0, len(item.text), plain(item.text))
    for item in case.reasons:
        for gate in case.named_gates(item):
            if not gate.exact:
                yield _alike("FAIL_REASONS", item, gate.start, gate.end, gate.id)


def _around_inputs(case: Case) -> Iterator[Draft]:
    """Report blanks that are not ASCII, and what has no width, before and behind an input."""
    for item in case.items("INPUTS_USED"):
        kept = [index for index, char in enumerate(item.text) if fold(char).strip()]
        if kept and (kept[0] > 0 or kept[-1] + 1 < len(item.text)):
            at = 0 if kept[0] > 0 else kept[-1] + 1
            char = item.text[at]
            ops = [
                Patch(item.line, item.column + first, item.column + last, "")
                for first, last in ((0, kept[0]), (kept[-1] + 1, len(item.text)))
                if first < last
            ]
            message = f"{name(char)} is at the edge of an input; it {looks(char)}."
            expected = snippet(item.text[kept[0] : kept[-1] + 1])
            place = item._replace(column=item.column + at)
            yield draft("ENV110", "INPUTS_USED", place, message, expected, ops)


def _labels_in_output(case: Case) -> Iterator[Draft]:
    """Report a line of OUTPUT that a person reads as a label, though no program does."""
    for item in case.items("OUTPUT"):
        label = "" if item.column > 1 or item.text.isascii() else label_in_output(item.text)
        if label and not IN_OUTPUT.match(item.text):
            char = next(char for char in item.text if not char.isascii())
            message = f"A line of OUTPUT looks like the label {label}: it holds {name(char)}, which {looks(char)}."
            expected = "lines of OUTPUT that nobody takes for a label; indent such a line or begin it with `> `"
            ops = [Patch(item.line, 1, 1, "> ")]
            yield draft("ENV110", "OUTPUT", item, message, expected, ops)


def _status(case: Case) -> Iterator[Draft]:
    item = case.value("STATUS")
    if item is None or case.stated_status is not None:
        return
    better = better_status(case)
    message = f"{snippet(item.text)} is not a status.{non_ascii(item.text)}"
    expected = "one of " + ", ".join(case.legal or STATUSES)
    yield draft("ENV301", "STATUS", item, message, expected, state(case, better), way_to_pass(case))


def _task_id(case: Case) -> Iterator[Draft]:
    item = case.value("TASK_ID")
    if item is None or TASK_ID.fullmatch(item.text):
        return
    corrected = re.sub(r"[^A-Z0-9]+", "-", item.text.upper()).strip("-")
    # A hole of the template is no id that was written in another way.
    meant = TASK_ID.fullmatch(corrected) and not _HOLE.fullmatch(item.text)
    best = case.task_id or (corrected if meant else "<task id, such as HOME-IA-001>")
    message = f"{snippet(item.text)} is not a task id.{non_ascii(item.text)}"
    expected = "capitals, digits and hyphens in at least two parts, such as `HOME-IA-001`"
    advice = "" if case.task_id or meant else "The id is the one that the assignment names."
    yield draft(
        "ENV302", "TASK_ID", item, message, f"`{case.task_id}`" if case.task_id else expected, [put(item, best)], advice
    )


def _agent(case: Case) -> Iterator[Draft]:
    item = case.value("ASSIGNED_AGENT")
    known = ", ".join(case.protocol.roles)
    if case.agent is not None and case.agent not in case.protocol.roles:
        message = f"The task was assigned to {snippet(case.agent)}, which is not in the roster."
        advice = "Assign the task to an agent of the roster, or add this one to the roster."
        place = case.fields.get("ASSIGNED_AGENT")
        yield draft(
            "ENV303",
            "ASSIGNED_AGENT",
            item,
            message,
            f"one of {known}",
            (),
            advice,
            found=snippet(case.agent),
            place=place,
        )
    elif item is not None and item.text not in case.protocol.roles:
        best = case.agent_name or choice([name for name in case.protocol.roles if name != "orchestrator"], "your role")
        message = f"{snippet(item.text)} is not an agent of the roster.{non_ascii(item.text)}"
        yield draft("ENV303", "ASSIGNED_AGENT", item, message, f"one of {known}", [put(item, best)])


def _reports_to(case: Case) -> Iterator[Draft]:
    item = case.value("REPORTS_TO")
    if item is not None and item.text != "orchestrator":
        message = f"REPORTS_TO is {snippet(item.text)}.{non_ascii(item.text)}"
        yield draft("ENV304", "REPORTS_TO", item, message, "`orchestrator`", [put(item, "orchestrator")])


def _reason_gate(case: Case) -> Iterator[Draft]:
    known = [*(case.required or ()), *case.protocol.gates]
    for item in () if case.reasons else case.items("FAIL_REASONS")[:1]:
        if item.text != "NONE":
            message = f"FAIL_REASONS says that there are no failures in words of its own.{non_ascii(item.text)}"
            yield draft("ENV311", "FAIL_REASONS", item, message, "`NONE`", [put(item, "NONE")])
    for item in case.reasons:
        if case.named_gates(item):
            continue
        gate = open_gate(case)
        guess = closest(plain(item.text).split(":")[0].strip().upper(), known, 0.8)
        ops = [Patch(item.line, item.column, item.column, f"{guess or gate}: "), *deny(case, [guess or gate])]
        advice = "" if guess else f"Name another gate than {gate} if another one failed."
        message = "A reason names no gate."
        expected = "the id of the gate that failed, then the reason, as in `GATE-…: reason`"
        yield draft("ENV311", "FAIL_REASONS", item, message, expected, ops, advice)


def _none_beside(case: Case) -> Iterator[Draft]:
    items = case.items("FAIL_REASONS")
    if len(items) < 2:
        return
    nones = [item for item in items if says_nothing(item.text)]
    for item in nones if case.reasons else nones[1:]:
        message = "NONE is among other bullets of FAIL_REASONS."
        yield draft("ENV312", "FAIL_REASONS", item, message, "either NONE or reasons", [Delete(item.line, item.line)])


def _numbering(case: Case) -> Iterator[Draft]:
    steps = enumerate(case.items("NEXT_ACTIONS"), 1)
    wrong = [(item, n) for n, item in steps if _NUMBER.fullmatch(item.marker) and item.marker != f"{n}."]
    if wrong:
        item, number = wrong[0]
        ops = [Patch(each.line, each.start, each.start + len(each.marker), f"{n}.") for each, n in islice(wrong, 20)]
        message = (
            f"The steps of NEXT_ACTIONS are not numbered without gaps: `{item.marker[:12]}` where `{number}.` belongs."
        )
        yield draft("ENV313", "NEXT_ACTIONS", item._replace(column=item.start), message, f"`{number}.`", ops)


def _no_actions(case: Case) -> Iterator[Draft]:
    items = case.items("NEXT_ACTIONS")
    if len(items) == 1 and says_nothing(items[0].text) and case.status not in {None, "APPROVED"}:
        message = f"NEXT_ACTIONS names no step with the status {case.status}."
        yield draft(
            "ENV314",
            "NEXT_ACTIONS",
            items[0],
            message,
            "the steps that follow; only APPROVED has none",
            some_action(case),
        )


_REASON_EXAMPLE: Final = f"FAIL_REASONS:\n- GATE-VISUAL-QA: {REASON.partition('such as ')[2]}"

VALUE_RULES: Final = (
    error_rule(
        "ENV110",
        "Labels, statuses, ids, gates, agents and evidence paths are ASCII; nothing else looks like a label.",
        "Interlock: a response must read the same to every reader",
        "Type the letters in ASCII.",
        "STATUS: BLOCKED",
        "STATUS: BL\u041eCKED",
        _look_alikes,
    ),
    error_rule(
        "ENV301",
        "STATUS is one of the six statuses.",
        "Strict Envelope §3 STATUS: No other values are permitted",
        "State one of the six statuses that this agent may state.",
        "STATUS: IN_PROGRESS",
        "STATUS: DONE",
        _status,
    ),
    error_rule(
        "ENV302",
        "TASK_ID is the id that the orchestrator gave, in capitals, digits and hyphens.",
        "Strict Envelope §3 TASK_ID",
        "Copy the task id from the assignment.",
        "TASK_ID: HOME-IA-001",
        "TASK_ID: home page",
        _task_id,
    ),
    error_rule(
        "ENV303",
        "ASSIGNED_AGENT is an agent of the roster.",
        "Strict Envelope §3 ASSIGNED_AGENT",
        "Write your own role as the roster has it.",
        "ASSIGNED_AGENT: frontend-implementer",
        "ASSIGNED_AGENT: gpt-engineer",
        _agent,
    ),
    error_rule(
        "ENV304",
        "REPORTS_TO is orchestrator.",
        "Strict Envelope §3 REPORTS_TO: No other value is allowed",
        "Write `REPORTS_TO: orchestrator`.",
        "REPORTS_TO: orchestrator",
        "REPORTS_TO: team-lead",
        _reports_to,
    ),
    error_rule(
        "ENV311",
        "Each reason names the gate that failed.",
        "Strict Envelope §3 FAIL_REASONS: Each failure must reference a gate ID",
        "Begin each reason with the id of the gate that failed.",
        _REASON_EXAMPLE,
        "FAIL_REASONS:\n- the total is wrong",
        _reason_gate,
    ),
    error_rule(
        "ENV312",
        "NONE is alone in FAIL_REASONS.",
        "Strict Envelope §3 FAIL_REASONS",
        "Take NONE out, or the reasons.",
        _REASON_EXAMPLE,
        f"{_REASON_EXAMPLE}\n- NONE",
        _none_beside,
    ),
    error_rule(
        "ENV313",
        "The steps are numbered 1., 2., … without gaps.",
        "Strict Envelope §3 NEXT_ACTIONS: Clear, ordered list",
        "Number the steps from 1 upwards.",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa\n2. orchestrator to invoke a11y-auditor",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa\n3. orchestrator to invoke a11y-auditor",
        _numbering,
    ),
    error_rule(
        "ENV314",
        "NEXT_ACTIONS is NONE only with APPROVED.",
        "Strict Envelope §3 NEXT_ACTIONS",
        "Write the step that follows.",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa",
        "NEXT_ACTIONS: NONE",
        _no_actions,
    ),
)
