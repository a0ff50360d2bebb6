"""What the tests of the server share."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, as the servers do."""
    return "asyncio"
