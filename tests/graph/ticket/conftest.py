"""A project and the ticket runs in it."""

from pathlib import Path

import pytest

from interlock.graph.ticket.contract import Ticket
from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.walk import make_project, ticket_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def tickets(root: Path) -> Tickets:
    return Tickets(root)


@pytest.fixture
def ticket(tickets: Tickets) -> Ticket:
    """Return the ticket of the run `run-1`, which has begun."""
    return ticket_of(tickets.begin("SHOP-7", "run-1"))
