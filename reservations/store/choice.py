"""Which store a project has: the database that its machines share, or else a file of this machine alone."""

import os
from typing import TYPE_CHECKING, TypeAlias

from interlock.reservations import place
from interlock.reservations.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from interlock.reservations.store.postgres import PostgresStore
    from interlock.reservations.store.records import Lease
    from interlock.reservations.store.sqlite_rows import Transaction

    Store: TypeAlias = SqliteStore | PostgresStore


def store_at(found: place.Place) -> "Store":
    """Return the store of a project; nothing is opened yet.

    Raises:
        DatabaseError: The project names a database by no address of PostgreSQL, or with a password in it.
    """
    if not place.has_database(found):
        return SqliteStore(found.store_path)
    from interlock.core.database import database_of  # noqa: PLC0415 - slow to import, and most projects have none
    from interlock.reservations.store.postgres import PostgresStore  # noqa: PLC0415

    database = database_of(place.main_root(found.root))
    assert database is not None, found
    return PostgresStore(database, found.store_path)


def leases_here(store: "Store", tx: "Transaction") -> "list[Lease]":
    """Return the leases whose holders work on this machine.

    What an agent of another machine holds, it edits in a clone there: in this one no command takes anything from it,
    and what a pull brings of it is nothing to undo.
    """
    return tx.leases_on(os.uname().nodename) if store.is_shared else tx.leases()
