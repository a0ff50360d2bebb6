"""Whether the leases of a store are those that its journals give, so that who held a file can be looked up later."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from interlock.journal import Entry
from interlock.reservations.git.lease_history import Seen
from interlock.reservations.store.history import Held, from_journal, history_of
from interlock.reservations.store.records import Lease, iso, key_of


@dataclass(frozen=True, slots=True)
class Difference:
    """A lease that the store and the journal record differently."""

    reservation_id: str
    found: str
    expected: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether the leases of the store are those that the journal gives.

    Args:
        verdict: `same`; `differs`; `partial`: they differ, and not all events of the store are in the journals here.
        queued: How many events waited in the store for the journal, which count as if they were in it.
        missing: How many events of the store are in no journal here. Leases that agree are `same` all the same.
    """

    verdict: Literal["same", "differs", "partial"]
    leases: int
    queued: int = 0
    differences: tuple[Difference, ...] = ()
    missing: int = 0


def compare(seen: Seen, entries: Iterable[Entry], now: float) -> Comparison:
    """Compare the leases of a store with the lines of its journals, which are read after it.

    So no event is missed that leaves the queue for a journal; what happened after the store was read does not count. A
    lease that is over in both is over, whether an event says so by now or not.
    """
    every = [*from_journal(entries), *seen.waiting]
    events = [event for event in every if event.store == seen.store and event.number <= seen.events]
    leases = history_of(events).leases
    rebuilt = {held.reservation_id: held for held in leases if held.store == seen.store and held.ended_at is None}
    stored = {lease.reservation_id: lease for lease in seen.leases}
    differences: list[Difference] = []
    for reservation_id in sorted({*rebuilt, *stored}):
        lease, held = stored.get(reservation_id), rebuilt.get(reservation_id)
        over = all(each is None or each.expires_at <= now for each in (lease, held))
        if not over and (lease is None or held is None or not _alike(lease, held)):
            differences.append(Difference(reservation_id, _words(lease), _words(held)))
    missing = seen.events - len({event.number for event in events})
    if differences and missing:
        # What is missing may be why.
        return Comparison("partial", len(stored), len(seen.waiting), missing=missing)
    verdict = "differs" if differences else "same"
    return Comparison(verdict, len(stored), len(seen.waiting), tuple(differences), missing)


def _alike(lease: Lease, held: Held) -> bool:
    """Compare one lease; it may live longer than the journal knows, since a guarded action writes no event."""
    stored = (key_of(lease.agent), lease.pattern, lease.exclusive, lease.claim, lease.token, int(lease.granted_at))
    recorded = (key_of(held.agent), held.pattern, held.exclusive, held.claim, held.token, int(held.since))
    return stored == recorded and lease.expires_at >= held.expires_at


def _words(lease: Lease | Held | None) -> str:
    if lease is None:
        return "no such lease"
    right = "exclusive" if lease.exclusive else "shared"
    return f"{lease.agent}, {lease.pattern}, {right}, token {lease.token}, until {iso(lease.expires_at)}"
