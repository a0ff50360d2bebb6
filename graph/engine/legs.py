"""Legs: the stretches in which workers drive a run. Asked for here, from any machine; see docs/history/019.

A leg is a DBOS workflow named `leg`, with the id `<run>#<number>`. What it is given and what it returns is JSON.
"""

import time
from collections.abc import Callable, Collection, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from interlock.agents.ask import RunnerError
from interlock.core.database import Database, DatabaseError, LegLost, Link, database_of, translated
from interlock.core.errors import InterlockError
from interlock.gates.sealed import SealError
from interlock.graph.errors import LEG, NO_DATABASE, NO_WORKER, GraphError, RunBusyError

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions
    from sqlalchemy import Engine

T = TypeVar("T")

NAME: Final = "leg"
PROTOCOL: Final = "interlock-1"
"""What workers of one database agree on; DBOS gives a leg only to a worker with the same `application_version`."""
QUEUES: Final = ("drive", "command", "browser", "llm")
"""What a worker can do: begin and end runs; programs; looks at pages; models over an API."""
LANDING: Final = "drive-land"
"""The queue of those who do `drive` in which one run of the project is done at a time: what lands moves the target."""
NORMAL: Final = 100
"""The priority of a run; a lower number goes first."""
LANDINGS: Final = 3
"""So often landing is tried for a task: a run whose work conflicts is taken up by another, and by one more."""
ACTIVE: Final = ("ENQUEUED", "DELAYED", "PENDING")
_LOOK_SECONDS: Final = 0.25
_LOOKED_AT: Final = 500
"""So many legs, the newest, are asked how they ended."""


def engine(address: str, connections: int) -> "Engine":
    """Return what DBOS reaches a database by; libpq alone reads the address."""
    import psycopg  # noqa: PLC0415 - the extra `postgres`
    import sqlalchemy  # noqa: PLC0415

    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(address, prepare_threshold=None, connect_timeout=10, application_name="dbos"),
        pool_size=connections,
        max_overflow=0,
        pool_pre_ping=True,
    )


def needed(root: Path) -> Database:
    """Return the database of a project that must have one.

    Raises:
        GraphError: `RUN654` it has none.
    """
    database = database_of(root)
    if database is None:
        fix = 'Write `database = "postgresql://…"` into interlock.toml of this clone, or set INTERLOCK_DATABASE.'
        raise GraphError("only a project with a database has workers, and this one has none", fix, NO_DATABASE)
    return database


@cache
def client(address: str) -> "DBOSClient":
    """Return the one client of DBOS that this process has for a database."""
    from dbos import DBOSClient, DBOSPortableJSONSerializer  # noqa: PLC0415

    return DBOSClient(
        system_database_engine=engine(address, 2),
        serializer=DBOSPortableJSONSerializer(),
        application_name="interlock",
        retry_connection_errors=False,
    )


def _asked(database: Database, ask: "Callable[[DBOSClient], T]") -> T:
    """Ask DBOS something, again while the database cannot be reached.

    Raises:
        DatabaseError: The database cannot be used.
    """
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415

    def once() -> T:
        try:
            return ask(client(database.address))
        except DBAPIError as error:
            if (known := translated(error.orig, database.address)) is None:
                raise
            raise known from error

    return database.persistently(once)


def reserve(database: Database, task_id: str, *, land: int = 0) -> str:
    """Take the next free id of a run of a task, and return it; `land` says how often landing is tried."""

    def work(link: Link) -> str:
        made = "INSERT INTO interlock.run (run, land) VALUES (%s, %s) ON CONFLICT DO NOTHING"
        for number in count(1):
            if link.execute(made, (run := f"{task_id}.{number}", land)).rowcount:
                return run
        raise AssertionError("numbers do not end")

    return database.transact(work, lock="runs")


