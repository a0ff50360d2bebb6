"""What is known of the leases of a project: read from its store and its journals, and looked up by path."""

import os
from collections.abc import Sequence
from contextlib import closing

from interlock.reservations.git import checkouts
from interlock.reservations.git.journal_check import look
from interlock.reservations.patterns import Pattern, canonical
from interlock.reservations.patterns.prefix_index import Near
from interlock.reservations.rules import shown
from interlock.reservations.store.history import (
    Happened,
    Held,
    History,
    HistoryUnreadableError,
    from_journal,
    from_queue,
    history_of,
)
from interlock.reservations.store.readonly import to_read


def leases_by_path(history: History) -> Near[Held]:
    """Return the leases of a history, to be found by the paths that they ever covered.

    Raises:
        HistoryUnreadableError: A lease has a pattern that cannot be read.
    """
    return Near((held.pattern, _pattern(held).prefix, held) for held in history.leases)


def read_history(store_path: str, roots: Sequence[str], journals: Sequence[str]) -> History:
    """Read what the journals tell, what still waits in the store, and how many events that ever had.

    Args:
        store_path: The store; it need not be there.
    """
    waiting: list[Happened] = []
    counts: dict[str, int] = {}
    if os.path.exists(store_path):
        from interlock.reservations.store.sqlite import SqliteStore  # noqa: PLC0415 - where no store is, none is needed

        with to_read(store_path) as path, closing(SqliteStore(path)) as store:
            # Before the journals: an event leaves the queue when it stands there.
            seen = look(store, roots)
            waiting, counts = list(from_queue(seen.store, seen.queue)), {seen.store: seen.events}
    return history_of([*waiting, *from_journal(checkouts.told(journals))], counts)


def _pattern(held: Held) -> Pattern:
    found = canonical(held.pattern)
    if isinstance(found, Pattern):
        return found
    raise HistoryUnreadableError(
        f"the lease {held.reservation_id} in the journal has the pattern {shown(held.pattern)}: {found.message}",
        "Upgrade interlock if a newer version wrote it; else restore the journal from a copy.",
    )
