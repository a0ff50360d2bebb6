"""Rows of what the values of fields may say (ENV30x, ENV31x)."""

import re
from collections.abc import Iterator
from typing import Final

from interlock.core.rule import Rule, error_rule
from interlock.core.text import closest
from interlock.envelope.case import (
    GATE,
    GATE_HOLE,
    GATE_IN_TEXT,
    STEP,
    TASK_ID,
    TASK_ID_HOLE,
    Case,
    add,
    choice,
    draft,
    drop,
    put,
    state,
)
from interlock.envelope.draft import Change, Draft, snippet
from interlock.envelope.protocol import EVIDENCE_KEYS, STATUSES
from interlock.envelope.scanner import says_nothing

_PATH: Final = re.compile(r"artifacts(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._@+=-]+)+")
_ARTIFACT: Final = re.compile(r"(?<![\w./-])(?:\./|/)?(artifacts/[A-Za-z0-9._@+=/-]+)")
_REMARK: Final = re.compile(r"[ \t]+(?:\(.*\)|\[.*\])$")
_LINES: Final = re.compile(r":[0-9]+(?:-[0-9]+)?$")
_GLOB: Final = re.compile(r"[*?{}<>|]")


def _status(case: Case) -> Iterator[Draft]:
    item = case.value("STATUS")
    if item is not None and case.stated_status is None:
        message = f"{snippet(item.text)} is not a status."
        expected = "one of " + ", ".join(case.legal or STATUSES)
        changes = state(case, case.better_status)
        yield draft("ENV301", "STATUS", item, message, expected, *changes, advice=case.way_to_pass)


def _task_id(case: Case) -> Iterator[Draft]:
    """Hold TASK_ID to the assignment, and without one to the form of an id."""
    item = case.value("TASK_ID")
    if item is None:
        return
    if case.task_id is not None and item.text != case.task_id:
        message = f"The assignment is {case.task_id}, and the response is for {snippet(item.text)}."
        yield draft("ENV302", "TASK_ID", item, message, f"`{case.task_id}`", put("TASK_ID", case.task_id))
    elif not TASK_ID.fullmatch(item.text):
        message = f"{snippet(item.text)} is not a task id."
        expected = "capitals, digits and hyphens in at least two parts, such as `HOME-IA-001`"
        yield draft("ENV302", "TASK_ID", item, message, expected, put("TASK_ID", TASK_ID_HOLE))


def _agent(case: Case) -> Iterator[Draft]:
    """Hold ASSIGNED_AGENT to the assignment, and without one to the roster."""
    item = case.value("ASSIGNED_AGENT")
    roles = case.protocol.roles
    if case.agent is not None and case.agent not in roles:
        message = f"The task was assigned to {snippet(case.agent)}, which is not in the roster."
        advice = "Assign the task to an agent of the roster, or add this one to the roster."
        place = item or case.fields.get("ASSIGNED_AGENT")
        found = snippet(case.agent)
        expected = f"one of {', '.join(roles)}"
        yield draft("ENV303", "ASSIGNED_AGENT", place, message, expected, advice=advice, found=found)
    elif item is not None and case.agent is not None and item.text != case.agent:
        message = f"The task was assigned to {case.agent}, and {snippet(item.text)} answers."
        yield draft("ENV303", "ASSIGNED_AGENT", item, message, f"`{case.agent}`", put("ASSIGNED_AGENT", case.agent))
    elif item is not None and item.text not in roles:
        others = [name for name in roles if name != "orchestrator"]
        best = case.role.name if case.role else choice(others, "your role")
        message = f"{snippet(item.text)} is not an agent of the roster."
        expected = f"one of {', '.join(roles)}"
        yield draft("ENV303", "ASSIGNED_AGENT", item, message, expected, put("ASSIGNED_AGENT", best))


