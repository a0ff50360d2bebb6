"""A database with the tables of a project, and rows that stand for legs."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pytest

from interlock import graph
from interlock.core.database import ADDRESS, Database, Leg
from interlock.graph.engine import legs
from interlock.graph.team import schema
from tests.postgres import Server


@pytest.fixture
def address(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the address of a database with tables, which projects of this test have."""
    with prepared(postgres) as found:
        monkeypatch.setenv(ADDRESS, found)
        yield found


@contextmanager
def prepared(server: Server) -> Generator[str]:
    """Make a database with tables: a copy of one that is made once, since that takes seconds."""
    server.start()
    if not server.run("SELECT 1 FROM pg_database WHERE datname = %s", _TEMPLATE):
        server.run(f"CREATE DATABASE {_TEMPLATE}")
        graph.set_up(server.address(_TEMPLATE), roles=True)
    with server.database(template=_TEMPLATE) as address:
        database = Database(address)
        database.transact(lambda link: link.execute(schema.SETTINGS))  # which a copy has not
        database.close()
        yield address


_TEMPLATE: Final = "with_tables"
__all__ = ["drive", "driving", "legs", "prepared"]


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    """Give that database."""
    found = Database(address)
    yield found
    found.close()


def drive(database: Database, run: str, *, leg: str = "", status: str = "PENDING") -> Leg:
    """Make the rows of a leg that drives a run, as DBOS and a worker write them; return it."""
    made = Leg(run, leg or f"{run}#1", uuid4().hex)

    def work(link: object) -> None:
        link.execute(  # type: ignore[attr-defined]
            "INSERT INTO interlock.run (run, leg) VALUES (%s, %s) ON CONFLICT (run) DO UPDATE SET leg = excluded.leg",
            (run, made.workflow),
        )
        link.execute(  # type: ignore[attr-defined]
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, owner_xid, executor_id, queue_name) "
            "VALUES (%s, %s, 'leg', %s, 'a-worker', 'drive') ON CONFLICT (workflow_uuid) DO UPDATE "
            "SET status = excluded.status, owner_xid = excluded.owner_xid",
            (made.workflow, status, made.token),
        )

    database.transact(work)
    return made


def driving(address: str, leg: Leg, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Return the database as a process has it that drives a leg."""
    with monkeypatch.context() as changed:
        for name, value in leg.environment().items():
            changed.setenv(name, value)
        return Database(address)
