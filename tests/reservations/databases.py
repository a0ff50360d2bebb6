"""Stores by name, and a database with the tables of the reservations: fixtures for the conftests of two folders."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from interlock.core.database import VERSION, database
from interlock.reservations import POSTGRES_TABLES, PostgresStore
from interlock.reservations.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from tests.postgres import Server

_NAMES = ("process", "agent", "lease", "waiter", "message", "negotiation", "mark", "event", "counter", "line")


def named(store: str) -> SqliteStore | PostgresStore:
    """Return the store that a path or the address of a database names."""
    if "://" in store:
        return PostgresStore(database(store), "")
    return SqliteStore(store)


def set_up(address: str) -> None:
    """Make what reservations ask for in a fresh database; all tables together take seconds."""
    import psycopg

    with psycopg.connect(address) as link:
        link.execute("CREATE SCHEMA interlock")
        link.execute("SET search_path = interlock")
        link.execute("CREATE TABLE meta (version int, oldest int)")
        link.execute("CREATE TABLE line (journal text, start bigint, bytes bytea)")
        link.execute("INSERT INTO meta VALUES (%s, %s)", (VERSION, VERSION))
        link.execute(POSTGRES_TABLES)


def empty(address: str) -> None:
    """Remove all rows; faster than TRUNCATE while there are few."""
    import psycopg

    with psycopg.connect(address) as link:
        link.execute("; ".join(f"DELETE FROM interlock.{name}" for name in _NAMES))


@pytest.fixture(scope="session")
def reservations_database(postgres: "Server") -> Generator[str]:
    """Give the address of a database with the tables of the reservations."""
    with postgres.database() as address:
        set_up(address)
        yield address
        database(address).close()


@pytest.fixture
def empty_reservations(reservations_database: str) -> str:
    """Give the address of a database in which nothing is reserved."""
    empty(reservations_database)
    return reservations_database
