"""Legs: the stretches in which workers drive a run. Asked for here, from any machine; see docs/history/019.

A leg is a DBOS workflow named `leg`, with the id `<run>#<number>`. What it is given and what it returns is JSON.
"""

import time
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from interlock.core.database import Database, DatabaseError, Link
from interlock.graph.errors import LEG, NO_WORKER, GraphError, RunBusyError

if TYPE_CHECKING:
    from dbos import DBOSClient
    from sqlalchemy import Engine

NAME: Final = "leg"
PROTOCOL: Final = "interlock-1"
"""What workers of one database agree on; DBOS gives a leg only to a worker with the same `application_version`."""
QUEUES: Final = ("drive", "command", "browser", "llm")
"""What a worker can do: begin and end runs; programs; looks at pages; models over an API."""
NORMAL: Final = 100
"""The priority of a leg; a lower number goes first."""
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


def reserve(database: Database, task_id: str, *, land: bool = False) -> str:
    """Take the next free id of a run of a task, and return it; `land`: it lands once it is approved."""

    def work(link: Link) -> str:
        for number in count(1):
            run = f"{task_id}.{number}"
            taken = link.execute("SELECT 1 FROM interlock.run_file WHERE run = %s LIMIT 1", (run,)).fetchone()
            made = "INSERT INTO interlock.run (run, land) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING run"
            if not taken and link.execute(made, (run, land)).fetchone():
                return run
        raise AssertionError("numbers do not end")

    return database.transact(work, lock="runs")


def enqueue(
    database: Database, run: str, given: Mapping[str, Any], *, queue: str = "drive", priority: int = NORMAL
) -> str:
    """Put a leg of a run into a queue, and return its id when that is committed.

    Raises:
        DatabaseError: The database cannot be used; whether it was put there is not known.
    """
    from dbos import error  # noqa: PLC0415

    highest = "SELECT count(*) AS legs FROM dbos.workflow_status WHERE workflow_uuid LIKE %s"
    row = database.transact(lambda link: link.execute(highest, (f"{_like(run)}#%",)).fetchone())
    for number in count((row["legs"] if row else 0) + 1):
        leg = f"{run}#{number}"
        try:
            client(database.address).enqueue(
                {
                    "workflow_name": NAME,
                    "queue_name": queue,
                    "workflow_id": leg,
                    "workflow_id_reuse_policy": "reject",
                    "app_version": PROTOCOL,
                    "priority": priority,
                },
                run,
                dict(given),
            )
        except error.DBOSWorkflowIDInUseError:
            continue
        return leg
    raise AssertionError("numbers do not end")


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


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
        GraphError, DatabaseError: What the given leg, or one after it, has refused; by default any of them.
    """
    last = 0
    active = "SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid LIKE %s AND status = ANY(%s) LIMIT 1"
    steps = "SELECT number, step FROM interlock.notice WHERE run = %s AND number > %s ORDER BY number"
    newest = "SELECT coalesce(max(number), 0) AS number FROM interlock.notice"

    def look(link: Link) -> tuple[bool, list[dict[str, Any]]]:
        going_on = link.execute(active, (f"{_like(run)}#%", [*ACTIVE])).fetchone() is not None
        return going_on, link.execute(steps, (run, last)).fetchall()

    if row := database.transact(lambda link: link.execute(newest).fetchone()):
        last = row["number"]
    while True:
        try:
            going_on, rows = database.transact(look)
        except DatabaseError as error:
            fix = f"{error.fix} The run goes on meanwhile: `interlock status {run}`; `interlock land {run}` lands it."
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
    rows = client(database.address).list_workflows(workflow_id_prefix=f"{run}#", load_input=False)
    for row in sorted(rows, key=lambda row: number_of(row.workflow_id)):
        if first and number_of(row.workflow_id) < number_of(first):
            continue
        output: Any = row.output
        if output and "error" in output:
            raise error_of(*output["error"])
        if row.status != "SUCCESS":
            message = f"leg {row.workflow_id} ended as {row.status}: {row.error}"[:500]
            raise GraphError(message, f"Read what it says, and take the run on: interlock resume {run}.", LEG)


def failed(database: Database) -> list[tuple[str, str]]:
    """Return the runs whose last leg ended with an error, the newest first, each with why."""
    last = dict[str, str]()
    for row in client(database.address).list_workflows(name=NAME, sort_desc=True, limit=_LOOKED_AT, load_input=False):
        output: Any = row.output
        why = " ".join(output["error"][:2]) if output and "error" in output else ""
        if row.status not in (*ACTIVE, "SUCCESS"):
            why = f"{row.status}: {row.error or 'it was cancelled'}"
        last.setdefault(row.workflow_id.rpartition("#")[0], " ".join(why.split())[:300])
    return [(run, why) for run, why in last.items() if why]


def number_of(leg: str) -> int:
    """Return the number of a leg from its id."""
    return int(leg.rpartition("#")[2])


def error_of(code: str, message: str, fix: str) -> GraphError | DatabaseError:
    """Return the error that a leg has refused with."""
    if code.startswith("DBA"):
        return DatabaseError(message, fix, code)
    return RunBusyError(message, fix) if code == RunBusyError.code else GraphError(message, fix, code)


def driven(database: Database, run: str) -> bool:
    """Return whether a leg of a run is active."""
    statement = "SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid LIKE %s AND status = ANY(%s) LIMIT 1"
    row = database.transact(lambda link: link.execute(statement, (f"{_like(run)}#%", [*ACTIVE])).fetchone())
    return row is not None


def cancel(database: Database, run: str) -> None:
    """Cancel the active legs of a run; the worker ends their processes."""
    legs = client(database.address).list_workflows(workflow_id_prefix=f"{run}#", status=[*ACTIVE], load_input=False)
    if legs:
        client(database.address).cancel_workflows([row.workflow_id for row in legs])