def _reports_to(case: Case) -> Iterator[Draft]:
    item = case.value("REPORTS_TO")
    if item is not None and item.text != "orchestrator":
        message = f"REPORTS_TO is {snippet(item.text)}."
        yield draft("ENV304", "REPORTS_TO", item, message, "`orchestrator`", put("REPORTS_TO", "orchestrator"))


def _gates_required(case: Case) -> Iterator[Draft]:
    """Hold GATES_REQUIRED to the gates of the assignment; without one there is at least one gate."""
    read = case.fields.get("GATES_REQUIRED")
    if read is None:
        return
    if not read.items:
        changes = [add("GATES_REQUIRED", gate) for gate in case.default("GATES_REQUIRED")]
        message = "GATES_REQUIRED is empty."
        yield draft("ENV305", "GATES_REQUIRED", read, message, "the gates that this task must pass", *changes)
        return
    stated = {gate.id: gate.position for gate in case.gate_items("GATES_REQUIRED") if gate.id}
    # Without an assignment, what is stated is what is required.
    wanted = stated if case.gates is None else case.gates
    missing = [gate for gate in wanted if gate not in stated]
    extra = sorted(stated.keys() - set(wanted))
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] if missing else []
        parts += [f"adds {', '.join(extra)}"] if extra else []
        message = f"GATES_REQUIRED is not what the assignment requires: it {' and '.join(parts)}."
        changes = [drop("GATES_REQUIRED", stated[gate]) for gate in extra]
        changes += [add("GATES_REQUIRED", gate) for gate in missing]
        expected = ", ".join(f"`{gate}`" for gate in wanted)
        found = snippet(", ".join(sorted(stated)))
        yield draft("ENV305", "GATES_REQUIRED", read.items[0], message, expected, *changes, found=found)


def _gate_form(case: Case) -> Iterator[Draft]:
    for label in ("GATES_REQUIRED", "GATES_PASSED"):
        for gate in case.gate_items(label):
            text = gate.item.text
            if GATE.fullmatch(text):
                continue
            if gate.id:
                change = put(label, gate.id, gate.position)
            # The last item is not dropped, since GATES_REQUIRED may not be empty.
            elif label == "GATES_REQUIRED" and len(case.items(label)) == 1:
                change = put(label, GATE_HOLE)
            else:
                change = drop(label, gate.position)
            has_remark = gate.id in text if gate.id else False
            advice = "Say in OUTPUT what the remark says." if has_remark else ""
            message = f"{snippet(text)} is not a gate id{' alone' if has_remark else ''}."
            expected = f"`{gate.id}` alone" if has_remark else "`GATE-` and capitals, digits and hyphens"
            yield draft("ENV306", label, gate.item, message, expected, change, advice=advice)


def _repeated(case: Case) -> Iterator[Draft]:
    """Report what occurs twice in a list, and files that are cited twice under EVIDENCE."""
    first: dict[tuple[str, str], int] = {}
    lists = ("INPUTS_USED", "GATES_REQUIRED", "GATES_PASSED", *(f"EVIDENCE.{key}" for key in EVIDENCE_KEYS))
    for label in lists:
        group = label.partition(".")[0]
        for index, item in enumerate(case.items(label)):
            if (group, item.text) in first:
                line = first[group, item.text]
                message = f"{snippet(item.text)} occurs twice in {group}; it is in line {line} already."
                expected = "each file under one key, once" if group == "EVIDENCE" else "each item once"
                yield draft("ENV308", label, item, message, expected, drop(label, index))
            first.setdefault((group, item.text), item.line)


def _entry_form(case: Case) -> Iterator[Draft]:
    for key in EVIDENCE_KEYS:
        label = f"EVIDENCE.{key}"
        for index, item in enumerate(case.items(label)):
            if _PATH.fullmatch(item.text):
                continue
            meant = _ARTIFACT.search(item.text)
            path = meant[1] if meant else ""
            # A path in a remark or link is taken out of it; an entry without one is no file.
            change = Change(label, index, path if _PATH.fullmatch(path) else None)
            message = f"{snippet(item.text)} is not the path of an evidence file."
            expected = "a relative path that begins with `artifacts/`, without `..`, blanks or remarks"
            yield draft("ENV309", label, item, message, expected, change)


