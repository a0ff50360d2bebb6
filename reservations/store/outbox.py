"""From the store into the journal of a checkout: each event once, whatever is killed in between."""

import json
from typing import TYPE_CHECKING, Any, Final

from interlock.reservations.store.records import iso

if TYPE_CHECKING:
    from interlock.journal import Journal
    from interlock.reservations.store.choice import Store

JOURNAL_RUN: Final = "reservations"
"""The run of the journal that the events belong to."""

BATCH: Final = 500
"""At most this many events go into the journal at once."""


def drain_events(store: "Store", root: str, journal: "Journal | None" = None) -> int:
    """Write queued events of a checkout into its journal, take them out of the queue, and return how many.

    The key of a line is `<store id>/<event id>`: a drain that was killed before the queue was emptied is repeated
    without a second line, and two at once write the same lines. Hooks never call this, for the journal is slow to load.
    The default is the journal of the root, which is read from its beginning. Machines that share a store share one
    journal as well: there any of them writes what waits of all.

    Raises:
        JournalError: The journal cannot be written; the events stay queued.
        ReservationError: The store cannot be used.
    """
    if store.is_shared and not _shares_journal(root):
        return 0  # it is for the machines that do
    done = 0
    while True:
        with store.transaction() as tx:
            store_id = tx.store_id()
            events = tx.events(None if store.is_shared else root, BATCH)
        if not events:
            return done
        if journal is None:
            from interlock.journal import journal_of  # noqa: PLC0415 - the hooks are loaded without it

            journal = journal_of(root)
        lines = [
            (f"{store_id}/{event.event_id}", event.type, {**_data(event.data), "at": iso(event.at)}) for event in events
        ]
        journal.extend(JOURNAL_RUN, lines)
        with store.transaction() as tx:
            tx.drop_events(event.event_id for event in events)
        done += len(events)


def _shares_journal(root: str) -> bool:
    from interlock.core.database import address_of  # noqa: PLC0415 - slow to import

    return bool(address_of(root))


def _data(text: str) -> dict[str, Any]:
    """Return the data of an event. Half of a surrogate pair, as in names that are no UTF-8, becomes `?`."""
    data = json.loads(text)
    return json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")) if "\\ud" in text else data
