"""What the tests of the rules begin with."""

import pytest

from tests.reservations.world import World


@pytest.fixture
def world() -> World:
    """Give a world in which nobody holds anything."""
    return World()