def _reason_gate(case: Case) -> Iterator[Draft]:
    """Hold each reason to the gate that it names: there is one, and the task or the project knows it."""
    reasons = {index for index, _ in case.reasons}
    for index, item in enumerate(case.items("FAIL_REASONS")):
        named = GATE_IN_TEXT.search(item.text)
        if index not in reasons:
            message = "FAIL_REASONS says that there are no failures, in an item of its own."
            yield draft("ENV311", "FAIL_REASONS", item, message, "either NONE or reasons", drop("FAIL_REASONS", index))
        elif named is None or (case.required is not None and named[0] not in case.known_gates):
            what = f"{named[0]}, which is neither required here nor a gate of this project" if named else "no gate"
            expected = "the id of the gate that failed, then the reason, as in `GATE-…: reason`"
            near = closest(named[0], sorted(case.known_gates), 0.7) if named else ""
            gate = near or case.open_gate
            advice = "" if near else f"Name another gate than {gate} if another one failed."
            text = item.text.replace(named[0], near, 1) if named and near else f"{gate}: {item.text}"
            change = put("FAIL_REASONS", text, index)
            yield draft("ENV311", "FAIL_REASONS", item, f"A reason names {what}.", expected, change, advice=advice)


def _numbering(case: Case) -> Iterator[Draft]:
    for number, item in enumerate(case.items("NEXT_ACTIONS"), 1):
        # One finding will do, for its fix numbers all steps.
        if item.number and item.number != f"{number}.":
            message = f"The steps of NEXT_ACTIONS are not numbered without gaps: `{item.number[:12]}` is step {number}."
            yield draft("ENV313", "NEXT_ACTIONS", item, message, f"`{number}.`")
            return


def _no_actions(case: Case) -> Iterator[Draft]:
    read = case.fields.get("NEXT_ACTIONS")
    if read is None or case.status in {None, "APPROVED"} or len(read.items) > 1:
        return
    if not read.items or says_nothing(read.items[0].text):
        changes = [*([drop("NEXT_ACTIONS", 0)] if read.items else []), add("NEXT_ACTIONS", STEP)]
        message = f"NEXT_ACTIONS names no step with the status {case.status}."
        place = read.items[0] if read.items else read
        expected = "the steps that follow; only APPROVED has none"
        yield draft("ENV314", "NEXT_ACTIONS", place, message, expected, *changes, found="`NONE`")


def _evidence_in_output(case: Case) -> Iterator[Draft]:
    for item in case.items("OUTPUT"):
        match = _ARTIFACT.search(item.text)
        if match:
            message = "OUTPUT names a file under artifacts/."
            place = item._replace(column=item.column + match.start())
            yield draft(
                "ENV315", "OUTPUT", place, message, "evidence cited in EVIDENCE alone", found=snippet(match.group())
            )


def input_path(text: str) -> str:
    """Return the path that an item of INPUTS_USED names, without lines and remark; nothing when it names none."""
    path = _LINES.sub("", _REMARK.sub("", text))
    # Words, such as `the assignment`, are no path; neither are globs and addresses, which nobody looks up here.
    like_path = "/" in path or re.search(r"\.[A-Za-z0-9]{1,8}$", path)
    return "" if not like_path or " " in path or "://" in path or _GLOB.search(path) else path


