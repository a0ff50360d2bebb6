"""What the tests of the whole gate share."""

from collections.abc import Generator

import pytest

from interlock.gates.sealed import frozen


def no_folders(_: str) -> tuple[str, ...]:
    """Answer in place of `python_folders`."""
    return ()


@pytest.fixture(scope="module")
def no_packages() -> Generator[None]:
    """Leave the packages of this Python out of what is recorded: thousands of files, the same for every test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frozen, "python_folders", no_folders)
        yield
