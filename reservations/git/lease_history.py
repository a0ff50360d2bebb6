"""What is known of the leases of a project: read from its store and its journals, and looked up by path."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from interlock.reservations.git import checkouts
from interlock.reservations.git.journal_check import look
from interlock.reservations.patterns import FOLD_CASE, Pattern, canonical, matches
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


class LeasesByPath:
    """The leases of a history, to be found by the paths that they cover."""

    def __init__(self, history: History) -> None:
        self._rows = [(_pattern(held), held) for held in history.leases]
        self._wide = [(pattern, held) for pattern, held in self._rows if not pattern.literal]
        self._literal: dict[str, list[Held]] = {}
        for pattern, held in self._rows:
            if pattern.literal:
                self._literal.setdefault(pattern.path, []).append(held)

    def covering(self, paths: Iterable[str]) -> Iterator[tuple[str, Held]]:
        """Yield each path with each lease that ever covered it."""
        for path in paths:
            # Most names are spelled in one way only: a look into a table in place of one at each lease.
            plain = path.isascii() and not FOLD_CASE
            near = [row for row in self._wide if path.startswith(row[0].prefix)] if plain else self._rows
            yield from ((path, held) for held in self._literal.get(path, []) if plain)
            yield from ((path, held) for pattern, held in near if matches(pattern, path))


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
