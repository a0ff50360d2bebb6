"""Records and refusals as callers see them: a refusal names who is in the way, and a call that helps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from interlock.core.record import Record
from interlock.reservations.leases import granting, liveness
from interlock.reservations.leases.arguments import Asked
from interlock.reservations.leases.granting import Look
from interlock.reservations.leases.liveness import HolderState, state
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import Lease, Waiter, iso

if TYPE_CHECKING:
    from interlock.reservations.answers import Conflict, LeaseInfo, Refusal

_OWN_LEASES: dict[str, Any] = {"tool": "my_reservations", "arguments": {}}
_WHY = "I need to edit it."

CALLED: Final = 8
"""A call of at most this many patterns is written out."""


def lease_info(lease: Lease, now: float) -> "LeaseInfo":
    """Return a lease as its holder sees it."""
    return {
        "reservation_id": lease.reservation_id,
        "pattern": lease.pattern,
        "exclusive": lease.exclusive,
        "no_force": lease.no_force,
        "claim": lease.claim,
        "holder": lease.agent,
        "reason": lease.reason,
        "token": lease.token,
        "granted_at": iso(lease.granted_at),
        "expires_at": iso(lease.expires_at),
        "expires_in_seconds": max(0, int(lease.expires_at - now)),
    }


def conflict_info(entry: Entry, pattern: str, held: Lease | Waiter, held_pattern: str) -> "Conflict":
    """Return who is in the way of a pattern; `dirty` is null until somebody asked for it.

    Of a place in the queue, the held pattern is the one that overlaps.
    """
    agent = entry.tx.agent(held.agent)
    last_seen = agent.last_seen if agent else 0.0
    return conflict_of(pattern, held, held_pattern, Holder(state(entry, held.agent), last_seen, entry.now))


class Holder(Record):
    """How the holder of a lease was found."""

    state: HolderState
    last_seen: float
    now: float


def span(seconds: float) -> str:
    """Return a length of time in one unit: `40 s`, `12 min`, `3 h`, `2 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def seen(conflict: "Conflict") -> str:
    """Return whether a holder still works."""
    return f"{conflict['holder_state']}, last seen {span(conflict['last_seen_seconds'])} ago"


def lasting(conflict: "Conflict") -> str:
    """Return how long a lease has been held, and how long it will last."""
    return f"held for {span(conflict['lease_age_seconds'])}, ends in {span(conflict['expires_in_seconds'])}"


def conflict_of(pattern: str, held: Lease | Waiter, held_pattern: str, holder: Holder) -> "Conflict":
    """Return what `conflict_info` does, when the transaction has ended and the holder was looked at in it."""
    waits = isinstance(held, Waiter)
    begun, ends = (held.since, held.until) if waits else (held.granted_at, held.expires_at)
    row: dict[str, object] = {
        "pattern": pattern,
        "holder": held.agent,
        "reservation_id": "" if waits else held.reservation_id,
        "held_pattern": held_pattern,
        "exclusive": held.exclusive,
        "reason": held.reason,
        "holder_state": holder.state,
        "last_seen": iso(holder.last_seen),
        "last_seen_seconds": max(0, int(holder.now - holder.last_seen)),
        "lease_age_seconds": max(0, int(holder.now - begun)),
        "expires_at": iso(ends),
        "expires_in_seconds": max(0, int(ends - holder.now)),
        "dirty": None,
    }
    return cast("Conflict", row | ({"waiting": True} if waits else {}))


def blocked(entry: Entry, asked: Asked, found: Look) -> "Refusal":
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
        "RSV201",
        f"{held.agent} ({seen(row)}) {does} `{shown(row['held_pattern'])}`{more}.",
        place=given.place,
        found=f"{given.text} overlaps {row['held_pattern']}",
        expected="no overlapping lease of another agent, and nobody in front who waits for one",
        fix=fix,
        conflict=row,
        next=call,
    )


def keep_waiting(errors: "Sequence[Refusal]", asked: Asked, position: int, kept_seconds: float, most: float) -> None:
    """Add to the refusals of a call with a place in the queue that it keeps the place, and how to go on."""
    patterns = [asked.given[text].text for text in asked.wanted.texts]
    call: dict[str, Any] = {"tool": "reserve_files", "arguments": {"patterns": patterns, "wait_seconds": most}}
    for error in errors:
        error["fix"] = (
            f"Not free yet. You keep place {position} in the queue for {span(kept_seconds)}: call again with "
            "wait_seconds."
        )
        if len(patterns) <= CALLED:
            error["next"] = call


def circle(entry: Entry, asked: Asked, found: Look, held: Lease | Waiter, wanted: Sequence[Lease]) -> "Refusal":
    """Return the RSV204 of a call that would wait for who waits for leases of the caller."""
    given = asked.given[found.pattern.text]
    names = ", ".join(lease.pattern for lease in wanted)
    return refuse(
        "RSV204",
        f"You would wait for each other: {held.agent} waits for what you hold.",
        place=given.place,
        found=f"{held.agent} waits for {names}",
        expected="nobody who waits for you in front of you",
        fix=f"Release what {held.agent} waits for, then reserve all that you need in one call.",
        conflict=conflict_info(entry, given.text, held, granting.held_pattern(found.pattern, asked.wanted, held)),
        next=release_call(wanted),
    )


def release_call(leases: Sequence[Lease]) -> dict[str, Any]:
    """Return the call that releases leases."""
    ids = [lease.reservation_id for lease in leases]
    return {"tool": "release_files", "arguments": {"reservation_ids": ids}}


def not_yours(place: str, reservation_id: str, lease: Lease | None) -> "Refusal":
    """Return the RSV202 of an id that names no lease, or one that somebody else holds."""
    message = "No lease has this id: it has ended, or never existed."
    fix, call = "Ask my_reservations what you hold; a lease that has ended needs no release.", _OWN_LEASES
    if lease is not None:
        message = f"`{shown(lease.pattern)}` is held by {lease.agent}."
        fix, call = _negotiate(lease.pattern, lease.agent, "")
    return refuse(
        "RSV202",
        message,
        place=place,
        found=reservation_id,
        expected="the reservation_id of a lease that you hold",
        fix=fix,
        next=call,
    )


def _negotiate(text: str, holder: str, reason: str) -> tuple[str, dict[str, Any]]:
    fix = f"Ask {holder} with negotiate_release, or wait in the queue with wait_seconds, or work on something else."
    call = {"file": text, "reason": reason or _WHY, "agent_name": holder}
    return fix, {"tool": "negotiate_release", "arguments": call}


def _wait(text: str, seconds: float) -> tuple[str, dict[str, Any]]:
    call = {"patterns": [text], "wait_seconds": seconds}
    return "Wait in the queue with wait_seconds.", {"tool": "reserve_files", "arguments": call}
