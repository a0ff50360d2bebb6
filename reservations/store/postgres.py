"""The store in PostgreSQL, for a project of several machines: the statements and rows of `sqlite_rows`, as they are.

Theory of operation. One transaction at a time may read and write, on whatever machine: it first takes a lock that
PostgreSQL gives back when the transaction ends, in whatever way. That is a statement of its own, since one that also
reads would see the rows of before it waited. So every call keeps the promises that it has with SQLite, where the file
is locked, and rows need no locks of their own.

What differs, and why:

1. Who holds the lock and falls silent (frozen, or cut off from the network) is thrown out by the server after
   `HELD_SECONDS`; what it had begun is undone, and what it still sends is refused. Answers T1.
2. Leases end by the clocks of the machines. One whose clock is off by more than `SKEW_SECONDS` is refused, since it
   would end the leases of the others early. Answers T1.
3. Numbers come from rows of `counter`, and not from sequences: what is undone leaves no gap in the events, which
   `history` would take for a line that somebody removed.
4. Text is compared by its bytes (`COLLATE "C"`), as in SQLite; without that no index finds what begins with a prefix.
   A zero byte, which text cannot have in PostgreSQL, becomes U+2400.
"""

import re
import time
from _thread import get_ident
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

from interlock.core.database import HELD_SECONDS, DatabaseError, LegLost
from interlock.reservations.errors import StoreError
from interlock.reservations.store import sqlite_rows
from interlock.reservations.store.sqlite import PATIENCE_SECONDS
from interlock.reservations.store.sqlite_rows import Transaction

if TYPE_CHECKING:
    from psycopg import Cursor

    from interlock.core.database import Database, Link

SKEW_SECONDS: Final = 5.0
"""How far the clock of a machine may be off."""

_NUMBERS: Final = """
CREATE TABLE counter (name TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL);
CREATE FUNCTION next_number(which TEXT) RETURNS BIGINT LANGUAGE sql AS $$
    INSERT INTO interlock.counter VALUES (which, 1)
    ON CONFLICT (name) DO UPDATE SET value = counter.value + 1 RETURNING value
$$;
CREATE TABLE store (store_id TEXT NOT NULL);
INSERT INTO store VALUES (substr(md5(gen_random_uuid()::text), 1, 16));
"""


def _tables() -> LiteralString:
    """Return the tables of `sqlite_rows` as PostgreSQL has them."""
    text = re.sub(r"(CREATE TABLE|INSERT INTO) (meta|counter) .*;\n", "", sqlite_rows.TABLES)
    number = r"(CREATE TABLE (\w+) \(\s*\w+) INTEGER PRIMARY KEY(?: AUTOINCREMENT)?"
    text = re.sub(number, r"\1 BIGINT PRIMARY KEY DEFAULT next_number('\2')", text)
    for ours, theirs in (("TEXT", 'TEXT COLLATE "C"'), ("INTEGER", "BIGINT"), ("REAL", "DOUBLE PRECISION")):
        text = re.sub(rf"\b{ours}\b", theirs, text)
    return cast("LiteralString", _NUMBERS + text)


TABLES: Final = _tables()
"""The statements that make the tables, in the first schema of the search path, which is `interlock`."""

_OWN: Final = {
    sqlite_rows.STORE_ID: "SELECT store_id FROM store",
    sqlite_rows.EVENT_COUNT: "SELECT value FROM counter WHERE name = 'event'",
}
"""What only SQLite knows to what is asked here."""
_BEGIN: Final = """
SELECT set_config('search_path', 'interlock', true), set_config('lock_timeout', %s, true),
    pg_advisory_xact_lock(hashtextextended('interlock reservations', 0)),
    extract(epoch FROM clock_timestamp())::float8 AS now
"""
_WROTE: Final = "SELECT next_number('stamp')"
_STAMP: Final = "SELECT value FROM interlock.counter WHERE name = 'stamp'"


