"""The refusals of the calls about leases: each names who is in the way, and a call that helps."""

from collections.abc import Sequence
from typing import Any, Final

from interlock.reservations.answers import Refusal
from interlock.reservations.leases import granting, liveness
from interlock.reservations.leases.arguments import Asked
from interlock.reservations.leases.granting import Look
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.leases.views import conflict_info, seen, span
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import Lease, Waiter

_OWN_LEASES: dict[str, Any] = {"tool": "my_reservations", "arguments": {}}
_WHY = "I need to edit it."

MAX_CALLED: Final = 8
"""A call of at most this many patterns is written out."""


def blocked(entry: Entry, asked: Asked, found: Look) -> Refusal:
    """Return the RSV201 of one pattern: who is in the way, whether it still works, and what to do.

    Of several, the first that still works: it is the one that can answer, and the dead are in nobody's way for long.
    """
    alive = (each for each in found.blockers if liveness.state(entry, each.agent) == "alive")
    held = next(alive, found.blockers[0])
    given = asked.given[found.pattern.text]
    row = conflict_info(entry, given.text, held, granting.held_pattern(found.pattern, asked.wanted, held))
    does = "waits in front for" if isinstance(held, Waiter) else "holds"
    others = len(found.blockers) - 1
    more = f" ({others} more in the way)" if others else ""
    seconds = entry.runtime.settings.max_wait_seconds
    dead = row["holder_state"] != "alive"
    soon = dead or isinstance(held, Waiter) or held.expires_at - entry.now <= seconds
    fix, call = _wait(given.text, seconds) if soon else _negotiate(given.text, held.agent, asked.wanted.reason)
    return refuse(
        "RSV201", f"{held.agent} ({seen(row)}) {does} `{shown(row['held_pattern'])}`{more}.", place=given.place,
        found=f"{given.text} overlaps {row['held_pattern']}",
        expected="no overlapping lease of another agent, and nobody in front who waits for one", fix=fix,
        conflict=row, next=call,
    )  # fmt: skip


def keep_waiting(errors: Sequence[Refusal], asked: Asked, position: int, kept_seconds: float, most: float) -> None:
    """Add to the refusals of a call with a place in the queue that it keeps the place, and how to go on."""
    patterns = [asked.given[text].text for text in asked.wanted.texts]
    call: dict[str, Any] = {"tool": "reserve_files", "arguments": {"patterns": patterns, "wait_seconds": most}}
    for error in errors:
        error["fix"] = (
            f"Not free yet. You keep place {position} in the queue for {span(kept_seconds)}: call again with "
            "wait_seconds."
        )
        if len(patterns) <= MAX_CALLED:
            error["next"] = call


def circle(entry: Entry, asked: Asked, members: Sequence[str], found: Look) -> Refusal:
    """Return the RSV204 of a call that would close a circle."""
    given, held = asked.given[found.pattern.text], found.blockers[0]
    chain = " waits for ".join([*members, members[0]])
    return refuse(
        "RSV204", f"You would wait for each other: {shown(chain)}.", place=given.place, found=chain,
        expected="nobody who waits for you in front of you",
        fix="Release what they wait for (my_reservations lists what you hold), then reserve all of it in one call.",
        conflict=conflict_info(entry, given.text, held, granting.held_pattern(found.pattern, asked.wanted, held)),
        next=_OWN_LEASES,
    )  # fmt: skip


def too_many(held: int, new: int, limit: int) -> Refusal:
    """Return the RSV205 of a call after which its agent would hold more than it may."""
    return refuse(
        "RSV205", f"You hold {held} leases and would get {new} more.", place="patterns",
        found=f"{held} + {new} leases", expected=f"at most {limit} leases of one agent",
        fix="Release what you no longer edit, or reserve a wider pattern such as src/**.", next=_OWN_LEASES,
    )  # fmt: skip


def too_wide(compared: int) -> Refusal:
    """Return the RSV104 of a call whose patterns are near too many leases to be compared at once."""
    return refuse(
        "RSV104",
        "Its patterns together are near too many leases to compare all at once.",
        place="patterns",
        found=f"{compared} pairs to compare",
        expected=f"at most {granting.MAX_COMPARED} pairs in a call of several patterns",
        fix="Name folders and files in place of wildcards such as `**/*.py`, or ask for fewer patterns in one call.",
    )


def other_arguments(key: str) -> Refusal:
    """Return the RSV106 of an idempotency key that belongs to another call."""
    return refuse(
        "RSV106", "This idempotency key was used for a call with other arguments.", place="idempotency_key",
        found=key, expected="a new key for a new call",
        fix="Send the same arguments to get the first answer again, or another key.",
    )  # fmt: skip


def unknown_id(place: str, reservation_id: str) -> Refusal:
    """Return the RSV203 of an id that names no lease."""
    return refuse(
        "RSV203", "No lease has this id: it has ended, or never existed.", place=place, found=reservation_id,
        expected="the reservation_id of a lease that you hold",
        fix="Ask my_reservations what you hold; a lease that has ended needs no release.", next=_OWN_LEASES,
    )  # fmt: skip


def foreign(place: str, lease: Lease) -> Refusal:
    """Return the RSV202 of a lease that somebody else holds."""
    fix, call = _negotiate(lease.pattern, lease.agent, "")
    return refuse(
        "RSV202", f"`{shown(lease.pattern)}` is held by {lease.agent}.", place=place, found=lease.reservation_id,
        expected="the reservation_id of a lease that you hold", fix=fix, next=call,
    )  # fmt: skip


def _negotiate(text: str, holder: str, reason: str) -> tuple[str, dict[str, Any]]:
    fix = f"Ask {holder} with negotiate_release, or wait in the queue with wait_seconds, or work on something else."
    call = {"file": text, "reason": reason or _WHY, "agent_name": holder}
    return fix, {"tool": "negotiate_release", "arguments": call}


def _wait(text: str, seconds: float) -> tuple[str, dict[str, Any]]:
    call = {"patterns": [text], "wait_seconds": seconds}
    return "Wait in the queue with wait_seconds.", {"tool": "reserve_files", "arguments": call}
