"""A database with the tables of the reservations, empty for each test: fixtures for the conftests of two folders."""

from collections.abc import Generator
from typing import TYPE_CHECKING, LiteralString, cast

import psycopg
import pytest

from interlock.core.database import VERSION, database
from interlock.reservations.store.postgres import TABLES

if TYPE_CHECKING:
    from tests.postgres import Server

_NAMES = ("process", "agent", "lease", "waiter", "message", "negotiation", "mark", "event", "counter")


def set_up(address: str) -> None:
    """Make the tables of the reservations in a fresh database, and what says their version."""
    with psycopg.connect(address) as link:
        link.execute("CREATE SCHEMA interlock")
        link.execute("CREATE TABLE interlock.meta (version INTEGER, oldest INTEGER)")
        link.execute("INSERT INTO interlock.meta VALUES (%s, 1)", (VERSION,))
        link.execute("SET search_path TO interlock, public")
        link.execute(cast("LiteralString", TABLES))


def empty(address: str) -> None:
    """Remove all rows; faster than TRUNCATE while there are few."""
    with psycopg.connect(address) as link:
        link.execute(cast("LiteralString", ";".join(f"DELETE FROM interlock.{name}" for name in _NAMES)))


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