class PostgresStore:
    """The reservations of a project, for all its machines. Threads may share it.

    Args:
        path: Where a store of this machine alone would be: by this the versions of held files know the project.
        patience_seconds: How long a transaction waits for its turn.
    """

    is_shared: Final = True

    def __init__(self, database: "Database", path: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.path = path
        self._database, self._patience = database, patience_seconds
        self._inside: set[int] = set()

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Open the one transaction that may read and write now.

        Raises:
            StoreError: The turn did not come in time, or was lost (RSV901), the tables are of another version (RSV902),
                or the database cannot be reached or written (RSV903).
            LegLost: This process drives a leg that has its run no more.
            RuntimeError: A transaction of this store is open in this thread.
        """
        import psycopg  # noqa: PLC0415

        me = get_ident()
        if me in self._inside:
            raise RuntimeError("a transaction is open in this thread")
        self._inside.add(me)
        try:
            with _errors(), ExitStack() as stack:
                # A connection that was lost meanwhile is made again.
                link = self._database.persistently(lambda: stack.enter_context(self._database.transaction()))
                try:
                    self._take_turn(link)
                    connection = _Connection(link)
                    rows = Transaction(cast("Any", connection))
                    stack.callback(rows.end)
                    yield rows
                    if connection.has_written:
                        link.execute(_WROTE)
                except psycopg.errors.LockNotAvailable as error:
                    message = f"others held the reservations for {self._patience:g} s"
                    raise StoreError(message, "Call again.", "RSV901") from error
                except psycopg.errors.IdleInTransactionSessionTimeout as error:
                    message = f"this process did nothing for {HELD_SECONDS} s while all others waited for it"
                    raise StoreError(message, "Call again: nothing was written.", "RSV901") from error
        finally:
            self._inside.remove(me)

    def _take_turn(self, link: "Link") -> None:
        before = time.time()
        row = link.execute(_BEGIN, [f"{round(self._patience * 1000)}ms"]).fetchone()
        assert row is not None
        off = max(before - row["now"], row["now"] - time.time())
        if off > SKEW_SECONDS:
            message = f"the clock of this machine is {off:.0f} s off that of the database: leases would end early"
            raise StoreError(message, "Set it by NTP (timedatectl set-ntp true), then call again.", "RSV903")

    def stamp(self) -> object:
        """Return a value that changes when a transaction has written, on whatever machine."""
        with _errors():
            return self._database.read(lambda link: link.execute(_STAMP).fetchone())

    def close(self) -> None:
        """Do nothing: connections are those of the process, and end when nobody uses them for some seconds."""


@contextmanager
def _errors() -> Generator[None]:
    """Let errors of the database leave as errors of the store."""
    try:
        yield
    except LegLost:
        raise
    except DatabaseError as error:
        code = "RSV902" if error.code in ("DBA904", "DBA905") else "RSV903"
        raise StoreError(error.message, error.fix, code) from error


class _Connection:
    """What `Rows` needs of a connection of SQLite, over one of psycopg."""

    def __init__(self, link: "Link") -> None:
        self._link = link
        self.has_written = False

    def execute(self, statement: str, values: Sequence[object] = ()) -> "Cursor[tuple[Any, ...]]":
        from psycopg.rows import tuple_row  # noqa: PLC0415

        given = {str(number): value_of(value) for number, value in enumerate(values, 1)}
        cursor = self._link.cursor(row_factory=tuple_row).execute(_translated(statement), given or None)
        self.has_written |= cursor.description is None and cursor.rowcount > 0
        return cursor


@cache
def _translated(statement: str) -> LiteralString:
    """Return a statement with psycopg's marks for values, all of them by number: SQLite has `?`, or `?1`, `?2`."""
    numbers = iter(range(1, statement.count("?") + 1))
    text = re.sub(r"\?(\d*)", lambda mark: f"%({mark[1] or next(numbers)})s", _OWN.get(statement, statement))
    return cast("LiteralString", text)


def value_of(value: object) -> object:
    """Return what PostgreSQL keeps for a value of SQLite."""
    if isinstance(value, str):
        return value.replace("\0", "\u2400")
    return int(value) if isinstance(value, bool) else value
