"""The checkout that the tests of the hooks work in."""

from pathlib import Path

import pytest

from tests.reservations.hooks.checkout import Checkout, make, with_library


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Give a git checkout with one commit: `a.py`, `b.py`, `src/c.py`."""
    root = tmp_path.resolve() / "project"
    root.mkdir()
    for name in ("a.py", "b.py"):
        (root / name).write_text("first\n")
    return make(root)


@pytest.fixture
def library(checkout: Checkout) -> Checkout:
    """Give a submodule `lib` of the checkout."""
    return with_library(checkout)
