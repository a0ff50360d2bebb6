"""Records as callers see them."""

from typing import cast

from interlock.reservations.answers import Conflict, LeaseInfo, iso
from interlock.reservations.entry import Entry
from interlock.reservations.liveness import state
from interlock.reservations.records import Lease, Waiter


def lease_info(lease: Lease, now: float) -> LeaseInfo:
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


def conflict_info(entry: Entry, pattern: str, held: Lease | Waiter, held_pattern: str) -> Conflict:
    """Return who stands in the way of a pattern; `dirty` is null until somebody asked for it.

    Args:
        entry: The call.
        pattern: What was asked for, as it was given.
        held: The lease, or the place in the line, that is in the way.
        held_pattern: Its pattern; of a place in the line, the one that overlaps.
    """
    waits = isinstance(held, Waiter)
    agent = entry.tx.agent(held.agent)
    last_seen = agent.last_seen if agent else 0.0
    begun, ends = (held.since, held.until) if isinstance(held, Waiter) else (held.granted_at, held.expires_at)
    row: dict[str, object] = {
        "pattern": pattern,
        "holder": held.agent,
        "reservation_id": "" if isinstance(held, Waiter) else held.reservation_id,
        "held_pattern": held_pattern,
        "exclusive": held.exclusive,
        "reason": held.reason,
        "holder_state": state(entry, held.agent),
        "last_seen": iso(last_seen),
        "last_seen_seconds": max(0, int(entry.now - last_seen)),
        "lease_age_seconds": max(0, int(entry.now - begun)),
        "expires_at": iso(ends),
        "expires_in_seconds": max(0, int(ends - entry.now)),
        "dirty": None,
    }
    return cast("Conflict", row | ({"waiting": True} if waits else {}))
