"""The database that several machines share: its address, transactions on it, and what is wrong with it.

Answers T1. A process that drives a run for a worker is named its leg by `INTERLOCK_LEG`. From then on each of its
transactions first asks whether this leg still has the run, and holds that answer until it commits: a worker that was
frozen and taken over writes nothing any more. See docs/history/019.

Work that is cut off by the server is done again, from its first statement, until `patience` is over. So whoever calls
`transact` gives work that may be repeated: rows that are there already stay as they are.
"""

import json
import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from interlock.core.errors import Exit, InterlockError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

    Link: TypeAlias = Connection[dict[str, Any]]

T = TypeVar("T")

ADDRESS: Final = "INTERLOCK_DATABASE"
"""The variable that names the database; empty for none, whatever `interlock.toml` says."""
LEG: Final = "INTERLOCK_LEG"
"""The variable that names the leg that this process drives, as JSON of `Leg`."""

VERSION: Final = 1
"""The number of the newest migration that this version knows."""
OLDEST_SERVER: Final = 13
"""The oldest PostgreSQL that DBOS and psycopg support."""

PATIENCE_SECONDS: Final = 5.0
LEG_PATIENCE_SECONDS: Final = 120.0
"""How long a lost connection is tried again: by a command, and by a process in the middle of a run."""
_PAUSE_SECONDS: Final = 0.25

SETUP: Final = "Run `interlock database setup` as a role that may make tables."


class DatabaseError(InterlockError):
    """The database that `database` in interlock.toml or `INTERLOCK_DATABASE` names cannot be used.

    Fix: Do what the message says; nothing was lost.
    """

    code = "DBA901"
    exit_code = Exit.SYSTEM


class LegLost(DatabaseError):  # noqa: N818 - users see the name, as `kind` of an error
    """Another worker drives the run by now; this process has written nothing since.

    Fix: Nothing: the run goes on there. `interlock workers` shows where.
    """

    code = "DBA908"


class Leg(NamedTuple):
    """One execution of one leg: the run, the id of the workflow, and the token by which DBOS knows the execution."""

    run: str
    workflow: str
    token: str

    def environment(self) -> dict[str, str]:
        """Return the variable that names this leg to a process."""
        return {LEG: json.dumps(self)}


def this_leg() -> Leg | None:
    """Return the leg that this process drives, or None in every other process."""
    named = os.environ.get(LEG)
    return Leg(*json.loads(named)) if named else None


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
        _check(address, where)
    return address


def _configured(root: Path) -> str:
    # The whole file is checked elsewhere; whoever asks for the address may be a hook, which has no time for that.
    try:
        text = (root / "interlock.toml").read_bytes()
    except OSError:
        return ""
    return _named_in(text) if b"database" in text else ""


@lru_cache(maxsize=8)
def _named_in(text: bytes) -> str:
    import tomllib  # noqa: PLC0415 - most projects have no database

    try:
        found = tomllib.loads(text.decode()).get("database", "")
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""


def _check(address: str, where: str) -> None:
    from urllib.parse import parse_qs, urlsplit  # noqa: PLC0415 - most projects have no database

    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres"):
        message = f"{where} is no address of PostgreSQL"
        raise DatabaseError(message, "Write postgresql://USER@HOST:PORT/DATABASE.", "DBA902")
    if parts.password is not None or "password" in parse_qs(parts.query):
        message = f"{where} has a password in it, which would be seen wherever the address is"
        fix = "Take it out, and put it where libpq looks: ~/.pgpass, a service file, PGPASSFILE, or a certificate."
        raise DatabaseError(message, fix, "DBA902")


@cache
def database(address: str) -> "Database":
    """Return the database at an address; a process has one of each."""
    return Database(address)


def database_of(root: str | Path) -> "Database | None":
    """Return the database of a project, or None where it has none."""
    address = address_of(root)
    return database(address) if address else None


