"""`interlock init` when something goes wrong on the way: nothing is lost, and the undo works."""

import os
from pathlib import Path

import pytest

from interlock.install import apply, pick, plan
from tests.interlock.test_init import LAUNCH, init, other_server, put, tree, uninstall


def test_a_failure_half_way_takes_back_what_was_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, "claude", other_server("claude"))
    changes = plan(project, pick(["all"], hooks=False), LAUNCH)
    before = tree(project)
    rename = os.rename

    def full_disk(part: str, name: str, **folders: int) -> None:
        if name == "settings.json":
            raise OSError(28, "No space left on device")
        rename(part, name, **folders)

    monkeypatch.setattr(os, "rename", full_disk)
    with pytest.raises(OSError, match="No space"):
        apply(project, changes)
    assert tree(project) == before


def test_an_undo_works_after_a_crash_between_record_and_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, "claude", other_server("claude"))
    before = tree(project)
    written: list[str] = []

    class Killed(BaseException):
        pass

    rename = os.rename

    def killed(part: str, name: str, **folders: int) -> None:
        if name == "settings.json":
            raise Killed
        written.append(name)
        rename(part, name, **folders)

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(Killed):
        apply(project, plan(project, pick(["all"], hooks=False), LAUNCH))
    monkeypatch.undo()
    assert ".mcp.json" in written
    assert uninstall(project).returncode == 0
    left = {name: data for name, data in tree(project).items() if not name.startswith(".gemini")}
    assert left == before


def test_a_damaged_record_is_refused_with_a_way_out(project: Path) -> None:
    init(project)
    record = project / ".interlock" / "init" / "record.json"
    record.write_text('{"schema": "other/9"}')
    done = uninstall(project)
    assert done.returncode == 2
    assert "INI103" in done.stderr
    assert (project / ".mcp.json").exists()
