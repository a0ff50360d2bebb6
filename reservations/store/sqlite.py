"""The store in one SQLite file: made at its first use, opened late, shared by every process of the machine.

At the path `:memory:` it is not a file, and lasts as long as its object.
"""

import os
import sqlite3
import stat
import time
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from interlock.reservations.errors import StoreError
from interlock.reservations.store.sqlite_rows import STORE_FORMAT, TABLES, Rows, Transaction

IN_MEMORY: Final = ":memory:"
_BESIDE: Final = ("", "-journal")

PATIENCE_SECONDS: Final = 15.0
"""How long a transaction waits for its turn."""

RowsT = TypeVar("RowsT", bound=Rows)

_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.004

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT}
_UNWRITTEN: Final = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOLFS,
}
_WRITABLE: Final = (
    "make the file and its folder writable for this user, or free some disk space, then call again; nothing that was "
    "acknowledged is lost"
)
_FIX: Final = "move the file away to start with an empty store; the leases and messages in it are lost"


class _Link:
    """One connection, opened at its first use and used by one thread at a time."""

    def __init__(self, path: str, patience: float, *, is_durable: bool = True) -> None:
        self.path, self._is_durable = path, is_durable
        self.opened = 0
        self._patience = patience
        self._lock = allocate_lock()
        self._owner = 0
        self._deadline = 0.0
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)

    @contextmanager
    def taken(self) -> Generator["_Link"]:
        """Take the turn among the threads of this process; errors of SQLite leave as errors of the store."""
        if self._owner == get_ident():
            raise RuntimeError("a transaction is open in this thread")
        deadline = time.monotonic() + self._patience
        if not self._lock.acquire(timeout=self._patience):
            message = f"{self.path}: another thread of this process held it for {self._patience:g} s"
            raise StoreError(message, "call again", "RSV901")
        self._owner, self._deadline = get_ident(), deadline
        try:
            yield self
        except sqlite3.Error as error:
            # A connection that has failed is not used again; giving it back rolls back what it had begun.
            if self.path != IN_MEMORY:
                self.close()
            raise _translated(error, self.path) from error
        finally:
            self._owner = 0
            self._lock.release()

    def current(self) -> sqlite3.Connection:
        """Return a connection to the file that is at the path now; somebody may have removed the one that was open."""
        if self._connection is not None and _identity(self.path) != self._file:
            self.close()
        return self._connection or self._open()

    def begin(self) -> sqlite3.Connection:
        """Begin the transaction that may write, when the turn comes."""
        while True:
            connection = self.current()
            self.run(connection, "BEGIN IMMEDIATE")
            if _identity(self.path) == self._file:
                return connection
            self.close()

    def run(self, connection: sqlite3.Connection, statement: str) -> object:
        """Run a statement outside a transaction when the turn comes, and return the first value of its answer.

        SQLite itself would sleep up to 100 ms between two tries: beside a busy writer it may never meet a gap.
        """
        connection.execute("PRAGMA busy_timeout = 0")
        pause = _FIRST_PAUSE
        while True:
            try:
                row = connection.execute(statement).fetchone()
                break
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() >= self._deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        # Inside a transaction only a reader may be in the way, and only for microseconds.
        connection.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000)}")
        return row and row[0]

    def close(self) -> None:
        """Give back the connection; what it has begun and not committed is undone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if self.path != IN_MEMORY:
            _make(self.path)
        self._file = _identity(self.path)
        # `mode=rw`: were the file removed just now, SQLite must not make one with rights of its own.
        quoted = self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        name = IN_MEMORY if self.path == IN_MEMORY else f"file:{quoted}?mode=rw"
        connection = sqlite3.connect(
            name, timeout=self._patience, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            # A rollback journal: before SQLite 3.51.3 two writers of a write-ahead log could damage the file. Its file
            # stays, since making and deleting one for each transaction writes to the folder twice.
            self.run(connection, "PRAGMA journal_mode = PERSIST")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._is_durable else 'OFF'}")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self.opened += 1
        return connection


class SqliteFile(Generic[RowsT]):
    """Keeps rows in a file. Threads may share a store; a process that forks opens one of its own in the child.

    The folder and the file, never a symbolic link, are made at the first use, for this user only.

    Args:
        tables: The statements that make the tables, divided by `;`.
        version: The number of these tables; a file with others is refused, and nothing in it is touched.
        is_durable: What has ended is on the disk. Otherwise it survives killed processes, and no failure of power.
    """

    def __init__(
        self,
        path: str,
        tables: str,
        version: int,
        rows: Callable[[sqlite3.Connection], RowsT],
        patience_seconds: float = PATIENCE_SECONDS,
        *,
        is_durable: bool = True,
    ) -> None:
        self._tables, self._version, self._rows = tables, version, rows
        self.path = path if path == IN_MEMORY else os.path.abspath(path)
        self._writer = _Link(self.path, patience_seconds, is_durable=is_durable)
        self._written = 0
        self._watcher = _Link(self.path, patience_seconds)

    @contextmanager
    def transaction(self) -> Generator[RowsT]:
        """Open the one transaction that may read and write now.

        Raises:
            StoreError: The turn did not come in time (RSV901), the file is damaged or was written by another version
                (RSV902), or it cannot be made or written (RSV903).
            RuntimeError: A transaction of this store is open in this thread.
        """
        with self._writer.taken() as link:
            connection = link.begin()
            rows = self._rows(connection)
            changes = connection.total_changes
            try:
                self._make_tables(connection)
                yield rows
                connection.execute("COMMIT")
                self._written += connection.total_changes - changes
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                rows.end()

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make the tables of an empty file, in the transaction that uses them first."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == self._version:
            return
        if version > 0:
            raise StoreError(
                f"{self.path}: written by another version of interlock (tables {version}, known {self._version})",
                "have a person end what runs with the other version, and move the file away; the version that wrote it "
                "reads the moved file",
            )
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StoreError(f"{self.path}: a database of another program", _FIX)
        for statement in self._tables.strip().removesuffix(";").split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {self._version}")

    def stamp(self) -> object:
        """Return a value that changes when a transaction has written, in this process or another."""
        if self.path == IN_MEMORY:
            return self._written
        # A connection of its own: to it our own writes are those of another.
        with self._watcher.taken() as link:
            return link.run(link.current(), "PRAGMA data_version"), link.opened

    def close(self) -> None:
        """Give back connections; the next use opens them again."""
        for link in () if self.path == IN_MEMORY else (self._writer, self._watcher):
            with link.taken():
                link.close()


class SqliteStore(SqliteFile[Transaction]):
    """The reservations of a project."""

    is_shared: Final = False
    """Whether other machines use it too."""

    def __init__(self, path: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        super().__init__(path, TABLES, STORE_FORMAT, Transaction, patience_seconds)


def _identity(path: str) -> tuple[int, int]:
    """Return the identity of the file at a path; zeros when there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _make(path: str) -> None:
    """Make the empty file unless it is there."""
    try:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            # Never opened when it is there: closing a second descriptor would drop the locks of our own connections.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            return
    except FileExistsError:
        return
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}", _WRITABLE, "RSV903") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
        raise StoreError(f"{path}: it is {kind}", "remove it; the store makes its file itself", "RSV903")


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; -1 for an error of the binding itself."""
    found: int | None = getattr(error, "sqlite_errorcode", None)
    return -1 if found is None else found & 0xFF


def _translated(error: sqlite3.Error, path: str) -> Exception:
    """Return the error of the store for one of SQLite; a mistake in our own statements stays what it is."""
    code = _code(error)
    if code in _BUSY:
        return StoreError(
            f"{path}: {error}: another process holds it", "call again; if it lasts, end that process", "RSV901"
        )
    if code in _DAMAGED:
        return StoreError(f"{path}: {error}", _FIX)
    if code in _UNWRITTEN:
        return StoreError(f"{path}: {error}", _WRITABLE, "RSV903")
    return error


def is_writable(path: str) -> bool:
    """Return whether a file and its folder can be written; on a read-only disk they cannot, by nobody."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)


@contextmanager
def to_read(path: str) -> Generator[str]:
    """Yield a path at which an SQLite file can be opened: its own, or that of a copy where it cannot be written.

    The copy is gone afterwards. It has the file's journal beside it, so that what was cut off is rolled back there.
    """
    if is_writable(path):
        yield path
        return
    import shutil  # noqa: PLC0415 - few stores cannot be written
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        for suffix in _BESIDE:
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, copy + suffix)
        yield copy
