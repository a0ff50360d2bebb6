"""A project and the ticket runs in it."""

from pathlib import Path

import pytest

from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.walk import make_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def tickets(root: Path) -> Tickets:
    return Tickets(root)
