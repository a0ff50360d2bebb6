"""Rows of what reading finds in the layout of a response (ENV2xx)."""

from collections.abc import Iterator
from typing import Final

from interlock.core.rule import error_rule
from interlock.envelope.case import Case, draft, drop, put
from interlock.envelope.draft import Draft
from interlock.envelope.lookalikes import fold, non_ascii

_ENVELOPE: Final = "Strict Envelope §2 Required Envelope"


def _blank_value(case: Case) -> Iterator[Draft]:
    for label in ("TASK", "OUTPUT"):
        items = case.items(label)
        if items and not any(fold(item.text).strip() for item in items):
            message = f"{label} holds nothing that can be read.{non_ascii(items[0].text)}"
            hole = "<what was attempted, in one line>" if label == "TASK" else "<what you deliver, such as a summary>"
            ops = [put(items[0], hole), *(put(item, "") for item in items[1:])]
            yield draft("ENV210", label, items[0], message, f"a value of {label}", ops)


def _blank_item(case: Case) -> Iterator[Draft]:
    for label in ("INPUTS_USED", "NEXT_ACTIONS"):
        field = case.fields.get(label)
        for item in field.items if field else ():
            if not fold(item.text).strip() and field is not None:
                message = f"An item of {label} is empty.{non_ascii(item.text)}"
                ops = [put(item, "<next step>") if label == "NEXT_ACTIONS" else drop(field, item)]
                yield draft("ENV215", label, item, message, "words that can be read", ops)


