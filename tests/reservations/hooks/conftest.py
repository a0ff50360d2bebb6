"""The checkout that the tests of the hooks work in."""

from pathlib import Path

import pytest

from tests.reservations.hooks.checkout import Checkout, git


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Give a git checkout with one commit: `a.py`, `b.py`, `src/c.py`."""
    root = tmp_path.resolve() / "project"
    (root / "src").mkdir(parents=True)
    for name in ("a.py", "b.py", "src/c.py"):
        (root / name).write_text("first\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return Checkout(root)
