"""The rules about a submission as a whole, and the findings about the names in a call."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlock.core import text as core
from interlock.core.rule import Rule
from interlock.gates.stages import Issue
from interlock.graph.engine.folder import RUN_ID_FORM, is_run_id
from interlock.graph.errors import RunBusyError

_PROTOCOL: Final = "Ticket Protocol §"
_OVERRIDE: Final = _PROTOCOL + "Non-Negotiable Constraints: No local override of server-controlled fields."
_PARTIAL: Final = _PROTOCOL + "Non-Negotiable Constraints: No partial ticket submissions."
_BUDGETS: Final = "Governance Design §Current PoC Scope: Bounded retry budgets and loop prevention policies"
_LATEST: Final = (
    _PROTOCOL + "Non-Negotiable Constraints: Every loop iteration must use the latest server-returned `ticket.json`."
)


_ROWS: Final = (
    Rule(
        "TKT101", "retry", "The ticket is not strict JSON.", "Governance Design §Complete Flow: Invalid JSON/Schema",
        "A text around it, a comma too many or a key twice: send the JSON that the server returned, and nothing else.",
    ),
    Rule(
        "TKT102", "retry", "The ticket is not a JSON object.", "Governance Design §Complete Flow: Invalid JSON/Schema",
        "Send the ticket itself, not a list or a text that holds it.",
    ),
    Rule(
        "TKT103", "retry", "The ticket is too large or too deep.", "Interlock: what is stored stays bounded",
        "Shorten the texts of the payload: quote the lines that matter and point at the rest.",
    ),
    Rule(
        "TKT104", "retry", "A field of the ticket is missing.", _PARTIAL,
        "Send the ticket whole, as it was returned; a part of it could hide what changed.",
    ),
    Rule(
        "TKT105", "retry", "A field is not one of the ticket.", _OVERRIDE,
        "Remove it: answers go into `payload`, and the rest is the server's.",
    ),
    Rule(
        "TKT106", "retry", "An argument has the wrong form.", "Governance Design §Ticket Schema: Type checking",
        "Send what the tool's schema says; the message names the argument.",
    ),
    Rule(
        "TKT111", "stop", "The run is unknown.", _PROTOCOL + "Source of Truth",
        "Its id is mistyped, or it was begun in another project. Begin one, and use the ticket that comes back.",
    ),
    Rule(
        "TKT112", "stop", "The run belongs to another ticket or caller.", _PROTOCOL + "Source of Truth",
        "A caller moves its own runs alone. Begin a run of your own.",
    ),
    Rule(
        "TKT113", "stop", "The run is over.", _PROTOCOL + "Terminal States",
        "Its state is terminal, so no payload counts. Begin a new run for further work.",
    ),
    Rule(
        "TKT114", "retry", "The run is being worked on by another call.", _PROTOCOL + "Goal",
        "Its lock is held until the other call has its answer. Wait for that, then send the latest ticket.",
    ),
    Rule(
        "TKT121", "retry", "The ticket is not the latest.", _LATEST,
        "Another answer came in between. Take the ticket that the server returned last, fill in `payload` and send it.",
    ),
    Rule(
        "TKT122", "retry", "A field that the server controls was changed.", _OVERRIDE,
        "Take the ticket as it was returned, and change nothing but `payload`.",
    ),
    Rule(
        "TKT123", "stop", "The schema version differs.", _PROTOCOL + "Source of Truth",
        "Client and server are of different versions. Use one version, and begin a new run.",
    ),
    Rule(
        "TKT124", "stop", "Refused submissions are bounded.", _BUDGETS,
        "Too many submissions in turn could not be read. Begin a new run, and submit its tickets as they come back.",
    ),
    Rule(
        "TKT131", "warn", "Files changed before the plan passed.", "Governance Design §Freedom vs Control",
        "They are not compared with the plan. Tell the user which of them are yours; edit after the plan has passed.",
    ),
    Rule(
        "TKT132", "warn", "The ticket that was fetched has another id.", "Interlock: a run is about one ticket",
        "Look whether it is the same ticket under another key; if not, stop and begin a run of the one that is meant.",
    ),
    Rule(
        "TKT141", "retry", "Acting is delegated and takes no payload.", _PROTOCOL + "Workflow",
        "Tasks do the work of this stage: submit an empty payload, `{}`.",
    ),
    Rule(
        "TKT142", "retry", "The delegated tasks are not at their end.", _PROTOCOL + "Workflow",
        "A task is over when it is APPROVED or BLOCKED. Have what it waits for answered, then submit again.",
    ),
    Rule(
        "TKT144", "retry", "Files changed after their task was approved.", _PROTOCOL + "Workflow",
        "What was approved is not what is there. Take the edits back and submit again, or begin a new run.",
    ),
    Rule(
        "TKT143", "stop", "A delegated task cannot start or go on.", _PROTOCOL + "Workflow",
        "The task does not fit `[tickets.delegate]`, or its run is damaged. Correct that, and begin a new run.",
    ),
)  # fmt: skip

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


MAX_TICKET_ID_CHARS: Final = 200


def wrong_ids(ticket_id: object, run_id: object) -> Issue | None:
    """Return what is wrong with the names of a run that is to begin."""
    if not isinstance(ticket_id, str) or not 0 < len(ticket_id.strip()) == len(ticket_id) <= MAX_TICKET_ID_CHARS:
        expected = f"1 to {MAX_TICKET_ID_CHARS} characters without blanks around them"
    elif not ticket_id.isprintable():
        expected = "printable characters"
    elif run_id is not None and not is_run_id(run_id):
        return issue(
            "TKT106", "run_id", "The run id cannot be used.", found=run_id, expected=RUN_ID_FORM,
            fix="Choose such an id, or leave `run_id` out.",
        )  # fmt: skip
    else:
        return None
    return issue(
        "TKT106", "ticket_id", "The ticket id cannot be used.", found=ticket_id, expected=expected,
        fix="Give the ticket's id as its tracker writes it.",
    )  # fmt: skip


def unknown_run(run_id: object, first: str = "", near: Sequence[str] = ()) -> Issue:
    """Return the finding about a run that does not exist.

    A minimal ticket begins a run in the state `first`; runs `near` may be meant.
    """
    begin = "Begin one with interlock_begin_run(ticket_id), and use the ticket that it returns."
    if near:
        begin = f"Did you mean {' or '.join(near)}? If not: {begin[:1].lower()}{begin[1:]}"
    return issue(
        "TKT111", "run_id", "There is no such ticket run here.", found=run_id, expected="a run that was begun here",
        fix=f'Send the ticket with "state": "{first}" first: that begins the run.' if first else begin,
    )  # fmt: skip


def no_run_id(given: Mapping[str, Any], first: str = "", near: Sequence[str] = ()) -> Issue:
    """Return the one finding about a ticket that names no run: nothing else of it can be compared."""
    runs = f" Runs of this ticket: {', '.join(near)}." if near else ""
    fix = (
        "Send what the server issued: interlock_begin_run(ticket_id, run_id) returns the present ticket of a run, and "
        "without `run_id` begins one. Or send the payload alone with interlock_submit_payload(run_id, revision, "
        f"payload); interlock_run_status(run_id) says the revision.{runs}"
    )
    if first:
        fix = f'Add `run_id`: with "state": "{first}" an id of your own choice begins a run; later send the same.{runs}'
    return issue(
        "TKT104", "run_id", "The ticket has no field `run_id`, so nothing says which run it is of.",
        found=", ".join(given) or "no field at all", expected="a ticket with its `run_id`", fix=fix,
    )  # fmt: skip


def foreign_run(run_id: str, whose: str) -> Issue:
    """Return the finding about a run of another ticket or caller."""
    return issue(
        "TKT112", "run_id", f"Run {run_id} belongs to {whose}.", found=run_id, expected="a run of your own",
        fix="Begin a run of your own with interlock_begin_run(ticket_id).",
    )  # fmt: skip


def busy_run(error: RunBusyError) -> Issue:
    """Return the finding about a run that another call holds."""
    return issue(
        "TKT114", "run_id", error.message, found="a call that has no answer yet", expected="one call at a time",
        fix=error.fix,
    )  # fmt: skip


def no_object(payload: object) -> Issue:
    """Return the finding about a payload that is not an object."""
    return issue(
        "TKT106", "payload", "The payload is not a JSON object.", found=payload, expected="an object",
        fix="Write the fields of the stage into `payload` as an object.",
    )  # fmt: skip


def takes_none(payload: Mapping[str, Any]) -> Issue:
    """Return the finding about a payload where none is taken."""
    return issue(
        "TKT141", "payload", "This stage takes no payload.", found=", ".join(payload), expected="{}",
        fix="Submit with an empty payload.",
    )  # fmt: skip
