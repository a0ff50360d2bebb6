"""What the tests of the rules begin with."""

import pytest

from interlock.core.database import ADDRESS, database
from interlock.reservations.service import Reservations
from interlock.reservations.store.postgres import PostgresStore
from tests.reservations import world as worlds
from tests.reservations.databases import empty, empty_reservations, reservations_database
from tests.reservations.world import World, ids

__all__ = ["empty_reservations", "reservations_database"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test have worlds with a store in memory, and then with one in PostgreSQL."""
    if request.param == "sqlite":
        return
    address: str = request.getfixturevalue("reservations_database")

    def new_store() -> PostgresStore:
        empty(address)
        return PostgresStore(database(address), "")

    monkeypatch.setattr(worlds, "new_store", new_store)
    monkeypatch.setenv(ADDRESS, address)


@pytest.fixture
def world() -> World:
    """Give a world in which nobody holds anything."""
    return World()


@pytest.fixture
def ada(world: World) -> Reservations:
    return world.join("Ada")


@pytest.fixture
def bob(world: World) -> Reservations:
    return world.join("Bob")


@pytest.fixture
def eve(world: World) -> Reservations:
    return world.join("Eve")


@pytest.fixture
def ann(world: World) -> Reservations:
    return world.agent("ann")


@pytest.fixture
def held(ann: Reservations) -> list[str]:
    """Let ann hold `a`, and give the id of her lease."""
    return ids(ann.reserve_files(["a"]))