class Database:
    """A database of one project. Threads share it; a process that forks makes one of its own.

    Args:
        address: Where it is, without a password.
        checked: Whether the tables must be there; `interlock database setup` makes them.
    """

    def __init__(self, address: str, *, checked: bool = True) -> None:
        self.address = address
        self._is_checked = not checked
        self._pool: ConnectionPool[Connection[dict[str, Any]]] | None = None
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
        return self._repeated(lambda: self.transaction(lock=lock), work)

    def read(self, work: "Callable[[Link], T]") -> T:
        """Read, each statement by itself, and return the result; a leg that has its run no more may read.

        Raises:
            DatabaseError: The database cannot be used.
        """
        return self._repeated(self.connection, work)

    def _repeated(self, opened: "Callable[[], AbstractContextManager[Link]]", work: "Callable[[Link], T]") -> T:
        end = time.monotonic() + self.patience
        while True:
            try:
                with opened() as link:
                    return work(link)
            except DatabaseError as error:
                if error.code != "DBA901" or time.monotonic() >= end:
                    raise
            time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def transaction(self, *, lock: str = "") -> "Generator[Link]":
        """Open a transaction, as `transact` does, but once.

        Raises:
            LegLost, DatabaseError: As `transact`.
        """
        import psycopg  # noqa: PLC0415 - an extra, and slow to import

        try:
            with self._opened().connection() as link, link.transaction():
                if self._leg:
                    check_leg(link, self._leg)
                if lock:
                    # A statement of its own: one that also reads would read what was there before it waited.
                    link.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"interlock {lock}",))
                yield link
        except psycopg.Error as error:
            raise translated(error, self.address) from error

    @contextmanager
    def connection(self) -> "Generator[Link]":
        """Lend a connection in which each statement is a transaction of its own.

        Raises:
            DatabaseError: The database cannot be used.
        """
        import psycopg  # noqa: PLC0415

        try:
            with self._opened().connection() as link:
                yield link
        except psycopg.Error as error:
            raise translated(error, self.address) from error

    def close(self) -> None:
        """Give back the connections; the next use opens them again."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _opened(self) -> "ConnectionPool[Connection[dict[str, Any]]]":
        if self._pool is None:
            connect = _needed()
            # One connection by hand first: a pool would only say that it waited in vain.
            with connect(self.address) as link:
                if not self._is_checked:
                    check_tables(link)
                    self._is_checked = True
            from psycopg.rows import dict_row  # noqa: PLC0415
            from psycopg_pool import ConnectionPool  # noqa: PLC0415

            options = {**_OPTIONS, "row_factory": dict_row}
            # Nothing is held by a run that waits for a model.
            self._pool = ConnectionPool(
                self.address,
                min_size=0,
                max_size=4,
                max_idle=5.0,
                timeout=min(self.patience, 10.0),
                kwargs=options,
                open=True,
            )
        return self._pool


_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": 10,
    "application_name": "interlock",
    # Prepared statements belong to a session, which PgBouncer gives to others after each transaction.
    "prepare_threshold": None,
}


def _needed() -> "Callable[[str], Connection[dict[str, Any]]]":
    try:
        import psycopg  # noqa: PLC0415
        import psycopg_pool  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]
        from psycopg.rows import dict_row  # noqa: PLC0415
    except ImportError as error:
        fix = "Install it: pip install 'interlock-orchestrator[postgres]'."
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
        leg,
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
        message = f"the server is PostgreSQL {server}; {OLDEST_SERVER} is the oldest that works"
        raise DatabaseError(message, "Move the database to a newer server with pg_dump.", "DBA903")
    try:
        row = link.execute("SELECT version, oldest FROM interlock.meta").fetchone()
    except psycopg.errors.UndefinedTable as error:
        raise DatabaseError("the database has no tables of Interlock", SETUP, "DBA904") from error
    if row is None or row["version"] < VERSION:
        found = row["version"] if row else "none"
        message = f"the tables have version {found}, and this version of Interlock needs {VERSION}"
        raise DatabaseError(message, f"{SETUP} Workers of the version before go on meanwhile.", "DBA905")
    if row["oldest"] > VERSION:
        message = f"the tables have version {row['version']}, which needs a newer Interlock than this one"
        raise DatabaseError(message, "Upgrade: pip install --upgrade 'interlock-orchestrator[postgres]'.", "DBA905")


def translated(error: Exception, address: str) -> Exception:
    """Return the error to raise for one of psycopg; a mistake in our own statements stays what it is."""
    import psycopg  # noqa: PLC0415
    from psycopg_pool import PoolClosed, PoolTimeout  # noqa: PLC0415

    # The server's words name tables, roles and values; libpq's never have the password.
    why = " ".join(str(error).split())[:300]
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        fix = "Give the role its rights: `interlock database setup --roles` prints which."
        return DatabaseError(f"the role may not do this: {why}", fix, "DBA906")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        fix = "Name the primary server; only pages and `interlock status` may read a replica."
        return DatabaseError(f"the server only reads: {why}", fix, "DBA906")
    if isinstance(error, (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory)):
        fix = "Free disk space on the server; whatever was cut off is tried again, and nothing that counts is lost."
        return DatabaseError(f"the server cannot write: {why}", fix, "DBA901")
    cut_off = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.IdleInTransactionSessionTimeout)
    if isinstance(error, (*cut_off, PoolTimeout, PoolClosed)):
        fix = f"Check that the server runs and can be reached: psql '{address}'. Then do the same again."
        return DatabaseError(f"the database cannot be reached: {why}", fix, "DBA901")
    return error
