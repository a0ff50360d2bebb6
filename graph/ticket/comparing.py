"""Holding a submitted ticket against the one that the server issued; it contributes its payload and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from interlock.core.text import closest
from interlock.gates.stages import Issue
from interlock.graph.ticket.contract import SentTicket, Ticket
from interlock.graph.ticket.rules import issue, shown
from interlock.graph.ticket.spec import PipelineSpec
from interlock.graph.ticket.state import RunState, terminal
from interlock.journal import canonical

_MAX_UNKNOWN: Final = 20
"""So many unknown fields get a finding each."""

_AS_RETURNED: Final = "Take the ticket that comes back with this answer, fill in its `payload` alone, and submit it."


def missing_and_unknown(given: Mapping[str, Any]) -> list[Issue]:
    """Return a finding for each field that a whole ticket must have and this one has not, or has too much."""
    names = list(SentTicket.__annotations__)
    found = [
        issue(
            "TKT104", name, f"The ticket has no field `{name}`.", found="nothing", expected="every field as issued",
            fix=_AS_RETURNED,
        )
        for name in names
        if name not in given
    ]  # fmt: skip
    return [*found, *unknown_fields(given, names)]


def changed(given: Mapping[str, Any], issued: SentTicket, whole: Ticket) -> list[Issue]:
    """Return a finding for each server-controlled field that differs from the ticket as issued.

    Each field may be that of the ticket as it was sent, or of the whole one that its resource shows.
    """
    return [
        changed_field(name, given[name], value)
        for name, value in issued.items()
        if name != "payload" and name in given
        and canonical(given[name]) not in (canonical(cast("Any", value)), canonical(cast("Any", whole)[name]))
    ]  # fmt: skip


def other_ticket(payload: Mapping[str, Any], state: RunState, spec: PipelineSpec) -> list[Issue]:
    """Return a finding when a stage that records the ticket's id is given another one than the run's."""
    asks = not terminal(state) and any(field.name == "ticket_id" for field in spec.stage(state["state"]).fields)
    given = payload.get("ticket_id")
    return (
        [changed_field("ticket_id", given, state["ticket_id"])]
        if asks and given not in (None, state["ticket_id"])
        else []
    )


def other_key(payload: Mapping[str, Any], ticket_id: str) -> list[Issue]:
    """Return a warning when the ticket that was fetched has an id in its tracker that does not look like the run's.

    Trackers have keys of their own, and the server asks none: so it is told, and refused never.
    """
    key = payload.get("external_ticket_id")
    if not isinstance(key, str) or _is_end(key, ticket_id) or _is_end(ticket_id, key):
        return []
    return [
        issue(
            "TKT132", "external_ticket_id", f"The ticket that was fetched is {shown(key)}; the run is of {ticket_id}.",
            found=key, expected=f"{ticket_id}, or the key that its tracker has for it",
            fix=f"If it is another ticket than {ticket_id}, stop, tell the user, and begin a run of the one that is "
            "meant. Otherwise go on.",
        )
    ]  # fmt: skip


def _is_end(short: str, whole: str) -> bool:
    """Return whether an id is another one, or stands at its end after a sign: `7` in `SHOP-7`, `SHOP-7` in a URL."""
    end, text = short.strip().lstrip("#").casefold(), whole.strip().casefold()
    return end != "" and text.endswith(end) and not text[: -len(end)][-1:].isalnum()


def stale(revision: object, state: RunState) -> Issue:
    """Return the finding about a revision that is not the present one."""
    present = state["revision"]
    old = isinstance(revision, int) and not isinstance(revision, bool) and 0 < revision < present
    if old:
        return issue(
            "TKT121", "revision", f"The ticket is revision {revision}; the run is at revision {present}.",
            found=revision, expected=str(present), fix=_AS_RETURNED,
        )  # fmt: skip
    return changed_field("revision", revision, present)


def history_revision(given: object, state: RunState) -> int | None:
    """Return a revision of the past that a value names, or None."""
    if isinstance(given, bool) or not isinstance(given, int):
        return None
    return next((entry["revision"] for entry in state["history"] if entry["revision"] == given), None)


def changed_field(name: str, found: object, expected: object) -> Issue:
    """Return the finding about a field of the server's that was changed."""
    return issue(
        "TKT122",
        name,
        f"The field `{name}` is the server's and was changed.",
        found=_text(found, beside=expected),
        expected=shown(_text(expected, beside=found)),
        fix=_AS_RETURNED,
    )


def unknown_fields(given: Mapping[str, Any], known: Sequence[str]) -> list[Issue]:
    """Return a finding for each field that is none of a ticket, as far as they are worth reading."""
    names = [name for name in given if name not in known]
    found = [_stranger(name, known) for name in names[:_MAX_UNKNOWN]]
    more = names[_MAX_UNKNOWN:]
    if more:
        message = f"{len(more)} more fields are not among those of a ticket."
        fix = "Remove these fields too."
        found.append(
            issue("TKT105", "", message, found=", ".join(more[:_MAX_UNKNOWN]), expected="the fields as issued", fix=fix)
        )
    return found


def _stranger(name: str, known: Sequence[str]) -> Issue:
    near = closest(name, known)
    hint = f" Did you mean `{near}`?" if near else ""
    return issue(
        "TKT105",
        shown(name),
        f"`{shown(name)}` is no field of a ticket.{hint}",
        found=name,
        expected="the fields as issued",
        fix=f"Remove `{shown(name)}`; what you want to say belongs into `payload`.",
    )


def _text(value: object, *, beside: object) -> str:
    """Show a value; a text beside a value of another kind stands between quotes, so that `2` is not "2"."""
    plain = isinstance(value, str) and isinstance(beside, str)
    return str(value) if plain else canonical(cast("Any", value)).decode("ascii")
