"""What the tests of commands start from."""

from pathlib import Path

import pytest

from tests.campaign.test_kills import greeting_project
from tests.interlock.checkout import make
from tests.interlock.test_cli import interlock


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


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """Return a project whose one run waits for its reviewer, and said how to ask and to answer for it."""
    root = tmp_path / "project"
    task = greeting_project(root)
    task.write_text(task.read_text().replace('"python:team:reviewer"', '"remote"'))
    done = interlock(root, "run", "task.toml")
    assert done.returncode == 3, done.stderr
    assert "interlock ask HELLO-001.1 reviewer\n" in done.stdout
    assert "interlock resume HELLO-001.1 --answer reviewer=FILE" in done.stdout
    return root