def enqueue(database: Database, run: str, given: Mapping[str, Any], *, queue: str = "drive", priority: int = 0) -> str:
    """Put a leg of a run into a queue, and return its id when that is committed; the first one says the priority.

    Where the answer got lost it is put there twice, and the second one finds nothing to do.

    Raises:
        DatabaseError: The database cannot be used; whether it was put there is not known.
    """
    from dbos import error  # noqa: PLC0415

    known = "SELECT count(*) AS legs, min(priority) AS priority FROM dbos.workflow_status "
    of_run = "WHERE starts_with(workflow_uuid, %s)"
    row = database.transact(lambda link: link.execute(known + of_run, (f"{run}#",)).fetchone())
    assert row is not None
    for number in count(row["legs"] + 1):
        leg = f"{run}#{number}"
        options: EnqueueOptions = {
            "workflow_name": NAME,
            "queue_name": queue,
            "workflow_id": leg,
            "workflow_id_reuse_policy": "reject",
            "app_version": PROTOCOL,
            "priority": priority or row["priority"] or NORMAL,
        }
        try:
            _asked(database, lambda dbos, options=options: dbos.enqueue(options, run, dict(given)).workflow_id)
        except error.DBOSWorkflowIDInUseError:
            continue
        return leg
    raise AssertionError("numbers do not end")


def workers_alive(database: Database) -> list[dict[str, Any]]:
    """Return the rows of the workers that are alive and take runs; the database's clock counts."""
    alive = "NOT draining AND beat_at > clock_timestamp() - interval '10 s'"
    statement = f"SELECT * FROM interlock.worker WHERE {alive} ORDER BY id".encode()  # noqa: S608 - a constant
    return database.transact(lambda link: link.execute(statement).fetchall())


def check_workers(database: Database) -> None:
    """Refuse to wait for workers where there are none.

    Raises:
        GraphError: `RUN651` there is none.
    """
    if not workers_alive(database):
        message = "the project has a database, and no worker serves it"
        fix = "Start one, here or on another machine: interlock worker. `interlock submit` only puts it into the queue."
        raise GraphError(message, fix, NO_WORKER)


def await_legs(
    database: Database, run: str, leg: str = "", notice: Callable[[Mapping[str, Any]], None] = lambda _step: None
) -> None:
    """Wait until a run has no leg any more, and tell `notice` what happens.

    Raises:
        InterlockError: What the given leg, or one after it, has refused; by default any of them.
        DatabaseError: The database cannot be used; the run goes on.
    """
    last = 0
    steps = "SELECT number, step FROM interlock.notice WHERE run = %s AND number > %s ORDER BY number"
    newest = "SELECT coalesce(max(number), 0) AS number FROM interlock.notice"

    def look(link: Link) -> tuple[bool, list[dict[str, Any]]]:
        return _is_active(link, run), link.execute(steps, (run, last)).fetchall()

    if row := database.transact(lambda link: link.execute(newest).fetchone()):
        last = row["number"]
    while True:
        try:
            going_on, rows = database.transact(look)
        except DatabaseError as error:
            fix = f"{error.fix} The run goes on meanwhile: `interlock status {run}`."
            raise DatabaseError(error.message, fix, error.code) from error
        for row in rows:
            last = row["number"]
            notice(row["step"])
        if not going_on:
            _raise_refusal(database, run, leg)
            return
        time.sleep(_LOOK_SECONDS)


def _raise_refusal(database: Database, run: str, first: str) -> None:
    """Raise what a leg, or one after it, has refused."""
    rows = _asked(database, lambda dbos: dbos.list_workflows(workflow_id_prefix=f"{run}#", load_input=False))
    for row in sorted(rows, key=lambda row: _number_of(row.workflow_id)):
        if first and _number_of(row.workflow_id) < _number_of(first):
            continue
        output: Any = row.output
        if output and "error" in output:
            raise error_of(*output["error"])
        if row.status != "SUCCESS":
            message = f"leg {row.workflow_id} ended as {row.status}: {row.error}"[:500]
            raise GraphError(message, f"Read what it says, and take the run on: interlock resume {run}.", LEG)


def _number_of(leg: str) -> int:
    return int(leg.rpartition("#")[2])


