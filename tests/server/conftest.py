"""What the tests of the server share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from interlock.server import make_server


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, as the servers do."""
    return "asyncio"


@pytest.fixture
async def connected(tmp_path: Path) -> AsyncIterator[Client]:
    """Connect a client to a server of an empty project."""
    async with Client(make_server(tmp_path)) as client:
        yield client


@pytest.fixture
async def anna(tmp_path: Path) -> AsyncIterator[Client]:
    """Connect the client of one agent to a server of its own; it meets `ben` in the store alone."""
    async with Client(make_server(tmp_path, caller=lambda: "anna")) as client:
        yield client


@pytest.fixture
async def ben(tmp_path: Path) -> AsyncIterator[Client]:
    """Connect the client of another agent to a server of its own."""
    async with Client(make_server(tmp_path, caller=lambda: "ben")) as client:
        yield client
