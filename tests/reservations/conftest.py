"""What the tests of the rules begin with."""

import pytest

from interlock.reservations.service import Reservations
from tests.reservations.world import World


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