def failed(database: Database) -> list[tuple[str, str, str]]:
    """Return the runs whose last leg ended with an error or could not land, the newest first: why, and what helps."""
    last = dict[str, tuple[str, str]]()
    rows = _asked(
        database, lambda dbos: dbos.list_workflows(name=NAME, sort_desc=True, limit=_LOOKED_AT, load_input=False)
    )
    for row in rows:
        output: Any = row.output or {}
        code, message, fix = (
            output.get("error") or output.get("not_landed") or ("", "", "The log of its worker says more.")
        )
        why = f"{code} {message}".strip()
        if row.status not in (*ACTIVE, "SUCCESS"):
            why = f"{row.status}: {row.error or 'it was cancelled'}"
        last.setdefault(row.workflow_id.rpartition("#")[0], (" ".join(why.split())[:300], fix))
    return [(run, why, fix) for run, (why, fix) in last.items() if why]


def error_of(code: str, message: str, fix: str) -> InterlockError:
    """Return the error with which a leg, or the process in a tree, has ended, of the class by which callers know it."""
    if code == LegLost.code:
        return LegLost(message, fix)
    if code.startswith("DBA"):
        return DatabaseError(message, fix, code)
    if code.startswith(("SEAL", "HELD")):
        return SealError(code, message, fix)
    for kind in (RunnerError, RunBusyError):
        if code == kind.code:
            return kind(message, fix)
    return GraphError(message, fix, code)


def driven(database: Database, run: str) -> bool:
    """Return whether a leg of a run is active."""
    return database.read(lambda link: _is_active(link, run))


def _is_active(link: Link, run: str) -> bool:
    active = "SELECT 1 FROM dbos.workflow_status WHERE starts_with(workflow_uuid, %s) AND status = ANY(%s) LIMIT 1"
    return link.execute(active, (f"{run}#", [*ACTIVE])).fetchone() is not None


def waiting(database: Database, begun: Collection[str] = ()) -> dict[str, str]:
    """Return the runs that wait in a queue, each with what is known of that in words; and those that a worker begins.

    `begun` are runs that exist: one of them that a worker has does not wait.
    """
    statement = (
        "SELECT split_part(workflow_uuid, '#', 1) AS run, queue_name AS queue, status, "
        "extract(epoch FROM clock_timestamp())::float - created_at / 1000.0 AS seconds "
        "FROM dbos.workflow_status WHERE name = %s AND status = ANY(%s) ORDER BY created_at"
    )
    rows = database.read(lambda link: link.execute(statement, (NAME, [*ACTIVE])).fetchall())
    found = dict[str, str]()
    for row in rows:
        if row["status"] != "PENDING":
            found[row["run"]] = f"waits in the queue {row['queue']} for {row['seconds']:.0f} s"
        elif row["run"] not in begun:
            found[row["run"]] = "is being begun by a worker"
    return found


def landings_left(database: Database, run: str) -> int:
    """Return how often landing may be tried for a run."""
    row = database.read(lambda link: link.execute("SELECT land FROM interlock.run WHERE run = %s", (run,)).fetchone())
    return row["land"] if row else 0


def newest_of(database: Database, task_id: str) -> str:
    """Return the newest run of a task, begun or not; empty for none."""
    newest = "SELECT run FROM interlock.run WHERE rtrim(run, '0123456789') = %s ORDER BY made_at DESC LIMIT 1"
    row = database.read(lambda link: link.execute(newest, (f"{task_id}.",)).fetchone())
    return str(row["run"]) if row else ""


def cancel(database: Database, run: str) -> bool:
    """Cancel the active legs of a run, whose processes the worker ends, and return whether there were any."""

    def ask(dbos: "DBOSClient") -> bool:
        legs = dbos.list_workflows(workflow_id_prefix=f"{run}#", status=[*ACTIVE], load_input=False)
        if legs:
            dbos.cancel_workflows([row.workflow_id for row in legs])
        return bool(legs)

    return _asked(database, ask)
