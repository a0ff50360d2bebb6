"""The rules about a submission as a whole: whether it is a ticket, of this run, as the server issued it."""

from typing import Final

from interlock.core import text as core
from interlock.core.rule import Rule
from interlock.gates.stages import Issue

_PROTOCOL: Final = "Ticket Protocol §"
_OVERRIDE: Final = _PROTOCOL + "Non-Negotiable Constraints: No local override of server-controlled fields."
_PARTIAL: Final = _PROTOCOL + "Non-Negotiable Constraints: No partial ticket submissions."
_BUDGETS: Final = "Governance Design §Current PoC Scope: Bounded retry budgets and loop prevention policies"
_LATEST: Final = (
    _PROTOCOL + "Non-Negotiable Constraints: Every loop iteration must use the latest server-returned `ticket.json`."
)


_ROWS: Final = (
    Rule("TKT101", "retry", "The ticket is no strict JSON.", "Governance Design §Complete Flow: Invalid JSON/Schema"),
    Rule("TKT102", "retry", "The ticket is no JSON object.", "Governance Design §Complete Flow: Invalid JSON/Schema"),
    Rule("TKT103", "retry", "The ticket is too large or too deep.", "Interlock: what is stored stays bounded"),
    Rule("TKT104", "retry", "A field of the ticket is missing.", _PARTIAL),
    Rule("TKT105", "retry", "A field is not one of the ticket.", _OVERRIDE),
    Rule("TKT106", "retry", "An argument has the wrong form.", "Governance Design §Ticket Schema: Type checking"),
    Rule("TKT111", "stop", "The run is unknown.", _PROTOCOL + "Source of Truth"),
    Rule("TKT112", "stop", "The run belongs to another ticket or caller.", _PROTOCOL + "Source of Truth"),
    Rule("TKT113", "stop", "The run is over.", _PROTOCOL + "Terminal States"),
    Rule("TKT114", "retry", "The run is being worked on by another call.", _PROTOCOL + "Goal"),
    Rule("TKT121", "retry", "The ticket is not the latest.", _LATEST),
    Rule("TKT122", "retry", "A field that the server controls was changed.", _OVERRIDE),
    Rule("TKT123", "stop", "The schema version differs.", _PROTOCOL + "Source of Truth"),
    Rule("TKT124", "stop", "Refused submissions are bounded.", _BUDGETS),
    Rule("TKT131", "warn", "Files changed before the plan passed.", "Governance Design §Freedom vs Control"),
    Rule("TKT132", "warn", "The ticket that was fetched has another id.", "Interlock: a run is about one ticket"),
    Rule("TKT141", "retry", "Acting is delegated and takes no payload.", _PROTOCOL + "Workflow"),
    Rule("TKT142", "retry", "The delegated tasks are not at their end.", _PROTOCOL + "Workflow"),
    Rule("TKT144", "retry", "Files changed after their task was approved.", _PROTOCOL + "Workflow"),
    Rule("TKT143", "stop", "A delegated task cannot start or go on.", _PROTOCOL + "Workflow"),
)

RULES: Final = {rule.code: rule for rule in _ROWS}

REASON_CODES: Final = {
    "TKT123": "schema_version_mismatch",
    "TKT112": "foreign_run",
    "TKT124": "refused_submissions_spent",
}
"""What an invalidation report calls a blocking issue of this table."""

MAX_SHOWN_CHARS: Final = 200


def issue(code: str, field: str, message: str, *, found: object, expected: str, fix: str) -> Issue:
    """Make a finding of one rule; what was found is shown in bounded length.

    Raises:
        KeyError: There is no such rule.
    """
    return Issue(code, RULES[code].level, field, message, shown(found), expected, fix)


def shown(value: object) -> str:
    """Show a value in one bounded line."""
    text = value if isinstance(value, str) else repr(value)
    return core.shown(text, MAX_SHOWN_CHARS) or "nothing"
