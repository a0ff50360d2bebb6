"""What stores and journals record of the leases of a project: read together, and looked up by path."""

import os.path
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from interlock.core.patterns import Pattern, canonical
from interlock.reservations import place
from interlock.reservations.errors import StoreError
from interlock.reservations.git import checkouts
from interlock.reservations.git.near import Near
from interlock.reservations.rules import shown
from interlock.reservations.store.choice import store_at
from interlock.reservations.store.history import (
    Held,
    History,
    RecordedEvent,
    from_journal,
    from_queue,
    history_of,
)
from interlock.reservations.store.outbox import JOURNAL_RUN
from interlock.reservations.store.records import Lease
from interlock.reservations.store.sqlite import SqliteStore, to_read

if TYPE_CHECKING:
    from interlock.reservations.store.choice import Store

ALL: Final = 10_000_000
"""At most this many queued events are read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A store at one moment: its leases, the events that wait for the journal, and how many events it ever had."""

    store: str
    leases: list[Lease]
    waiting: list[RecordedEvent]
    events: int


def look(store: "Store", roots: Iterable[str]) -> Seen:
    """Read a store at one moment, with what waits for the journals of some checkouts, and leave it as it was.

    Machines that share a store share one journal, for which all of it waits.
    """
    with store.transaction() as tx:
        name = tx.store_id()
        queues = [tx.events(root, ALL) for root in ([None] if store.is_shared else roots)]
        waiting = [event for queue in queues for event in from_queue(name, queue)]
        return Seen(name, tx.leases(), waiting, tx.event_count())


def _look_at(found: place.Place, roots: Iterable[str]) -> Seen | None:
    """Do the same with the store of a project, which may not be there, or which nobody may write."""
    if place.has_database(found):
        return look(store_at(found), roots)
    if not os.path.exists(found.store_path):
        return None
    with to_read(found.store_path) as path, closing(SqliteStore(path)) as store:
        return look(store, roots)


def leases_by_path(history: History) -> Near[Held]:
    """Return the leases of a history, to be found by the paths that they ever covered."""
    return Near((held.pattern, _prefix(held), held) for held in history.leases)


def read_history(found: place.Place, more: Sequence[str] = ()) -> tuple[History, list[str]]:
    """Read what a project records of leases, and return it with the journals that were read, `more` among them.

    What still waits in the store counts too, if that is there, and how many events it ever had.
    """
    roots = checkouts.roots_of(found)
    journals = checkouts.journals_of(roots, more)
    # The store goes first: an event leaves the queue when it is in a journal.
    seen = _look_at(found, roots)
    waiting, counts = ([], {}) if seen is None else (seen.waiting, {seen.store: seen.events})
    lines = chain.from_iterable(journal.entries(JOURNAL_RUN) for journal in journals)
    return history_of([*waiting, *from_journal(lines)], counts), [str(journal.path) for journal in journals]


def _prefix(held: Held) -> str:
    found = canonical(held.pattern)
    if isinstance(found, Pattern):
        return found.prefix
    raise StoreError(
        f"the lease {held.reservation_id} in the journal has the pattern {shown(held.pattern)}: {found.message}",
        "Upgrade interlock if a newer version wrote it; else restore the journal from a copy.",
    )
