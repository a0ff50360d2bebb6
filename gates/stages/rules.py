"""The rules of payloads as rows, and the making of their findings."""

import json
from typing import Final

from interlock.core.finding import Finding
from interlock.core.rule import Rule

_GATES: Final = "Governance Design §4. Validation Gates: Validates at each step, with fixes"
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
_EDITED: Final = "Interlock: what an agent writes itself proves nothing"
_WORTH: Final = "Interlock: a text that is in every file proves nothing"
_TARGETS: Final = "Interlock: targets say which files may be changed"
_IDS: Final = "Interlock: what others refer to has one short name"


RULES: Final[tuple[Rule, ...]] = (
    Rule("STG101", "retry", "A payload is a JSON object", _FILL, "Send an object with the fields of the stage."),
    Rule("STG102", "retry", "A payload has a bounded size", _BOUNDED, "Shorten the longest field."),
    Rule("STG103", "retry", "Every required field is there", _WHOLE, "Add the field."),
    Rule("STG104", "retry", "No other field is there", _FILL, "Remove the field."),
    Rule("STG105", "retry", "A field holds its kind of value", _TYPES, "Write the kind of value that is expected."),
    Rule("STG106", "retry", "A text is not blank", _TYPES, "Write the text, or remove the entry."),
    Rule("STG107", "retry", "A list that is needed has an entry", _GATES, "Add at least one entry."),
    Rule("STG108", "retry", "A text has a bounded length", _BOUNDED, "Shorten the text."),
    Rule("STG109", "retry", "A list has a bounded length", _BOUNDED, "Keep the entries that matter."),
    Rule("STG110", "retry", "A text holds whole, visible characters", _TYPES, "Remove the character that is named."),
    Rule("STG111", "retry", "A choice is one of its words", _TYPES, "Write one of the words that are listed."),
    Rule("STG112", "warn", "Findings are bounded", _BOUNDED, "Fix what is shown; the rest shows at the next attempt."),
    Rule("STG201", "retry", "An id is given once", _IDS, "Give each entry an id of its own."),
    Rule("STG202", "retry", "An id is short and plain", _IDS,
         "Write letters, digits, `.`, `_` and `-`, at most 64 of them."),
    Rule("STG301", "retry", "A source_type is one plain word, and the repository is `repo`", _SNIPPETS,
         "Write `repo`, or another word in small letters."),
    Rule("STG302", "retry", "A repo locator names lines of a file", _SNIPPETS,
         "Write it as path:line or path:start-end."),
    Rule("STG303", "retry",
         "A repo locator stays inside the project, outside of what Interlock, git and tools keep there",
         _SNIPPETS, "Write a path below the project's root, without links."),
    Rule("STG304", "retry", "A cited file exists", _SNIPPETS, "Cite a file that exists."),
    Rule("STG305", "retry", "A cited file is a readable text file", _SNIPPETS, "Cite a text file in UTF-8."),
    Rule("STG306", "retry", "Cited files have a bounded size", _BOUNDED, "Cite a smaller file."),
    Rule("STG307", "retry", "Cited lines exist", _SNIPPETS, "Cite lines that the file has."),
    Rule("STG308", "retry", "A snippet is in the cited file", _ENFORCED, "Copy the text exactly as it is."),
    Rule("STG309", "warn", "A snippet is in the cited lines", _ENFORCED, "Correct the line numbers."),
    Rule("STG310", "warn", "A cited file is the one of the run's beginning", _EDITED,
         "Tell the user who wrote the file, and when."),
    Rule("STG311", "retry", "A snippet is a whole line, or longer than a word", _WORTH, "Write the whole line."),
    Rule("STG312", "retry",
         "A cited file is one that git does not ignore and, of a caller with a token, that a target of the run covers",
         _SNIPPETS, "Cite a file that git does not ignore and that a `repo:` target of this run covers."),
    Rule("STG401", "stop", "Items do not contradict each other", _CONFLICT,
         "Find out which of the two is right, then begin a new run with one item for the locator."),
    Rule("STG402", "stop", "A subject has one value over all sources", _CONFLICT,
         "Ask the user which of the two holds, then begin a new run."),
    Rule("STG403", "warn", "Different numbers beside the same words are reported", _CONFLICT,
         "If both are about the same thing, find out which one holds before you plan with it."),
    Rule("STG501", "retry", "A plan refers to known requirements", _TIED, "Write an id from the list."),
    Rule("STG502", "retry", "A plan refers to known evidence", _TIED, "Write a source_id from the list."),
    Rule("STG503", "retry", "A plan covers every acceptance criterion", _TIED,
         "Refer to it in the step that serves it."),
    Rule("STG504", "warn", "Some acceptance criterion is certain", _TIED,
         "Ask the user which criteria hold, or say why none is certain."),
    Rule("STG601", "retry", "Acting stays inside the plan", _OBSERVED, "Restore the file."),
    Rule("STG602", "retry", "Acting changes something", _OBSERVED, "Carry out the plan, then submit again."),
    Rule("STG603", "warn", "Acting that changes no file is reported", _OBSERVED, "Tell the user why no file changed."),
    Rule("STG604", "retry", "A target in the repository is a scope pattern", _TARGETS,
         "Write it like repo:src/login/** or repo:src/*.py."),
    Rule("STG605", "warn", "Changes outside the plan whose author is not known are reported", _OBSERVED,
         "Leave the files as they are, and tell the user about them."),
    Rule("STG606", "retry", "An agent reports no change outside the plan as its own", _OBSERVED,
         "Leave the file out of `actions_taken` if you did not change it."),
    Rule("STG607", "retry", "In the checkout of one agent nothing outside the plan changes", _OBSERVED,
         "Tell the user."),
    Rule("STG701", "retry", "Success means that every task was approved", _ENFORCED, "Write another outcome."),
    Rule("STG702", "retry", "An artifact that names a file exists", _STORED, "Write the path of a file that exists."),
    Rule("STG703", "warn", "An address among the artifacts is unverified", _STORED, "Tell the user what is there."),
    Rule("STG704", "retry", "A success that changed no file says so", _OBSERVED, "Say it in `final_summary`."),
)  # fmt: skip
"""Every rule of payloads, in the order of their codes: STG1xx shape, STG2xx ids, STG3xx grounding, STG4xx conflicts,
STG5xx references, STG6xx acting, STG7xx the outcome."""

BY_CODE: Final[dict[str, Rule]] = {rule.code: rule for rule in RULES}

MAX_SHOWN_CHARS: Final = 160
MAX_COPIED_CHARS: Final = 400
MAX_NAMED: Final = 20
"""So many names a list in a finding may have."""


def issue(code: str, field: str, message: str, found: str, expected: str = "", fix: str = "") -> Finding:
    """Make a finding of one rule; what is not given comes from its row."""
    rule = BY_CODE[code]
    return Finding(code, rule.level, field, message, found, expected or rule.title, fix or rule.remedy)


def shown(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    """Show untrusted text as a JSON string: one bounded line that can be copied, with `…` behind it where cut."""
    quoted = json.dumps(text[:limit], ensure_ascii=False)
    plain = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)
    return f"{plain}…" if len(text) > limit else plain


def copied(text: str) -> str:
    """Show text that is to be copied as it is, such as a path or a line of code."""
    return shown(text, MAX_COPIED_CHARS)


def listed(names: "list[str] | tuple[str, ...]", most: int = MAX_NAMED) -> str:
    """List names, so many as are worth reading."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"
