"""What stores and journals record of the leases of a project: read together, looked up by path, and compared."""

import os.path
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from interlock.reservations import place
from interlock.reservations.answers import iso
from interlock.reservations.git import checkouts
from interlock.reservations.patterns import Pattern, canonical
from interlock.reservations.patterns.prefix_index import Near
from interlock.reservations.rules import shown
from interlock.reservations.store.history import (
    Held,
    History,
    HistoryUnreadableError,
    RecordedEvent,
    from_journal,
    from_queue,
    history_of,
)
from interlock.reservations.store.records import Event, Lease, key_of
from interlock.reservations.store.sqlite import SqliteStore, to_read

if TYPE_CHECKING:
    from interlock.journal import Entry

ALL: Final = 10_000_000
"""At most this many queued events are read."""

LOOKS: Final = 5
"""How often a comparison starts again because somebody wrote meanwhile."""


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
        verdict: `same`; `differs`; `partial`: they differ, and not all events of the store are in the journals here;
            `busy`: others wrote all the time.
        queued: How many events waited in the store for the journal, which count as if they were in it.
        missing: How many events of the store are in no journal here. Leases that agree are `same` all the same.
    """

    verdict: Literal["same", "differs", "partial", "busy"]
    leases: int
    queued: int = 0
    differences: tuple[Difference, ...] = ()
    missing: int = 0


def compare_here(start: str) -> Comparison | None:
    """Compare the leases of the project around a folder with its journals; None where nothing was ever reserved.

    Raises:
        JournalDamaged: A journal is not what was written to it.
        ReservationError: Git, the journal or the store cannot be read.
    """
    found = place.find(start)
    if not os.path.exists(found.store_path):
        return None
    roots = checkouts.roots_of(found)
    with to_read(found.store_path) as path, closing(SqliteStore(path)) as store:
        return compare(store, roots, lambda: checkouts.read_journals(checkouts.journals_of(roots)), time.time())


def compare(store: SqliteStore, roots: Iterable[str], read: Callable[[], Iterable["Entry"]], now: float) -> Comparison:
    """Compare the leases of a store with the journals of its checkouts, whose current lines `read` returns.

    Nothing is written. When somebody else writes meanwhile, it looks again, a few times. A lease that is over in both
    is over, whether an event says so by now or not.
    """
    wanted = list(roots)
    leases = 0
    for _ in range(LOOKS):
        stamp = store.stamp()
        seen = look(store, wanted)
        events = [*from_journal(read()), *from_queue(seen.store, seen.queue)]
        if store.stamp() == stamp:
            return _compared(seen, events, now)
        leases = len(seen.leases)
    return Comparison("busy", leases)


@dataclass(frozen=True, slots=True)
class Seen:
    """A store at one moment: its leases, what waits for the journal, and how many events it ever had."""

    store: str
    leases: list[Lease]
    queue: list[Event]
    events: int


def look(store: SqliteStore, roots: Iterable[str]) -> Seen:
    """Read a store at one moment, with what waits for the journals of some checkouts, and leave it as it was."""
    with store.transaction() as tx:
        queue = [event for root in roots for event in tx.events(root, ALL)]
        return Seen(tx.store_id(), tx.leases(), queue, tx.event_count())


def _compared(seen: Seen, events: list[RecordedEvent], now: float) -> Comparison:
    rebuilt = history_of(events).open_leases(seen.store)
    stored = {lease.reservation_id: lease for lease in seen.leases}
    differences: list[Difference] = []
    for reservation_id in sorted({*rebuilt, *stored}):
        lease, held = stored.get(reservation_id), rebuilt.get(reservation_id)
        over = all(each is None or each.expires_at <= now for each in (lease, held))
        if not over and (lease is None or held is None or not _alike(lease, held)):
            differences.append(Difference(reservation_id, _words(lease), _words(held)))
    known = {event.number for event in events if event.store == seen.store}
    missing = max(0, seen.events - len(known))
    if differences and missing:
        # What is missing may be why.
        return Comparison("partial", len(stored), len(seen.queue), missing=missing)
    verdict = "differs" if differences else "same"
    return Comparison(verdict, len(stored), len(seen.queue), tuple(differences), missing)


def _alike(lease: Lease, held: Held) -> bool:
    """Compare one lease; it may live longer than the journal knows, since a guarded action writes no event."""
    same = (key_of(lease.agent), lease.pattern, lease.exclusive, lease.claim, lease.token, int(lease.granted_at)) == (
        key_of(held.agent), held.pattern, held.exclusive, held.claim, held.token, int(held.since),
    )  # fmt: skip
    return same and lease.expires_at >= held.expires_at


def _words(lease: Lease | Held | None) -> str:
    if lease is None:
        return "no such lease"
    right = "exclusive" if lease.exclusive else "shared"
    return f"{lease.agent}, {lease.pattern}, {right}, token {lease.token}, until {iso(lease.expires_at)}"


def leases_by_path(history: History) -> Near[Held]:
    """Return the leases of a history, to be found by the paths that they ever covered.

    A pattern that cannot be read raises `HistoryUnreadableError`.
    """
    return Near((held.pattern, _pattern(held).prefix, held) for held in history.leases)


def read_history(store_path: str, roots: Sequence[str], journals: Sequence[str]) -> History:
    """Read the journals, what still waits in the store, if it is there, and how many events that ever had."""
    waiting: list[RecordedEvent] = []
    counts: dict[str, int] = {}
    if os.path.exists(store_path):
        with to_read(store_path) as path, closing(SqliteStore(path)) as store:
            # Before the journals: an event leaves the queue when it is in a journal.
            seen = look(store, roots)
            waiting, counts = list(from_queue(seen.store, seen.queue)), {seen.store: seen.events}
    return history_of([*waiting, *from_journal(checkouts.read_journals(journals))], counts)


def _pattern(held: Held) -> Pattern:
    found = canonical(held.pattern)
    if isinstance(found, Pattern):
        return found
    raise HistoryUnreadableError(
        f"the lease {held.reservation_id} in the journal has the pattern {shown(held.pattern)}: {found.message}",
        "Upgrade interlock if a newer version wrote it; else restore the journal from a copy.",
    )
