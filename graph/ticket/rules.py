"""The rules about a submission as a whole, and the findings about the names in a call."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.core import text as core
from interlock.core.finding import Level
from interlock.core.rule import Rule
from interlock.gates.stages import Issue
from interlock.graph.engine.folder import RUN_ID_FORM, is_run_id
from interlock.graph.errors import RunBusyError

_PROTOCOL: Final = "Ticket Protocol §"
_JSON: Final = "Governance Design §Complete Flow: Invalid JSON/Schema"
_OVERRIDE: Final = _PROTOCOL + "Non-Negotiable Constraints: No local override of server-controlled fields."
_PARTIAL: Final = _PROTOCOL + "Non-Negotiable Constraints: No partial ticket submissions."
_BUDGETS: Final = "Governance Design §Current PoC Scope: Bounded retry budgets and loop prevention policies"
_LATEST: Final = (
    _PROTOCOL + "Non-Negotiable Constraints: Every loop iteration must use the latest server-returned `ticket.json`."
)


_ROWS: Final[Mapping[Level, Mapping[str, tuple[str, str, str]]]] = {
    "retry": {
        "TKT101": (
            "The ticket is not an object in strict JSON.",
            _JSON,
            "A text around it, a comma too many, a key twice: send the JSON that was returned, and nothing else.",
        ),
        "TKT103": (
            "The ticket is too large.",
            "Interlock: what is stored stays bounded",
            "Shorten the texts of the payload: quote the lines that matter and point at the rest.",
        ),
        "TKT104": (
            "A field of the ticket is missing.",
            _PARTIAL,
            "Send the ticket whole, as it was returned; a part of it could hide what changed.",
        ),
        "TKT106": (
            "An argument has the wrong form.",
            "Governance Design §Ticket Schema: Type checking",
            "Send what the tool's schema says; the message names the argument.",
        ),
        "TKT114": (
            "The run is being worked on by another call.",
            _PROTOCOL + "Goal",
            "Its lock is held until the other call has its answer. Wait for that, then send the latest ticket.",
        ),
        "TKT115": (
            "The ticket cannot be fetched from its source.",
            "Interlock: a ticket of a source is fetched by nobody else",
            "Do what the finding says of the source, or report it to the user; then begin the run again.",
        ),
        "TKT121": (
            "The ticket is not the latest.",
            _LATEST,
            "Another answer came in between. Take the ticket that was returned last, fill in `payload` and send it.",
        ),
        "TKT122": (
            "A field that the server controls was changed, or added.",
            _OVERRIDE,
            "Take the ticket as it was returned, and change nothing but `payload`.",
        ),
    },
    "stop": {
        "TKT111": (
            "The run is unknown, or of another caller.",
            _PROTOCOL + "Source of Truth",
            "Its id is mistyped, or it was begun in another project. Begin one, and use the ticket that comes back.",
        ),
        "TKT113": (
            "The run is over.",
            _PROTOCOL + "Terminal States",
            "Its state is terminal, so no payload counts. Begin a new run for further work.",
        ),
        "TKT124": (
            "Refused submissions are bounded.",
            _BUDGETS,
            "Too many submissions in turn were refused. Begin a new run, and submit its tickets as they come back.",
        ),
    },
    "warn": {
        "TKT131": (
            "Files changed before the plan passed.",
            "Governance Design §Freedom vs Control",
            "They are not compared with the plan. Tell the user which are yours; edit after the plan has passed.",
        ),
        "TKT132": (
            "The ticket has changed at its source since it was fetched.",
            "Interlock: work is held to the ticket as it was fetched",
            "Tell the user. Where what is asked for has changed, end here, and begin a new run of the ticket.",
        ),
        "TKT133": (
            "Whether the ticket has changed at its source cannot be seen now.",
            "Interlock: work is held to the ticket as it was fetched",
            "Go on, and tell the user.",
        ),
    },
}
"""By level and code: what is wrong, the clause that it breaks, and what helps."""

RULES: Final[Mapping[str, Rule]] = dict(
    sorted((code, Rule(code, level, *row)) for level, rows in _ROWS.items() for code, row in rows.items())
)

REASON_CODES: Final = {"TKT124": "refused_submissions_spent"}
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


MAX_TICKET_ID_CHARS: Final = 200


def wrong_ids(ticket_id: object, run_id: object) -> Issue | None:
    """Return what is wrong with the names of a run that is to begin."""
    if not isinstance(ticket_id, str) or not 0 < len(ticket_id.strip()) == len(ticket_id) <= MAX_TICKET_ID_CHARS:
        expected = f"1 to {MAX_TICKET_ID_CHARS} characters without blanks around them"
    elif not ticket_id.isprintable():
        expected = "printable characters"
    elif run_id is not None and not is_run_id(run_id):
        fix = "Choose such an id, or leave `run_id` out."
        return issue("TKT106", "run_id", "The run id cannot be used.", found=run_id, expected=RUN_ID_FORM, fix=fix)
    else:
        return None
    fix = "Give the ticket's id as its tracker writes it."
    return issue("TKT106", "ticket_id", "The ticket id cannot be used.", found=ticket_id, expected=expected, fix=fix)


def unknown_run(run_id: object, first: str = "") -> Issue:
    """Return the finding about a run that does not exist, or that a caller may not submit to.

    A minimal ticket begins a run in the state `first`.
    """
    fix = "Begin one with interlock_begin_run(ticket_id), and use the ticket that it returns."
    if first:
        fix = f'Send the ticket with "state": "{first}" first: that begins the run.'
    message, expected = "There is no such ticket run here.", "a run that you began here"
    return issue("TKT111", "run_id", message, found=run_id, expected=expected, fix=fix)


def no_run_id(given: Mapping[str, Any], first: str = "") -> Issue:
    """Return the one finding about a ticket that names no run: nothing else of it can be compared."""
    fix = "Send the ticket as the server issued it; interlock_begin_run(ticket_id, run_id) returns that of a run."
    if first:
        fix = f'Add `run_id`: with "state": "{first}" an id of your own choice begins a run; later send the same.'
    message, found = "The ticket has no field `run_id`, so nothing says which run it is of.", ", ".join(given)
    expected = "a ticket with its `run_id`"
    return issue("TKT104", "run_id", message, found=found or "no field at all", expected=expected, fix=fix)


def taken_run(run_id: str) -> Issue:
    """Return the finding about a run id that another ticket, pipeline or caller has."""
    message, fix = f"The run id {run_id} is taken.", "Choose another one, or leave `run_id` out."
    return issue("TKT106", "run_id", message, found=run_id, expected="an id that no other run has", fix=fix)


def busy_run(error: RunBusyError) -> Issue:
    """Return the finding about a run that another call holds."""
    found, expected = "a call that has no answer yet", "one call at a time"
    return issue("TKT114", "run_id", error.message, found=found, expected=expected, fix=error.fix)


def no_object(payload: object) -> Issue:
    """Return the finding about a payload that is not an object."""
    message, fix = "The payload is not a JSON object.", "Write the fields of the stage into `payload` as an object."
    return issue("TKT106", "payload", message, found=payload, expected="an object", fix=fix)