def _inputs_exist(case: Case) -> Iterator[Draft]:
    if case.input_exists is None:
        return
    for index, item in enumerate(case.items("INPUTS_USED")):
        path = input_path(item.text)
        if not path or case.input_exists(path):
            continue
        message = f"The input {snippet(path)} does not exist."
        advice = "Cite only what you read, under the path that it has."
        is_strict = case.inputs == "must-exist"
        changes = [drop("INPUTS_USED", index)] if is_strict else []
        made = draft("ENV316", "INPUTS_USED", item, message, "a file of this project", *changes, advice=advice)
        yield made._replace(level="error" if is_strict else "warning")


VALUE_RULES: Final = (
    error_rule(
        "ENV301",
        "STATUS is one of the six statuses.",
        "Strict Envelope §3 STATUS: No other values are permitted",
        "State one of the six statuses that this agent may state.",
        check=_status,
    ),
    error_rule(
        "ENV302",
        "TASK_ID is the id of the assignment, in capitals, digits and hyphens.",
        "Strict Envelope §3 TASK_ID",
        "Copy the task id from the assignment.",
        check=_task_id,
    ),
    error_rule(
        "ENV303",
        "ASSIGNED_AGENT is the agent of the roster that was asked.",
        "Strict Envelope §3 ASSIGNED_AGENT",
        "Write your own role as the roster has it.",
        check=_agent,
    ),
    error_rule(
        "ENV304",
        "REPORTS_TO is orchestrator.",
        "Strict Envelope §3 REPORTS_TO: No other value is allowed",
        "Write `REPORTS_TO: orchestrator`.",
        check=_reports_to,
    ),
    error_rule(
        "ENV305",
        "GATES_REQUIRED names the gates of the assignment, at least one.",
        "Strict Envelope §4 No agent may omit GATES_REQUIRED",
        "List the gates of the assignment.",
        check=_gates_required,
    ),
    error_rule(
        "ENV306",
        "A gate is named by its id, without a remark.",
        "Strict Envelope §3 GATES_PASSED: List of gate IDs",
        "Write the gate's id: `GATE-`, then capitals, digits and hyphens; say in OUTPUT what a remark says.",
        check=_gate_form,
    ),
    error_rule(
        "ENV308",
        "No item occurs twice in a list, and no file twice under EVIDENCE.",
        "Interlock: a list of gates, inputs or evidence is a set",
        "Keep one and take the other out.",
        check=_repeated,
    ),
    error_rule(
        "ENV309",
        "An evidence entry is a relative path under artifacts/.",
        "Strict Envelope §3 EVIDENCE: Each entry must be a valid relative file path",
        "Cite the file by its path, which begins with `artifacts/`; take out whatever is not a path.",
        check=_entry_form,
    ),
    error_rule(
        "ENV311",
        "Each reason names the gate that failed, one that the task requires or the project knows; NONE is alone.",
        "Strict Envelope §3 FAIL_REASONS: Each failure must reference a gate ID",
        "Begin each reason with the id of the gate that failed.",
        check=_reason_gate,
    ),
    error_rule(
        "ENV313",
        "The steps are numbered 1., 2., … without gaps.",
        "Strict Envelope §3 NEXT_ACTIONS: Clear, ordered list",
        "Number the steps from 1 upwards.",
        check=_numbering,
    ),
    error_rule(
        "ENV314",
        "NEXT_ACTIONS is NONE only with APPROVED.",
        "Strict Envelope §3 NEXT_ACTIONS",
        "Write the step that follows.",
        check=_no_actions,
    ),
    Rule(
        "ENV315",
        "warning",
        "Evidence is cited in EVIDENCE, not in OUTPUT.",
        "Strict Envelope §3 OUTPUT: Do not embed evidence here",
        "Cite the file in EVIDENCE; write of it in OUTPUT without its path.",
        check=_evidence_in_output,
    ),
    error_rule(
        "ENV316",
        'Inputs that look like paths exist; a warning with `[envelope] inputs = "warn"`.',
        "Strict Envelope §3 INPUTS_USED: This prevents hallucinated inputs",
        "Cite only what you read, under the path that it has.",
        check=_inputs_exist,
    ),
)
