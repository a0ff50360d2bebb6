"""The rules of payloads as rows, and the making of their findings."""

import json
from dataclasses import dataclass
from typing import Final

from interlock.gates.stages.stage import Issue, IssueLevel

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
_WORTH: Final = "Interlock: what stands in every file proves nothing"
_TARGETS: Final = "Interlock: targets say which files may be changed"
_IDS: Final = "Interlock: what others refer to has one short name"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of payloads.

    Args:
        code: Stable code: STG1xx shape, STG2xx ids, STG3xx grounding, STG4xx conflicts, STG5xx references, STG6xx
            acting, STG7xx the outcome.
        level: What a breach does to the run.
        title: What must hold, in one sentence.
        remedy: How an agent mends a breach, in the imperative.
        source: The clause that it enforces, or `Interlock:` and the reason.
    """

    code: str
    level: IssueLevel
    title: str
    remedy: str
    source: str


RULES: Final[tuple[Rule, ...]] = (
    Rule("STG101", "retry", "A payload is a JSON object", "Send an object with the fields of the stage.", _FILL),
    Rule("STG102", "retry", "A payload has a bounded size", "Shorten the longest field.", _BOUNDED),
    Rule("STG103", "retry", "Every required field is there", "Add the field.", _WHOLE),
    Rule("STG104", "retry", "No other field is there", "Remove the field.", _FILL),
    Rule("STG105", "retry", "A field holds its kind of value", "Write the kind of value that is expected.", _TYPES),
    Rule("STG106", "retry", "A text is not blank", "Write the text, or remove the entry.", _TYPES),
    Rule("STG107", "retry", "A list that is needed has an entry", "Add at least one entry.", _GATES),
    Rule("STG108", "retry", "A text has a bounded length", "Shorten the text.", _BOUNDED),
    Rule("STG109", "retry", "A list has a bounded length", "Keep the entries that matter.", _BOUNDED),
    Rule("STG110", "retry", "A text holds whole, visible characters", "Remove the character that is named.", _TYPES),
    Rule("STG111", "retry", "A choice is one of its words", "Write one of the words that are listed.", _TYPES),
    Rule("STG112", "warn", "Findings are bounded", "Fix what is shown; the rest shows at the next attempt.", _BOUNDED),
    Rule("STG201", "retry", "An id is given once", "Give each entry an id of its own.", _IDS),
    Rule(
        "STG202",
        "retry",
        "An id is short and plain",
        "Write letters, digits, `.`, `_` and `-`, at most 64 of them.",
        _IDS,
    ),
    Rule(
        "STG301",
        "retry",
        "A source_type is one plain word, and the repository is `repo`",
        "Write `repo`, or another word in small letters.",
        _SNIPPETS,
    ),
    Rule(
        "STG302", "retry", "A repo locator names lines of a file", "Write it as path:line or path:start-end.", _SNIPPETS
    ),
    Rule(
        "STG303",
        "retry",
        "A repo locator stays inside the project, outside of what Interlock, git and tools keep there",
        "Write a path below the project's root, without links.",
        _SNIPPETS,
    ),
    Rule("STG304", "retry", "A cited file exists", "Cite a file that exists.", _SNIPPETS),
    Rule("STG305", "retry", "A cited file is a readable text file", "Cite a text file in UTF-8.", _SNIPPETS),
    Rule("STG306", "retry", "Cited files have a bounded size", "Cite a smaller file.", _BOUNDED),
    Rule("STG307", "retry", "Cited lines exist", "Cite lines that the file has.", _SNIPPETS),
    Rule("STG308", "retry", "A snippet stands in the cited file", "Copy the text exactly as it stands.", _ENFORCED),
    Rule("STG309", "warn", "A snippet stands in the cited lines", "Correct the line numbers.", _ENFORCED),
    Rule(
        "STG310",
        "warn",
        "A cited file is the one of the run's beginning",
        "Tell the user who wrote the file, and when.",
        _EDITED,
    ),
    Rule("STG311", "retry", "A snippet is a whole line, or longer than a word", "Write the whole line.", _WORTH),
    Rule(
        "STG312",
        "retry",
        "A cited file is one that git does not ignore and, of a caller with a token, that a target of the run covers",
        "Cite a file that git does not ignore and that a `repo:` target of this run covers.",
        _SNIPPETS,
    ),
    Rule(
        "STG401",
        "stop",
        "Items do not contradict each other",
        "Find out which of the two is right, then begin a new run with one item for the locator.",
        _CONFLICT,
    ),
    Rule(
        "STG402",
        "stop",
        "A subject has one value over all sources",
        "Ask the user which of the two holds, then begin a new run.",
        _CONFLICT,
    ),
    Rule(
        "STG403",
        "warn",
        "Different numbers beside the same words are reported",
        "If both are about the same thing, find out which one holds before you plan with it.",
        _CONFLICT,
    ),
    Rule("STG501", "retry", "A plan refers to known requirements", "Write an id from the list.", _TIED),
    Rule("STG502", "retry", "A plan refers to known evidence", "Write a source_id from the list.", _TIED),
    Rule(
        "STG503", "retry", "A plan covers every acceptance criterion", "Refer to it in the step that serves it.", _TIED
    ),
    Rule(
        "STG504",
        "warn",
        "Some acceptance criterion is certain",
        "Ask the user which criteria hold, or say why none is certain.",
        _TIED,
    ),
    Rule("STG601", "retry", "Acting stays inside the plan", "Restore the file.", _OBSERVED),
    Rule("STG602", "retry", "Acting changes something", "Carry out the plan, then submit again.", _OBSERVED),
    Rule("STG603", "warn", "Acting that changes no file is reported", "Tell the user why no file changed.", _OBSERVED),
    Rule(
        "STG604",
        "retry",
        "A target in the repository is a scope pattern",
        "Write it like repo:src/login/** or repo:src/*.py.",
        _TARGETS,
    ),
    Rule(
        "STG605",
        "warn",
        "Changes outside the plan whose author is not known are reported",
        "Leave the files as they are, and tell the user about them.",
        _OBSERVED,
    ),
    Rule(
        "STG606",
        "retry",
        "An agent reports no change outside the plan as its own",
        "Leave the file out of `actions_taken` if you did not change it.",
        _OBSERVED,
    ),
    Rule(
        "STG607",
        "retry",
        "In the checkout of one agent nothing outside the plan changes",
        "Tell the user.",
        _OBSERVED,
    ),
    Rule("STG701", "retry", "Success means that every task was approved", "Write another outcome.", _ENFORCED),
    Rule("STG702", "retry", "An artifact that names a file exists", "Write the path of a file that exists.", _STORED),
    Rule("STG703", "warn", "An address among the artifacts is unverified", "Tell the user what is there.", _STORED),
    Rule("STG704", "retry", "A success that changed no file says so", "Say it in `final_summary`.", _OBSERVED),
)
"""Every rule of payloads, in the order of their codes."""

BY_CODE: Final[dict[str, Rule]] = {rule.code: rule for rule in RULES}

MAX_SHOWN_CHARS: Final = 160
MAX_COPIED_CHARS: Final = 400
MAX_NAMED: Final = 20
"""So many names a list in a finding may have."""


def issue(code: str, field: str, message: str, *, found: str, expected: str, fix: str = "") -> Issue:
    """Make a finding of one rule; without a `fix` its row says how to mend it.

    Raises:
        KeyError: There is no such rule.
    """
    rule = BY_CODE[code]
    return Issue(code, rule.level, field, message, found, expected, fix or rule.remedy)


def shown(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    """Show untrusted text as a JSON string: one bounded line that can be copied, with `…` behind it where cut."""
    quoted = json.dumps(text[:limit], ensure_ascii=False)
    plain = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)
    return f"{plain}…" if len(text) > limit else plain


def copied(text: str) -> str:
    """Show text that is to be copied as it stands, such as a path or a line of code."""
    return shown(text, MAX_COPIED_CHARS)


def listed(names: "list[str] | tuple[str, ...]", most: int = MAX_NAMED) -> str:
    """List names, so many as are worth reading."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"
