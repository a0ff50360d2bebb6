"""Rows of what single values and items may say (ENV110, ENV3xx)."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from interlock.envelope.case import GATE, GATE_IN_TEXT, REASON, TASK_ID, Case, add, choice, draft, drop, plain, put
from interlock.envelope.characters import name
from interlock.envelope.labels import closest, fold
from interlock.envelope.mend import Delete, Draft, Op, Patch, snippet
from interlock.envelope.model import FieldText, Item
from interlock.envelope.protocol import EVIDENCE_KEYS, STATUSES
from interlock.envelope.repair import better_status, evidence_path, some_action, state
from interlock.envelope.rule import Rule

_ASCII_FIELDS: Final = ("STATUS", "TASK_ID", "ASSIGNED_AGENT", "REPORTS_TO", "GATES_REQUIRED", "GATES_PASSED")
_PATH: Final = re.compile(r"artifacts(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._@+=-]+)+")
_FOLDERS: Final = re.compile(r"(?<![\w./-])/?artifacts/[A-Za-z0-9._@+=/-]+")
_REMARK: Final = re.compile(r"[ \t]+\(.*\)$")
_GLOB: Final = re.compile(r"[*?{}<>|]")
_NUMBER: Final = re.compile(r"[0-9]+\.")


def _strange(text: str) -> str:
    """Name the first character that is not ASCII."""
    char = next((char for char in text if not char.isascii()), "")
    return f" It holds {name(char)}." if char else ""


def _look_alikes(case: Case) -> Iterator[Draft]:
    labels = (*_ASCII_FIELDS, *(f"EVIDENCE.{key}" for key in EVIDENCE_KEYS))
    for label in labels:
        for item in case.items(label):
            if item.text.isascii() or not fold(item.text).isascii():
                continue
            index, char = next((index, char) for index, char in enumerate(item.text) if not char.isascii())
            ops: list[Op] = []
            for at, each in enumerate(item.text):
                if not each.isascii():
                    ops.append(Patch(item.line, item.column + at, item.column + at + 1, fold(each)))
            message = f"{name(char)} looks like `{fold(char)}` and is another character."
            column = item.column + index
            found = snippet(item.text)
            yield Draft(
                "ENV110", label, item.line, column, message, found, f"`{plain(item.text)}` in ASCII", tuple(ops)
            )


def _status(case: Case) -> Iterator[Draft]:
    item = case.value("STATUS")
    if item is None or case.stated_status is not None:
        return
    better = better_status(case)
    message = f"{snippet(item.text)} is not a status.{_strange(item.text)}"
    yield draft("ENV301", "STATUS", item, message, "one of " + ", ".join(STATUSES), state(case, better))


def _task_id(case: Case) -> Iterator[Draft]:
    item = case.value("TASK_ID")
    if item is None or TASK_ID.fullmatch(item.text):
        return
    mended = re.sub(r"[^A-Z0-9]+", "-", item.text.upper()).strip("-")
    best = case.task_id or (mended if TASK_ID.fullmatch(mended) else "<task id, such as HOME-IA-001>")
    message = f"{snippet(item.text)} is not a task id.{_strange(item.text)}"
    expected = "capitals, digits and hyphens in at least two parts, such as `HOME-IA-001`"
    yield draft(
        "ENV302", "TASK_ID", item, message, f"`{case.task_id}`" if case.task_id else expected, [put(item, best)]
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
        message = f"{snippet(item.text)} is not an agent of the roster.{_strange(item.text)}"
        yield draft("ENV303", "ASSIGNED_AGENT", item, message, f"one of {known}", [put(item, best)])


def _reports_to(case: Case) -> Iterator[Draft]:
    item = case.value("REPORTS_TO")
    if item is not None and item.text != "orchestrator":
        message = f"REPORTS_TO is {snippet(item.text)}.{_strange(item.text)}"
        yield draft("ENV304", "REPORTS_TO", item, message, "`orchestrator`", [put(item, "orchestrator")])


def _gates_required(case: Case) -> Iterator[Draft]:
    field = case.fields.get("GATES_REQUIRED")
    if field is None or field.items:
        return
    gates = case.gates or tuple(dict.fromkeys(gate.id for gate in case.passed if gate.id))
    ops = add(field, gates or ("<gate id, such as GATE-MSG-STRICT>",))
    expected = "the gates that this task must pass"
    yield draft(
        "ENV305", "GATES_REQUIRED", None, "GATES_REQUIRED is empty.", expected, ops, found="nothing", place=field
    )


def _gate_form(case: Case) -> Iterator[Draft]:
    for label in ("GATES_REQUIRED", "GATES_PASSED"):
        field = case.fields.get(label)
        for gate in case.gate_items(label) if field else ():
            text = plain(gate.item.text)
            if GATE.fullmatch(text) or gate.remark or field is None:
                continue
            if gate.id:
                op = put(gate.item, gate.id)
            elif label == "GATES_REQUIRED" and len(field.items) == 1:
                op = put(gate.item, "<gate id, such as GATE-MSG-STRICT>")
            else:
                op = drop(field, gate.item)
            message = f"{snippet(gate.item.text)} is not a gate id.{_strange(text)}"
            yield draft("ENV306", label, gate.item, message, "`GATE-` and capitals, digits and hyphens", [op])


def _gate_remark(case: Case) -> Iterator[Draft]:
    for label in ("GATES_REQUIRED", "GATES_PASSED"):
        for gate in case.gate_items(label):
            if gate.remark:
                message = f"A remark stands beside {gate.id}."
                advice = "Say in OUTPUT what the remark says."
                yield draft(
                    "ENV307", label, gate.item, message, f"`{gate.id}` alone", [put(gate.item, gate.id)], advice
                )


def _repeated(case: Case) -> Iterator[Draft]:
    for label in ("INPUTS_USED", "GATES_REQUIRED", "GATES_PASSED"):
        field = case.fields.get(label)
        seen: dict[str, Item] = {}
        for item in field.items if field else ():
            key = plain(item.text)
            if label != "INPUTS_USED":
                key = case.gate(item).id
            first = seen.setdefault(key, item)
            if field is not None and key and first is not item:
                message = f"{snippet(key)} stands in {label} twice; it stands in line {first.line} already."
                yield draft("ENV308", label, item, message, "each item once", [drop(field, item)])


def _entry_form(case: Case) -> Iterator[Draft]:
    for key in EVIDENCE_KEYS:
        field = case.fields.get(f"EVIDENCE.{key}")
        good = [item for item in field.items if _PATH.fullmatch(plain(item.text))] if field else []
        lacking = key in case.needed_keys and not good
        for item in field.items if field else ():
            text = plain(item.text)
            if _PATH.fullmatch(text) or field is None:
                continue
            mended = _mended_path(text)
            if mended:
                ops: list[Op] = [put(item, mended)]
            elif lacking:
                gate = next((gate.id for gate in case.claims if key in case.protocol.gate(gate.id).evidence), "GATE")
                ops = [put(item, evidence_path(gate, key))]
            else:
                ops = [drop(field, item)]
            lacking = False
            message = f"{snippet(item.text)} is not the path of an evidence file.{_strange(text)}"
            expected = "a relative path that begins with `artifacts/`, without `..`, blanks or remarks"
            yield draft("ENV309", field.label, item, message, expected, ops)


def _mended_path(text: str) -> str:
    """Return the path meant when it is plain, else nothing."""
    path = _REMARK.sub("", text).strip(" \t\"'`<>").replace("\\", "/")
    path = re.sub(r"/{2,}", "/", path)
    path = re.sub(r"^(?:\./)+", "", path)
    path = path.removeprefix("/") if path.startswith("/artifacts/") else path
    return path if _PATH.fullmatch(path) else ""


def _entry_repeated(case: Case) -> Iterator[Draft]:
    seen: dict[str, tuple[str, Item]] = {}
    for key in EVIDENCE_KEYS:
        field = case.fields.get(f"EVIDENCE.{key}")
        for item in field.items if field else ():
            path = plain(item.text)
            path = path if _PATH.fullmatch(path) else _mended_path(path)
            other, first = seen.setdefault(path, (key, item))
            if not path or first is item or field is None:
                continue
            alone = key in case.needed_keys and len(field.items) == 1 and other != key
            gate = next((gate.id for gate in case.claims if key in case.protocol.gate(gate.id).evidence), "GATE")
            ops = [put(item, evidence_path(gate, key))] if alone else [drop(field, item)]
            message = f"{snippet(path)} is cited twice; it stands in line {first.line} under `{other}` already."
            yield draft("ENV310", field.label, item, message, "each file under one key, once", ops)


def _reason_gate(case: Case) -> Iterator[Draft]:
    known = [*(case.required or ()), *case.protocol.gates]
    open_gates = [gate for gate in case.required or () if gate not in case.passed_ids]
    for item in case.reasons:
        if GATE_IN_TEXT.search(plain(item.text)):
            continue
        gate = case.own_gate or (open_gates or ["GATE-MSG-STRICT"])[0]
        guess = closest(plain(item.text).split(":")[0].strip().upper(), known, 0.8)
        ops = [Patch(item.line, item.column, item.column, f"{guess or gate}: ")]
        advice = "" if guess else f"Name another gate than {gate} if another one failed."
        message = "A reason names no gate."
        expected = "the id of the gate that failed, then the reason, as in `GATE-…: reason`"
        yield draft("ENV311", "FAIL_REASONS", item, message, expected, ops, advice)


def _none_beside(case: Case) -> Iterator[Draft]:
    items = case.items("FAIL_REASONS")
    if len(items) < 2:
        return
    nones = [item for item in items if item.text == "NONE"]
    for item in nones if case.reasons else nones[1:]:
        message = "NONE stands beside other bullets of FAIL_REASONS."
        yield draft("ENV312", "FAIL_REASONS", item, message, "either NONE or reasons", [Delete(item.line, item.line)])


def _numbering(case: Case) -> Iterator[Draft]:
    wrong: list[tuple[Item, int]] = []
    for number, item in enumerate(case.items("NEXT_ACTIONS"), 1):
        if _NUMBER.fullmatch(item.marker) and item.marker != f"{number}.":
            wrong.append((item, number))
    if wrong:
        item, number = wrong[0]
        ops = [Patch(each.line, each.start, each.start + len(each.marker), f"{n}.") for each, n in islice(wrong, 20)]
        message = (
            f"The steps of NEXT_ACTIONS are not numbered without gaps: `{item.marker[:12]}` where `{number}.` belongs."
        )
        made = draft("ENV313", "NEXT_ACTIONS", item._replace(column=item.start), message, f"`{number}.`", ops)
        yield made


def _no_actions(case: Case) -> Iterator[Draft]:
    items = case.items("NEXT_ACTIONS")
    if len(items) == 1 and items[0].text == "NONE" and not items[0].marker and case.status not in {None, "APPROVED"}:
        message = f"NEXT_ACTIONS is NONE with the status {case.status}."
        yield draft(
            "ENV314",
            "NEXT_ACTIONS",
            items[0],
            message,
            "the steps that follow; only APPROVED has none",
            some_action(case),
        )


def _evidence_in_output(case: Case) -> Iterator[Draft]:
    for item in case.items("OUTPUT"):
        match = _FOLDERS.search(item.text)
        if match:
            message = "OUTPUT names a file under artifacts/."
            place = item._replace(column=item.column + match.start())
            found = snippet(match.group())
            yield draft("ENV315", "OUTPUT", place, message, "evidence cited in EVIDENCE alone", found=found)


def _inputs_exist(case: Case) -> Iterator[Draft]:
    field: FieldText | None = case.fields.get("INPUTS_USED")
    if field is None or case.input_exists is None:
        return
    for item in field.items:
        path = _REMARK.sub("", item.text)
        like_path = "/" in path or re.search(r"\.[A-Za-z0-9]{1,8}$", path)
        if not like_path or " " in path or "://" in path or _GLOB.search(path) or case.input_exists(path):
            continue
        message = f"The input {snippet(path)} does not exist."
        advice = "Cite only what you read, under the path that it has."
        strict = case.inputs == "must-exist"
        ops = [drop(field, item)] if strict else []
        made = draft("ENV316", "INPUTS_USED", item, message, "a file of this project", ops, advice)
        yield replace(made, level="error" if strict else "warning")


_REASON_EXAMPLE: Final = f"FAIL_REASONS:\n- GATE-VISUAL-QA: {REASON.partition('such as ')[2]}"

VALUE_RULES: Final = (
    Rule(
        "ENV110",
        "error",
        "Labels, statuses, ids, gates, agents and evidence paths are ASCII; no look-alike letters.",
        "ours: a response must read the same to every reader",
        "Type the letters in ASCII.",
        "STATUS: BLOCKED",
        "STATUS: BL\u041eCKED",
        _look_alikes,
    ),
    Rule(
        "ENV301",
        "error",
        "STATUS is one of the six statuses.",
        "seed 5 §3 STATUS: No other values are permitted",
        "State one of the six statuses that this agent may state.",
        "STATUS: IN_PROGRESS",
        "STATUS: DONE",
        _status,
    ),
    Rule(
        "ENV302",
        "error",
        "TASK_ID is the id that the orchestrator gave, in capitals, digits and hyphens.",
        "seed 5 §3 TASK_ID",
        "Copy the task id from the assignment.",
        "TASK_ID: HOME-IA-001",
        "TASK_ID: home page",
        _task_id,
    ),
    Rule(
        "ENV303",
        "error",
        "ASSIGNED_AGENT is an agent of the roster.",
        "seed 5 §3 ASSIGNED_AGENT",
        "Write your own role as the roster has it.",
        "ASSIGNED_AGENT: frontend-implementer",
        "ASSIGNED_AGENT: gpt-engineer",
        _agent,
    ),
    Rule(
        "ENV304",
        "error",
        "REPORTS_TO is orchestrator.",
        "seed 5 §3 REPORTS_TO: No other value is allowed",
        "Write `REPORTS_TO: orchestrator`.",
        "REPORTS_TO: orchestrator",
        "REPORTS_TO: team-lead",
        _reports_to,
    ),
    Rule(
        "ENV305",
        "error",
        "GATES_REQUIRED names at least one gate.",
        "seed 5 §4 No agent may omit GATES_REQUIRED",
        "List the gates of the assignment.",
        "GATES_REQUIRED:\n- GATE-MSG-STRICT",
        "GATES_REQUIRED: []",
        _gates_required,
    ),
    Rule(
        "ENV306",
        "error",
        "A gate is named by its id.",
        "seed 5 §3 GATES_REQUIRED",
        "Write the gate's id: `GATE-`, then capitals, digits and hyphens.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n- msg_strict",
        _gate_form,
    ),
    Rule(
        "ENV307",
        "error",
        "A gate id stands without a remark.",
        "seed 5 §3 GATES_PASSED: List of gate IDs",
        "Take the remark out; say it in OUTPUT.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n- GATE-MSG-STRICT (self-assessed)",
        _gate_remark,
    ),
    Rule(
        "ENV308",
        "error",
        "No item stands in a list twice.",
        "ours: a list of gates or inputs is a set",
        "Keep one and take the other out.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n- GATE-MSG-STRICT\n- GATE-MSG-STRICT",
        _repeated,
    ),
    Rule(
        "ENV309",
        "error",
        "An evidence entry is a relative path under artifacts/.",
        "seed 5 §3 EVIDENCE: Each entry must be a valid relative file path",
        "Cite the file by its path, which begins with `artifacts/`; take out whatever is not a path.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: [artifacts/reports/review.md]",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: [no errors]\n  reports: [../review.md]",
        _entry_form,
    ),
    Rule(
        "ENV310",
        "error",
        "Each evidence file is cited once.",
        "ours: one file cannot prove two things",
        "Keep one entry; cite another file where another is needed.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: [artifacts/reports/review.md]",
        "EVIDENCE:\n  screenshots: []\n  a11y: [artifacts/reports/review.md]\n  console: []\n"
        "  reports: [artifacts/reports/review.md]",
        _entry_repeated,
    ),
    Rule(
        "ENV311",
        "error",
        "Each reason names the gate that failed.",
        "seed 5 §3 FAIL_REASONS: Each failure must reference a gate ID",
        "Begin each reason with the id of the gate that failed.",
        _REASON_EXAMPLE,
        "FAIL_REASONS:\n- the page does not load",
        _reason_gate,
    ),
    Rule(
        "ENV312",
        "error",
        "NONE stands alone in FAIL_REASONS.",
        "seed 5 §3 FAIL_REASONS",
        "Take NONE out, or the reasons.",
        _REASON_EXAMPLE,
        f"{_REASON_EXAMPLE}\n- NONE",
        _none_beside,
    ),
    Rule(
        "ENV313",
        "error",
        "The steps are numbered 1., 2., … without gaps.",
        "seed 5 §3 NEXT_ACTIONS: Clear, ordered list",
        "Number the steps from 1 upwards.",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa\n2. orchestrator to invoke a11y-auditor",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa\n3. orchestrator to invoke a11y-auditor",
        _numbering,
    ),
    Rule(
        "ENV314",
        "error",
        "NEXT_ACTIONS is NONE only with APPROVED.",
        "seed 5 §3 NEXT_ACTIONS",
        "Write the step that follows.",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa",
        "NEXT_ACTIONS: NONE",
        _no_actions,
    ),
    Rule(
        "ENV315",
        "warning",
        "Evidence is cited in EVIDENCE, not in OUTPUT.",
        "seed 5 §3 OUTPUT: Do not embed evidence here",
        "Cite the file in EVIDENCE; write of it in OUTPUT without its path.",
        "OUTPUT:\nThe review is in the reports.",
        "OUTPUT:\nThe review is in artifacts/reports/review.md.",
        _evidence_in_output,
    ),
    Rule(
        "ENV316",
        "warning",
        "Inputs that look like paths exist.",
        "seed 5 §3 INPUTS_USED: This prevents hallucinated inputs",
        "Cite only what you read, under the path that it has.",
        "INPUTS_USED:\n- docs/wireframes.md",
        "INPUTS_USED:\n- docs/no-such-file.md",
        _inputs_exist,
    ),
)
