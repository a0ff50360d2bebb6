"""Rows of what the items of lists, evidence and inputs may say (ENV305-ENV310, ENV315-ENV317)."""

import re
from collections.abc import Iterator
from typing import Final

from interlock.core.rule import Rule, error_rule
from interlock.envelope.case import GATE, Case, add, draft, drop, put
from interlock.envelope.draft import Draft, Op, snippet
from interlock.envelope.lookalikes import non_ascii, plain
from interlock.envelope.model import FieldText, Item
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.envelope.repair import evidence_path

_PATH: Final = re.compile(r"artifacts(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._@+=-]+)+")
_FOLDERS: Final = re.compile(r"(?<![\w./-])/?artifacts/[A-Za-z0-9._@+=/-]+")
_REMARK: Final = re.compile(r"[ \t]+(?:\(.*\)|\[.*\])$")
_LINES: Final = re.compile(r":[0-9]+(?:-[0-9]+)?$")
_UNFILLED: Final = re.compile(r"(?:GATE-[A-Z0-9-]+: )?<[A-Za-z][^<>=]* [^<>=]*>")
"""A placeholder as forms and fixes have it."""
_GLOB: Final = re.compile(r"[*?{}<>|]")


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
            message = f"{snippet(gate.item.text)} is not a gate id.{non_ascii(gate.item.text)}"
            yield draft("ENV306", label, gate.item, message, "`GATE-` and capitals, digits and hyphens", [op])


def _gate_remark(case: Case) -> Iterator[Draft]:
    for label in ("GATES_REQUIRED", "GATES_PASSED"):
        for gate in case.gate_items(label):
            if gate.remark:
                message = f"There is a remark beside {gate.id}."
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
                message = f"{snippet(key)} occurs twice in {label}; it is in line {first.line} already."
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
            meant = _meant_path(text)
            if meant:
                ops: list[Op] = [put(item, meant)]
            elif lacking:
                gate = next((gate.id for gate in case.claims if key in case.protocol.gate(gate.id).evidence), "GATE")
                ops = [put(item, evidence_path(gate, key))]
            else:
                ops = [drop(field, item)]
            lacking = False
            message = f"{snippet(item.text)} is not the path of an evidence file.{non_ascii(item.text)}"
            expected = "a relative path that begins with `artifacts/`, without `..`, blanks or remarks"
            yield draft("ENV309", field.label, item, message, expected, ops)


def _meant_path(text: str) -> str:
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
            path = path if _PATH.fullmatch(path) else _meant_path(path)
            other, first = seen.setdefault(path, (key, item))
            if not path or first is item or field is None:
                continue
            alone = key in case.needed_keys and len(field.items) == 1 and other != key
            gate = next((gate.id for gate in case.claims if key in case.protocol.gate(gate.id).evidence), "GATE")
            ops = [put(item, evidence_path(gate, key))] if alone else [drop(field, item)]
            message = f"{snippet(path)} is cited twice; it is in line {first.line} under `{other}` already."
            yield draft("ENV310", field.label, item, message, "each file under one key, once", ops)


def _evidence_in_output(case: Case) -> Iterator[Draft]:
    for item in case.items("OUTPUT"):
        match = _FOLDERS.search(item.text)
        if match:
            message = "OUTPUT names a file under artifacts/."
            place = item._replace(column=item.column + match.start())
            found = snippet(match.group())
            yield draft("ENV315", "OUTPUT", place, message, "evidence cited in EVIDENCE alone", found=found)


def input_path(text: str) -> str:
    """Return the path that an item of INPUTS_USED names, without lines and remark; nothing when it names none."""
    path = _LINES.sub("", _REMARK.sub("", text))
    like_path = "/" in path or re.search(r"\.[A-Za-z0-9]{1,8}$", path)
    return "" if not like_path or " " in path or "://" in path or _GLOB.search(path) else path


