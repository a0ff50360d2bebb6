"""Rows of what reading finds in the bytes and the layout of a response (ENV101-ENV106, ENV2xx)."""

from collections.abc import Iterator
from typing import Final

from interlock.core.rule import error_rule
from interlock.envelope.case import Case, draft, drop, put
from interlock.envelope.draft import Draft

_OURS: Final = "Interlock: a response must read the same to every reader"
_ENVELOPE: Final = "Strict Envelope §2 Required Envelope"
_FIELDS: Final = "Strict Envelope §3 Field Definitions"


def _shows_nothing(case: Case) -> Iterator[Draft]:
    """Report a field of free text that holds nothing to see."""
    for label in ("TASK", "INPUTS_USED", "OUTPUT", "NEXT_ACTIONS"):
        items = case.items(label)
        # The grammar knows blanks and tabs alone: a no-break space or a joiner is a character like any other to it.
        if items and not any(char.isprintable() and char != " " for item in items for char in item.text):
            first = [put(label, hole) for hole in case.default(label)] or [drop(label, 0)]
            changes = [*first, *(drop(label, index) for index in range(1, len(items)))]
            message = f"{label} holds nothing that can be read."
            yield draft("ENV210", label, items[0], message, f"a value of {label}", *changes)


LAYOUT_RULES: Final = (
    error_rule(
        "ENV101",
        "A response is at most as large as the limit.",
        "Interlock: reading costs what its size allows",
        "Shorten OUTPUT; name files in INPUTS_USED or EVIDENCE instead of quoting them.",
    ),
    error_rule(
        "ENV102",
        "A response is not empty.",
        "Strict Envelope §1 Scope",
        "Answer with the complete envelope, from `STATUS:` to the last step of NEXT_ACTIONS.",
    ),
    error_rule(
        "ENV103",
        "A response is UTF-8.",
        _OURS,
        "Write the response in UTF-8 without a byte order mark.",
    ),
    error_rule(
        "ENV106",
        "A response holds no control character but tab and line ends, and no character that hides or reorders text.",
        _OURS,
        "Take these characters out; end lines with LF or CRLF.",
    ),
    error_rule(
        "ENV201",
        "Nothing comes before STATUS or after the last step of NEXT_ACTIONS.",
        _ENVELOPE,
        "Begin the response with `STATUS:` and end it with the last step; take headings, prose and code fences out.",
    ),
    error_rule(
        "ENV203",
        "Every one of the twelve fields is there.",
        "Strict Envelope §4 Any missing field = automatic BLOCKED status",
        "Add the field in its place.",
    ),
    error_rule(
        "ENV204",
        "Each of the twelve labels occurs once, and there is no other.",
        _ENVELOPE,
        "Take the label and its lines out; say it in OUTPUT if it matters.",
    ),
    error_rule(
        "ENV205",
        "The fields are in their fixed order.",
        _ENVELOPE,
        "Put the fields in the order of the protocol.",
    ),
    error_rule(
        "ENV206",
        "Labels are written exactly, at the beginning of a line.",
        _ENVELOPE,
        "Write the label in capitals with underscores and a colon, at column 1.",
    ),
    error_rule(
        "ENV208",
        "No line of OUTPUT begins with one of the twelve labels.",
        "Interlock: two readings of one response cannot exist",
        "Send one envelope; indent a line that shows a label in OUTPUT, or begin it with `> `.",
    ),
    error_rule(
        "ENV210",
        "Every field says something; lists other than GATES_REQUIRED may be empty.",
        _FIELDS,
        "Give the field its value.",
        check=_shows_nothing,
    ),
    error_rule(
        "ENV212",
        "A field is written in its form: one line for a single value, a list, or the four keys of EVIDENCE in order.",
        _FIELDS,
        "Write a value behind its label, and each item on a line that begins with `- `, each step with `1. `.",
    ),
    error_rule(
        "ENV223",
        "A response is an envelope: at least three of the twelve labels begin lines of it.",
        "Strict Envelope §1 Scope: free-form responses are overridden",
        "Put the text under OUTPUT of an envelope, as it is, and fill in the other fields.",
    ),
    error_rule(
        "ENV224",
        "A message from which an envelope is extracted holds exactly one, and no other status around it.",
        "Interlock: two readings of one response cannot exist",
        "Send one envelope, and no other around it; to show one, quote it in OUTPUT, each line behind `> `.",
    ),
    error_rule(
        "ENV299",
        "The grammar and the tolerant reading agree.",
        "Interlock: two readings of one response cannot exist",
        "Write the envelope in its plainest form: one line for each single value, `- ` lines for lists.",
    ),
)
