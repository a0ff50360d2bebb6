"""The reservations of one machine, copied into the database that several share."""
# ruff: noqa: S608 - names of tables and columns come from the tables themselves, values are always bound

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interlock.reservations import place
from interlock.reservations.store.postgres import value_of
from interlock.reservations.store.sqlite import to_read

if TYPE_CHECKING:
    from interlock.core.database import Database, Link

_TABLES: Final = ("process", "agent", "lease", "waiter", "message", "negotiation", "mark", "event")
_COUNTERS: Final = (
    "SELECT name, value FROM counter UNION ALL SELECT name, seq FROM sqlite_sequence "
    "UNION ALL SELECT 'negotiation', coalesce(max(number), 0) FROM negotiation"
)


def copy_rows(top: Path, database: "Database") -> int:
    """Copy agents, leases, messages and all else of a project's store, and return how many rows there are of it.

    A database that has agents already keeps what it has. The store's own name goes along, since journal lines have it.

    Raises:
        DatabaseError: The database cannot be written; nothing was copied.
    """
    path = place.at(os.fspath(top)).store_path
    if not os.path.exists(path):
        return 0
    with to_read(path) as readable, closing(sqlite3.connect(readable)) as store:
        store.row_factory = sqlite3.Row
        found = {table: [dict(row) for row in store.execute(f"SELECT * FROM {table}")] for table in _TABLES}
        counters = [tuple(row) for row in store.execute(_COUNTERS)]
        name = store.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()[0]

    def work(link: "Link") -> int:
        if link.execute("SELECT 1 FROM interlock.agent LIMIT 1").fetchone() is not None:
            return 0
        for table, rows in found.items():
            for row in rows:
                statement = f"INSERT INTO interlock.{table} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})"
                link.execute(statement.encode(), [*map(value_of, row.values())])
        for counter, value in counters:
            link.execute("INSERT INTO interlock.counter VALUES (%s, %s) ON CONFLICT DO NOTHING", (counter, value))
        link.execute("UPDATE interlock.store SET store_id = %s", (name,))
        return sum(map(len, found.values()))

    return database.transact(work, lock="reservations")
