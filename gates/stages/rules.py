"""The rules of payloads as rows, and the making of their findings."""

import json
from collections.abc import Mapping
from typing import Final

from interlock.core.finding import Finding
from interlock.core.rule import rules

_FILL: Final = "Ticket Protocol §Workflow: Fill only `payload` for the current stage"
_WHOLE: Final = "Ticket Protocol §Non-Negotiable Constraints: No partial ticket submissions"
_TYPES: Final = "Governance Design §2. Ticket Schema: Non-empty strings, type checking"
_SNIPPETS: Final = "Governance Design §3. FSM Engine: Collect snippets with source pointers"
_TIED: Final = "Governance Design §3. FSM Engine: Generate plan tied to requirements"
_ENFORCED: Final = "Governance Design §1. Freedom vs Control: Interlock enforces evidence requirements"
_CONFLICT: Final = "Governance Design §Current PoC Scope: Rich conflict detection across competing evidence"
_STORED: Final = "Governance Design §3. FSM Engine: Store artifacts, post summary"
_BOUNDED: Final = "Interlock: what is kept and judged stays bounded"
_OBSERVED: Final = "Interlock: acting is observed, for a report of it proves nothing"
_TARGETS: Final = "Interlock: targets say which files may be changed"
_IDS: Final = "Interlock: what others refer to has one short name"


_ROWS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    _FILL: {
        "STG101": ("A payload is a JSON object", "Send an object with the fields of the stage."),
        "STG104": ("No other field is there", "Remove the field."),
    },
    _BOUNDED: {
        "STG102": (
            "A payload, its texts and its lists have a bounded size",
            "Shorten what is longest, and say where the rest is.",
        ),
        "STG112": ("Findings are bounded (warn)", "Fix what is shown; the rest shows at the next attempt."),
    },
    _WHOLE: {
        "STG103": (
            "Every required field is there, and is not empty",
            "Add the field, the text, or at least one entry.",
        ),
    },
    _TYPES: {
        "STG105": (
            "A field holds its kind of value, or one of its words, in whole, visible characters",
            "Write the kind of value that is expected.",
        ),
    },
    _IDS: {
        "STG201": (
            "An id is short and plain, and given once",
            "Give each entry an id of its own: at most 64 letters, digits, `.`, `_` and `-`.",
        ),
    },
    _SNIPPETS: {
        "STG302": (
            "A repo locator names lines that a file has",
            'Write the path, a colon and the lines, such as "src/login.py:12-18".',
        ),
        "STG304": (
            "A cited file is a text file of the project that is there, by its plain path, and no link or ignored one",
            "Write the path of a text file below the root that git lists, as in `git ls-files`, and a target covers.",
        ),
    },
    _ENFORCED: {
        "STG308": (
            "A snippet is in the cited file",
            "Copy the text exactly as it is, in whole lines.",
        ),
        "STG309": ("A snippet is in the cited lines (warn)", "Correct the line numbers."),
    },
    _CONFLICT: {
        "STG401": (
            "Items do not contradict each other: one text for a locator, one value for a subject (stop)",
            "Find out which of the two is right, then begin a new run.",
        ),
    },
    _TIED: {
        "STG501": ("A plan refers to known requirements and evidence", "Write an id from the list."),
        "STG503": ("A plan covers every acceptance criterion", "Refer to it in the step that serves it."),
    },
    _OBSERVED: {
        "STG601": ("Acting stays inside the plan", "Restore the file."),
        "STG602": (
            "Acting changes something (warn)",
            "Carry out the plan and submit again, or tell the user why no file changed.",
        ),
        "STG605": (
            "A change outside the plan has a known author (warn)",
            "Leave the files as they are, and tell the user about them.",
        ),
        "STG704": ("A success that changed no file says so", "Say it in `final_summary`."),
    },
    _TARGETS: {
        "STG604": (
            "A target in the repository is a scope pattern",
            "Write it like repo:src/login/** or repo:src/*.py.",
        ),
    },
    _STORED: {
        "STG702": ("An artifact that names a file exists", "Write the path of a file that exists."),
    },
}
"""By the clause that they enforce, as in `gates.rules`. STG1xx shape, STG2xx ids, STG3xx grounding, STG4xx conflicts,
STG5xx references, STG6xx acting, STG7xx the outcome."""

BY_CODE: Final = dict(sorted(row for source, table in _ROWS.items() for row in rules(table, source, "retry").items()))

_SHOWN_CHARS: Final = 160
_COPIED_CHARS: Final = 400


def issue(code: str, field: str, message: str, found: str, expected: str = "", fix: str = "") -> Finding:
    """Make a finding of one rule; what is not given comes from its row."""
    rule = BY_CODE[code]
    return Finding(code, rule.level, field, message, found, expected or rule.title, fix or rule.remedy)


def shown(text: str, limit: int = _SHOWN_CHARS) -> str:
    """Show untrusted text as a JSON string: one bounded line that can be copied, with `…` behind it where cut."""
    quoted = json.dumps(text[:limit], ensure_ascii=False)
    plain = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)
    return f"{plain}…" if len(text) > limit else plain


def copied(text: str) -> str:
    """Show text that is to be copied as it is, such as a path or a line of code."""
    return shown(text, _COPIED_CHARS)
