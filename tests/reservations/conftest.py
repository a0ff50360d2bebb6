"""What the tests of the rules begin with."""

import pytest

from interlock.reservations.service import Reservations
from tests.reservations.world import World, ids


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
