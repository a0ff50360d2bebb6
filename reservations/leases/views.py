"""Records as callers see them."""

from typing import NamedTuple, cast

from interlock.reservations.answers import Conflict, LeaseInfo, iso
from interlock.reservations.leases.liveness import HolderState, state
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.records import Lease, Waiter


def lease_info(lease: Lease, now: float) -> LeaseInfo:
    """Return a lease as its holder sees it."""
    return {
        "reservation_id": lease.reservation_id, "pattern": lease.pattern, "exclusive": lease.exclusive,
        "no_force": lease.no_force, "claim": lease.claim, "holder": lease.agent, "reason": lease.reason,
        "token": lease.token, "granted_at": iso(lease.granted_at), "expires_at": iso(lease.expires_at),
        "expires_in_seconds": max(0, int(lease.expires_at - now)),
    }  # fmt: skip


def conflict_info(entry: Entry, pattern: str, held: Lease | Waiter, held_pattern: str) -> Conflict:
    """Return who is in the way of a pattern; `dirty` is null until somebody asked for it.

    Of a place in the queue, the held pattern is the one that overlaps.
    """
    agent = entry.tx.agent(held.agent)
    last_seen = agent.last_seen if agent else 0.0
    return conflict_of(pattern, held, held_pattern, Holder(state(entry, held.agent), last_seen, entry.now))


class Holder(NamedTuple):
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


def seen(conflict: Conflict) -> str:
    """Return whether a holder still works."""
    return f"{conflict['holder_state']}, last seen {span(conflict['last_seen_seconds'])} ago"


def lasting(conflict: Conflict) -> str:
    """Return how long a lease has been held, and how long it will last."""
    return f"held for {span(conflict['lease_age_seconds'])}, ends in {span(conflict['expires_in_seconds'])}"


def conflict_of(pattern: str, held: Lease | Waiter, held_pattern: str, holder: Holder) -> Conflict:
    """Return what `conflict_info` does, when the transaction has ended and the holder was looked at in it."""
    waits = isinstance(held, Waiter)
    begun, ends = (held.since, held.until) if waits else (held.granted_at, held.expires_at)
    row: dict[str, object] = {
        "pattern": pattern, "holder": held.agent, "reservation_id": "" if waits else held.reservation_id,
        "held_pattern": held_pattern, "exclusive": held.exclusive, "reason": held.reason,
        "holder_state": holder.state, "last_seen": iso(holder.last_seen),
        "last_seen_seconds": max(0, int(holder.now - holder.last_seen)),
        "lease_age_seconds": max(0, int(holder.now - begun)), "expires_at": iso(ends),
        "expires_in_seconds": max(0, int(ends - holder.now)), "dirty": None,
    }  # fmt: skip
    return cast("Conflict", row | ({"waiting": True} if waits else {}))
