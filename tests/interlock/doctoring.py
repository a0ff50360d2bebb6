"""What the tests of `interlock doctor` share: a checkout of one's own, and ways to break what is installed."""

import os
import sys
import time
from pathlib import Path

import pytest

from interlock.doctor import CHECKS, Report
from interlock.doctor.checks import scene
from interlock.reservations import Caller, Reservations, Runtime, SqliteStore, place
from tests.child import environment, git
from tests.interlock.checkout import make

GONE = "/nowhere/bin/interlock"


def own_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout, of a user with a home of his own."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "INTER", "CLAUDE")):
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return make(tmp_path / "project")


def look(root: Path, check: str, **more: str) -> Report:
    """Run one check."""
    (row,) = (row for row in CHECKS if row.id == check)
    return row.run(scene(root, {**environment(**more), "HOME": os.environ["HOME"]}))


def hold(root: Path, name: str, *patterns: str, at: float | None = None) -> SqliteStore:
    """Let somebody without a process hold something."""
    store = SqliteStore(place.find(str(root)).store_path)
    runtime = Runtime(store, clock=time.time if at is None else lambda: at)
    answer = Reservations(runtime, Caller(name, "agent", str(root), "cli")).reserve_files(list(patterns))
    assert not answer["errors"]
    return store


def edit(path: Path, old: str, new: str) -> None:
    """Change a text in a file; it is there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def command_gone(root: Path) -> None:
    for name in (".claude/settings.json", ".mcp.json"):
        edit(root / name, sys.executable, GONE)


def switched_off(root: Path) -> None:
    edit(root / ".claude/settings.json", "{\n", '{\n  "disableAllHooks": true,\n')


def hooks_path(root: Path) -> None:
    git(root, "config", "core.hooksPath", ".githooks")


def entry_gone(root: Path) -> None:
    (root / ".mcp.json").write_text("{}")