def _inputs_exist(case: Case) -> Iterator[Draft]:
    field: FieldText | None = case.fields.get("INPUTS_USED")
    if field is None or case.input_exists is None:
        return
    for item in field.items:
        path = input_path(item.text)
        if not path or case.input_exists(path):
            continue
        message = f"The input {snippet(path)} does not exist.{non_ascii(path)}"
        advice = "Cite only what you read, under the path that it has."
        strict = case.inputs == "must-exist"
        ops = [drop(field, item)] if strict else []
        made = draft("ENV316", "INPUTS_USED", item, message, "a file of this project", ops, advice)
        yield made._replace(level="error" if strict else "warning")


def _unfilled(case: Case) -> Iterator[Draft]:
    for label in ("TASK", "INPUTS_USED", "FAIL_REASONS", "OUTPUT", "NEXT_ACTIONS"):
        items = [item for item in case.items(label) if item.text.strip()]
        # Markup is OUTPUT like any other; a placeholder is alone there.
        for item in items if label != "OUTPUT" or len(items) == 1 else ():
            if _UNFILLED.fullmatch(item.text.strip()):
                message = f"{label} holds a placeholder that nobody filled in."
                yield draft("ENV317", label, item, message, "words of your own")


ITEM_RULES: Final = (
    error_rule(
        "ENV305",
        "GATES_REQUIRED names at least one gate.",
        "Strict Envelope §4 No agent may omit GATES_REQUIRED",
        "List the gates of the assignment.",
        "GATES_REQUIRED:\n- GATE-MSG-STRICT",
        "GATES_REQUIRED: []",
        _gates_required,
    ),
    error_rule(
        "ENV306",
        "A gate is named by its id.",
        "Strict Envelope §3 GATES_REQUIRED",
        "Write the gate's id: `GATE-`, then capitals, digits and hyphens.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n- msg_strict",
        _gate_form,
    ),
    error_rule(
        "ENV307",
        "A gate id has no remark.",
        "Strict Envelope §3 GATES_PASSED: List of gate IDs",
        "Take the remark out; say it in OUTPUT.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n- GATE-MSG-STRICT (self-assessed)",
        _gate_remark,
    ),
    error_rule(
        "ENV308",
        "No item occurs twice in a list.",
        "Interlock: a list of gates or inputs is a set",
        "Keep one and take the other out.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n- GATE-MSG-STRICT\n- GATE-MSG-STRICT",
        _repeated,
    ),
    error_rule(
        "ENV309",
        "An evidence entry is a relative path under artifacts/.",
        "Strict Envelope §3 EVIDENCE: Each entry must be a valid relative file path",
        "Cite the file by its path, which begins with `artifacts/`; take out whatever is not a path.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: [artifacts/reports/review.md]",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: [no errors]\n  reports: [../review.md]",
        _entry_form,
    ),
    error_rule(
        "ENV310",
        "Each evidence file is cited once.",
        "Interlock: one file cannot prove two things",
        "Keep one entry; cite another file where another is needed.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: [artifacts/reports/review.md]",
        "EVIDENCE:\n  screenshots: []\n  a11y: [artifacts/reports/review.md]\n  console: []\n"
        "  reports: [artifacts/reports/review.md]",
        _entry_repeated,
    ),
    Rule(
        "ENV315",
        "warning",
        "Evidence is cited in EVIDENCE, not in OUTPUT.",
        "Strict Envelope §3 OUTPUT: Do not embed evidence here",
        "Cite the file in EVIDENCE; write of it in OUTPUT without its path.",
        "OUTPUT:\nThe review is in the reports.",
        "OUTPUT:\nThe review is in artifacts/reports/review.md.",
        _evidence_in_output,
    ),
    error_rule(
        "ENV316",
        'Inputs that look like paths exist; a warning with `[envelope] inputs = "warn"`.',
        "Strict Envelope §3 INPUTS_USED: This prevents hallucinated inputs",
        "Cite only what you read, under the path that it has.",
        "INPUTS_USED:\n- docs/wireframes.md",
        "INPUTS_USED:\n- docs/no-such-file.md",
        _inputs_exist,
    ),
    Rule(
        "ENV317",
        "warning",
        "No placeholder is left.",
        "Strict Envelope §3 TASK: Plain-English description of what was attempted",
        "Put your own words in its place.",
        "TASK: Build the page",
        "TASK: <what was attempted, in one line>",
        _unfilled,
    ),
)
