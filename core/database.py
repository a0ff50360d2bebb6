"""The database that several machines share: its address, transactions on it, and what is wrong with it.

Answers T1. A process that drives a run for a worker is named its leg by `INTERLOCK_LEG`. From then on each of its
transactions first asks whether this leg still has the run, and holds that answer until it commits: a worker that was
frozen and taken over writes nothing any more. See docs/history/019.

The server ends a transaction whose process says nothing for `HELD_SECONDS`, so that one that is frozen keeps neither
the run nor a lock from the others.

Work that is cut off by the server is done again, from its first statement, until `patience` is over. So whoever calls
`transact` gives work that may be repeated: rows that are there already stay as they are. A commit whose answer got lost
is repeated as well.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from interlock.core.errors import Exit, InterlockError
from interlock.core.rule import rules

if TYPE_CHECKING:
    from psycopg import Connection

Link: TypeAlias = "Connection[dict[str, Any]]"
T = TypeVar("T")

ADDRESS: Final = "INTERLOCK_DATABASE"
"""The variable that names the database; empty for none, whatever `interlock.toml` says."""
LEG: Final = "INTERLOCK_LEG"
"""The variable that names the leg that this process drives, as JSON of `Leg`."""

VERSION: Final = 1
"""The number of the newest migration that this version knows."""
OLDEST_SERVER: Final = 13
"""The oldest PostgreSQL on which the tables of DBOS can be made: they need `gen_random_uuid`."""

PATIENCE_SECONDS: Final = 5.0
LEG_PATIENCE_SECONDS: Final = 120.0
"""How long a lost connection is tried again: by a command, and by a process in the middle of a run."""
_PAUSE_SECONDS: Final = 0.25
HELD_SECONDS: Final = 5
"""How long a process may say nothing in the middle of a transaction."""
_HELD: Final = "SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL search_path = interlock, public"
"""Not left to the settings of the database, which a copy or a restored dump of it does not have."""
_KEPT_SECONDS: Final = 5.0
"""How long a connection that nobody uses is kept: a run that waits for a model holds none."""
_MOST_CONNECTIONS: Final = 4
"""How many threads of a process use the database at once; others wait."""

CODES: Final = rules(
    {
        "DBA902": (
            "The address of the database is one of PostgreSQL, without a password in it.",
            "Write postgresql://USER@HOST:PORT/DATABASE; a password belongs where libpq looks, such as ~/.pgpass.",
        ),
        "DBA903": (
            f"The server is PostgreSQL {OLDEST_SERVER} or newer.",
            "Move the database to a newer server with pg_dump and pg_restore.",
        ),
        "DBA904": (
            "The database has the tables of Interlock.",
            "Run `interlock database setup` as a role that may make tables.",
        ),
        "DBA905": (
            "The tables have a version that this Interlock knows.",
            "Run `interlock database setup` where they are older, while workers go on; else upgrade Interlock here.",
        ),
        "DBA906": (
            "The role may read and write the tables, and the server takes writes.",
            "As the owner: GRANT interlock_worker (_server, _reader) TO it; of a replica, name the primary server.",
        ),
        "DBA907": (
            "The database is encoded in UTF8, so that it keeps every text.",
            "Make one with `createdb --encoding=UTF8 --template=template0 NAME`, and name it.",
        ),
    }
)
"""What must hold and what to do, for each code that is no class of errors."""


class DatabaseError(InterlockError):
    """The database that `database` in interlock.toml or `INTERLOCK_DATABASE` names cannot be used.

    Fix: Do what the message says; nothing was lost.
    """

    code = "DBA901"
    exit_code = Exit.SYSTEM

    @classmethod
    def of(cls, code: str, message: str) -> "DatabaseError":
        """Return the error with a code of `CODES`, and the remedy that the code has."""
        return cls(message, CODES[code].remedy, code)


class LegLost(DatabaseError):  # noqa: N818 - users see the name, as `kind` of an error
    """Another worker drives the run by now; this process has written nothing since.

    Fix: Nothing: the run goes on there. `interlock workers` shows where.
    """

    code = "DBA908"


class Leg(NamedTuple):
    """One execution of one leg: the run, the id of the workflow, and the token by which DBOS knows the execution.

    `remote` is the repository that carries the files of the run.
    """

    run: str
    workflow: str
    token: str
    remote: str = ""

    def environment(self) -> dict[str, str]:
        """Return the variable that names this leg to a process."""
        return {LEG: json.dumps(self)}


def this_leg() -> Leg | None:
    """Return the leg that this process drives, or None in every other process."""
    named = os.environ.get(LEG)
    return Leg(*json.loads(named)) if named else None


_DRIVEN: Final[ContextVar[Leg | None]] = ContextVar("driven", default=None)


@contextmanager
def driving(leg: Leg) -> "Generator[None]":
    """Have each transaction of this thread ask first whether the leg still has its run."""
    before = _DRIVEN.set(leg)
    try:
        yield
    finally:
        _DRIVEN.reset(before)


def address_of(root: str | Path) -> str:
    """Return the address of the project's database; empty where there is none.

    Raises:
        DatabaseError: `DBA902` it is no address of PostgreSQL, or has a password in it.
    """
    address = os.environ.get(ADDRESS)
    where = ADDRESS
    if address is None:
        address, where = _configured(Path(root)), "`database` in interlock.toml"
    if address:
        check_address(address, where)
    return address


@cache
def _configured(root: Path) -> str:
    # Read once: what an agent writes there while a process works changes nothing for it. The whole file is checked
    # elsewhere; whoever asks for the address may be a hook, which has no time for that.
    try:
        text = (root / "interlock.toml").read_bytes()
    except OSError:
        return ""
    if b"database" not in text:
        return ""
    import tomllib  # noqa: PLC0415 - most projects have no database

    try:
        found = tomllib.loads(text.decode()).get("database", "")
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""


def check_address(address: str, where: str) -> None:
    """Refuse an address of something else, and one with a password; `where` says where it is written.

    Raises:
        DatabaseError: `DBA902`.
    """
    from urllib.parse import parse_qs, urlsplit  # noqa: PLC0415 - most projects have no database

    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("postgresql", "postgres"):
        raise DatabaseError.of("DBA902", f"{where} is no address of PostgreSQL")
    if parts.password is not None or {"password", "sslpassword"} & {*parse_qs(parts.query)}:
        raise DatabaseError.of("DBA902", f"{where} has a password in it, which would be seen wherever the address is")


def database(address: str) -> "Database":
    """Return the database at an address; a process has one of each, and so has one that was forked."""
    return _of_process(address, os.getpid())


@cache
def _of_process(address: str, process: int) -> "Database":  # noqa: ARG001 - the key
    return Database(address)


def database_of(root: str | Path) -> "Database | None":
    """Return the database of a project, or None where it has none."""
    address = address_of(root)
    return database(address) if address else None


class Database:
    """A database of one project. Threads share it; a process that was forked makes one of its own.

    Args:
        address: Where it is, without a password.
        checked: Whether the tables must be there; `interlock database setup` makes them.

    Raises:
        DatabaseError: `DBA901` the extra `postgres` is not installed.
    """

    def __init__(self, address: str, *, checked: bool = True) -> None:
        self.address = address
        self._connect = _needed()
        self._is_checked = not checked
        self._free = threading.Semaphore(_MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._kept: Link | None = None
        self._used = 0.0
        self._is_watched = False
        self._leg = this_leg()
        self.patience = LEG_PATIENCE_SECONDS if self._leg else PATIENCE_SECONDS

    def transact(self, work: "Callable[[Link], T]", *, lock: str = "") -> T:
        """Do work in a transaction, and return its result when that is committed.

        Args:
            work: What is done; again from its beginning, when the connection is lost before the answer is there.
            lock: Transactions with the same name come one after the other.

        Raises:
            LegLost: This process drives a leg that has its run no more.
            DatabaseError: The database cannot be used.
        """

        def once() -> T:
            with self.transaction(lock=lock) as link:
                return work(link)

        return self.persistently(once)

    def read(self, work: "Callable[[Link], T]") -> T:
        """Read, each statement by itself, and return the result; a leg that has its run no more may read.

        Raises:
            DatabaseError: The database cannot be used.
        """

        def once() -> T:
            with self.connection() as link:
                return work(link)

        return self.persistently(once)

    def persistently(self, act: Callable[[], T]) -> T:
        """Do something, again while the database cannot be reached, until `patience` is over."""
        end = 0.0
        while True:
            try:
                return act()
            except DatabaseError as error:
                # From the first failure on: a process may have been frozen before, or have waited for a lock.
                end = end or time.monotonic() + self.patience
                if error.code != "DBA901" or time.monotonic() >= end:
                    raise
            time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def transaction(self, *, lock: str = "") -> "Generator[Link]":
        """Open a transaction, as `transact` does, but once.

        Raises:
            LegLost, DatabaseError: As `transact`.
        """
        with self.connection() as link, link.transaction():
            link.execute(_HELD)
            if leg := self._leg or _DRIVEN.get():
                check_leg(link, leg)
            if lock:
                # A statement of its own: one that also reads would read what was there before it waited.
                link.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"interlock {lock}",))
            yield link

    # One connection is kept between transactions. A pool of psycopg's would connect in threads of its own, whose errors
    # go to the log, and the caller would learn no more than that it waited in vain.
    @contextmanager
    def connection(self) -> "Generator[Link]":
        """Lend a connection in which each statement is a transaction of its own.

        Raises:
            DatabaseError: The database cannot be used.
        """
        import psycopg  # noqa: PLC0415 - an extra, and slow to import

        try:
            with self._free:
                with self._lock:
                    kept, self._kept = self._kept, None
                link = kept or self._connected()
                try:
                    yield link
                finally:
                    self._keep(link)
        except psycopg.Error as error:
            if (known := translated(error, self.address)) is None:
                raise
            raise known from error

    def close(self) -> None:
        """Close the connection that is kept; the next transaction opens one."""
        with self._lock:
            kept, self._kept = self._kept, None
        if kept:
            kept.close()

    def _connected(self) -> "Link":
        link = self._connect(self.address)
        try:
            if not self._is_checked:
                check_tables(link)
                self._is_checked = True
        except BaseException:
            link.close()
            raise
        return link

    def _keep(self, link: "Link") -> None:
        with self._lock:
            # One that is broken, or was cut off within a transaction, is not idle.
            if self._kept is None and link.info.transaction_status.name == "IDLE":
                self._kept, self._used = link, time.monotonic()
                if not self._is_watched:
                    self._is_watched = True
                    threading.Thread(target=self._close_unused, daemon=True).start()
                return
        link.close()

    def _close_unused(self) -> None:
        # One thread until nobody uses it any more: a timer for each transaction would take longer than the transaction.
        rest = _KEPT_SECONDS
        while rest > 0:
            time.sleep(rest)
            with self._lock:
                rest = self._used + _KEPT_SECONDS - time.monotonic()
                self._is_watched = rest > 0
        self.close()


_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": 10,
    # A server that is gone without a word is noticed within half a minute, and not by the defaults of two hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "interlock",
    # Prepared statements belong to a session, which PgBouncer gives to others after each transaction.
    "prepare_threshold": None,
}


def _needed() -> "Callable[[str], Connection[dict[str, Any]]]":
    try:
        import psycopg  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415
    except ImportError as error:
        fix = "Install it from the checkout: pip install './interlock[postgres]'."
        raise DatabaseError("the project has a database, and the extra `postgres` is not installed", fix) from error
    rows: Any = dict_row
    return lambda address: cast("Link", psycopg.connect(address, row_factory=rows, **_OPTIONS))


def check_leg(link: "Link", leg: Leg) -> None:
    """Make sure that a leg has its run until this transaction ends.

    Raises:
        LegLost: It has not.
    """
    found = link.execute(
        "SELECT 1 FROM interlock.run JOIN dbos.workflow_status AS w ON w.workflow_uuid = leg "
        "WHERE run = %s AND leg = %s AND w.owner_xid = %s AND w.status = 'PENDING' FOR SHARE OF w",
        leg[:3],
    ).fetchone()
    if found is None:
        raise LegLost(f"run {leg.run} is not this worker's any more", "Nothing: it goes on elsewhere.")


def check_tables(link: "Link") -> None:
    """Refuse a server, or tables, that this version cannot use.

    Raises:
        DatabaseError: `DBA903` the server is too old, `DBA904` no tables, `DBA905` tables of another version.
    """
    import psycopg  # noqa: PLC0415

    server = link.info.server_version // 10_000
    if server < OLDEST_SERVER:
        raise DatabaseError.of("DBA903", f"the server is PostgreSQL {server}; {OLDEST_SERVER} is the oldest that works")
    try:
        row = link.execute("SELECT version, oldest FROM interlock.meta").fetchone()
    except psycopg.errors.UndefinedTable as error:
        raise DatabaseError.of("DBA904", "the database has no tables of Interlock") from error
    if row is None or row["version"] < VERSION:
        found = row["version"] if row else "none"
        raise DatabaseError.of("DBA905", f"the tables have version {found}, and this Interlock needs {VERSION}")
    if row["oldest"] > VERSION:
        raise DatabaseError.of("DBA905", f"the tables have version {row['version']}, which needs a newer Interlock")


def translated(error: object, address: str) -> DatabaseError | None:
    """Return the error to raise for one of psycopg; None for a mistake in our own statements."""
    from psycopg import InterfaceError, OperationalError, errors  # noqa: PLC0415

    # The server's words name tables, roles and values; libpq's never have the password.
    why = " ".join(str(error).split())[:300]
    if isinstance(error, (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)):
        return DatabaseError.of("DBA906", f"the server refuses: {why}")
    if isinstance(error, (errors.DiskFull, errors.OutOfMemory)):
        fix = "Free disk space on the server; whatever was cut off is tried again, and nothing that counts is lost."
        return DatabaseError(f"the server cannot write: {why}", fix)
    if isinstance(error, (OperationalError, InterfaceError, errors.IdleInTransactionSessionTimeout)):
        fix = f"Correct what it says; `psql '{address}'` tries it. Then do the same again."
        return DatabaseError(f"the database cannot be reached: {why}", fix)
    return None
