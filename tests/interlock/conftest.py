"""What the tests of the installer start from."""

from pathlib import Path

import pytest

from tests.interlock.checkout import make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root of a git checkout with one commit."""
    return make(tmp_path / "project")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the root of a small project."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "interlock.toml").write_text("")
    return root