LAYOUT_RULES: Final = (
    error_rule(
        "ENV201",
        "Nothing comes before STATUS.",
        _ENVELOPE,
        "Begin the response with `STATUS:`; take headings, prose and code fences out.",
        "STATUS: IN_PROGRESS",
        "# My report\n\nSTATUS: IN_PROGRESS",
    ),
    error_rule(
        "ENV202",
        "Nothing comes after the last step of NEXT_ACTIONS.",
        _ENVELOPE,
        "End the response with the last step.",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa\n\nLet me know if you need more.",
    ),
    error_rule(
        "ENV203",
        "Every one of the twelve fields is there.",
        "Strict Envelope §4 Any missing field = automatic BLOCKED status",
        "Add the field in its place.",
        "REPORTS_TO: orchestrator",
        "(no REPORTS_TO between ASSIGNED_AGENT and INPUTS_USED)",
    ),
    error_rule(
        "ENV204",
        "Each field occurs once.",
        _ENVELOPE,
        "Keep one and take the other out.",
        "STATUS: IN_PROGRESS",
        "STATUS: IN_PROGRESS\nSTATUS: READY_FOR_QA",
    ),
    error_rule(
        "ENV205",
        "The fields are in their fixed order.",
        _ENVELOPE,
        "Move the field to its place.",
        "TASK_ID: HOME-IA-001\nTASK: Build the page",
        "TASK: Build the page\nTASK_ID: HOME-IA-001",
    ),
    error_rule(
        "ENV206",
        "Labels are written exactly, at the beginning of a line.",
        _ENVELOPE,
        "Write the label in capitals with underscores and a colon, at column 1.",
        "GATES_PASSED: []",
        "**Gates passed**: []",
    ),
    error_rule(
        "ENV207",
        "There is no label beside the twelve.",
        _ENVELOPE,
        "Take the label and its lines out.",
        "REPORTS_TO: orchestrator",
        "REPORTS_TO: orchestrator\nAPPROVED_BY: orchestrator",
    ),
    error_rule(
        "ENV208",
        "No line of OUTPUT begins with one of the twelve labels.",
        "Interlock: two readings of one response cannot exist",
        "Indent the line, or begin it with `> `.",
        "OUTPUT:\n> STATUS: APPROVED was what the old report said",
        "OUTPUT:\nSTATUS: APPROVED was what the old report said",
    ),
    error_rule(
        "ENV209",
        "A response holds one envelope.",
        "Interlock: two readings of one response cannot exist",
        "Keep one envelope and take the other out.",
        "OUTPUT:\nThe page is built.",
        "OUTPUT:\nSTATUS: APPROVED\nTASK_ID: HOME-IA-001\nTASK: Build the page",
    ),
    error_rule(
        "ENV210",
        "Every field says something; lists other than GATES_REQUIRED may be empty.",
        "Strict Envelope §3 Field Definitions",
        "Give the field its value.",
        "TASK: Build the page",
        "TASK:",
        _blank_value,
    ),
    error_rule(
        "ENV211",
        "A single value is on its label's line, with nothing under it.",
        "Strict Envelope §3 Field Definitions",
        "Write the value on one line, behind the label.",
        "TASK: Build the page",
        "TASK:\nBuild the page",
    ),
    error_rule(
        "ENV212",
        "A list holds items and nothing else, each on one line.",
        "Strict Envelope §3 Field Definitions",
        "Write each item on one line that begins with `- `; take other lines out.",
        "INPUTS_USED:\n- docs/wireframes.md",
        "INPUTS_USED:\n- docs/wireframes.md\n```",
    ),
    error_rule(
        "ENV213",
        "Items begin with a hyphen and a blank.",
        "Strict Envelope §3 Field Definitions",
        "Begin each item with `- `.",
        "GATES_PASSED:\n- GATE-MSG-STRICT",
        "GATES_PASSED:\n* GATE-MSG-STRICT",
    ),
    error_rule(
        "ENV214",
        "A list on its label's line is written `[]` or `[a, b]`.",
        "Strict Envelope §3 EVIDENCE",
        "Put brackets around the items, or write them as `- ` lines.",
        "GATES_PASSED: [GATE-MSG-STRICT]",
        "GATES_PASSED: GATE-MSG-STRICT",
    ),
    error_rule(
        "ENV215",
        "No item is empty.",
        "Strict Envelope §3 Field Definitions",
        "Take the empty item out.",
        "INPUTS_USED:\n- docs/wireframes.md",
        "INPUTS_USED:\n- docs/wireframes.md\n-",
        _blank_item,
    ),
    error_rule(
        "ENV216",
        "EVIDENCE has all four keys.",
        "Strict Envelope §3 EVIDENCE Required keys",
        "Add the key; `[]` says that there is no such file.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  reports: []",
    ),
    error_rule(
        "ENV217",
        "EVIDENCE has no key beside the four.",
        "Strict Envelope §3 EVIDENCE Required keys",
        "Take the key out; what it says belongs in OUTPUT.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []\n  files_reviewed: 9",
    ),
    error_rule(
        "ENV218",
        "Each key of EVIDENCE occurs once.",
        "Strict Envelope §3 EVIDENCE Required keys",
        "Put all entries of the key in one place.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  a11y: []\n  console: []\n  reports: []",
    ),
    error_rule(
        "ENV219",
        "The keys of EVIDENCE are in their fixed order.",
        "Strict Envelope §3 EVIDENCE Required keys",
        "Move the key to its place.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []",
        "EVIDENCE:\n  a11y: []\n  screenshots: []\n  console: []\n  reports: []",
    ),
    error_rule(
        "ENV220",
        "The keys of EVIDENCE are written exactly.",
        "Strict Envelope §3 EVIDENCE Required keys",
        "Write the key in lower case, followed by a colon.",
        "EVIDENCE:\n  screenshots: []\n  a11y: []\n  console: []\n  reports: []",
        "EVIDENCE:\n  Screenshots: []\n  a11y: []\n  console: []\n  reports: []",
    ),
    error_rule(
        "ENV221",
        "NEXT_ACTIONS is a numbered list.",
        "Strict Envelope §3 NEXT_ACTIONS",
        "Write each step on a line `1. …`, `2. …`.",
        "NEXT_ACTIONS:\n1. orchestrator to invoke visual-qa",
        "NEXT_ACTIONS:\n- orchestrator to invoke visual-qa",
    ),
    error_rule(
        "ENV222",
        "FAIL_REASONS is NONE or bullets.",
        "Strict Envelope §3 FAIL_REASONS",
        "Write `FAIL_REASONS: NONE`, or one `- ` line for each reason.",
        "FAIL_REASONS: NONE",
        "FAIL_REASONS: no failures",
    ),
    error_rule(
        "ENV223",
        "A response is an envelope: at least three of the twelve labels begin lines of it.",
        "Strict Envelope §1 Scope: free-form responses are overridden",
        "Put the text under OUTPUT of an envelope, as it is, and fill in the other fields.",
        "STATUS: IN_PROGRESS",
        "## Status: complete\n\nI built the page and everything works.",
    ),
    error_rule(
        "ENV224",
        "A message from which an envelope is extracted holds exactly one.",
        "Interlock: two readings of one response cannot exist",
        "Send one envelope, and no other around it; to show one, quote it in OUTPUT, each line behind `> `.",
        "STATUS: IN_PROGRESS",
        "STATUS: BLOCKED\nTASK_ID: HOME-IA-001\n\nSTATUS: APPROVED\nTASK_ID: HOME-IA-001",
    ),
    error_rule(
        "ENV299",
        "The grammar and the tolerant reading agree.",
        "Interlock: two readings of one response cannot exist",
        "Write the envelope in its plainest form: one line for each single value, `- ` lines for lists.",
        "STATUS: IN_PROGRESS",
        "(a text that this program reads in two ways; please report it)",
    ),
)
