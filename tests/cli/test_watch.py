"""`interlock watch` as a person and a program see it."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import abandon
from tests.campaign.test_kills import greeting_project
from tests.graph.conftest import Project, Scripted, build, make_project
from tests.interlock.test_cli import interlock


@pytest.mark.long
def test_once_gives_the_status_of_a_run_by_its_exit_code(tmp_path: Path) -> None:
    def made(name: str) -> Project:
        return make_project(tmp_path / name)

    good, bad, left, waiting = made("good"), made("bad"), made("left"), made("waiting")
    bad.runners["builder"] = Scripted([build("hi\n")])
    good.run()
    bad.run()
    abandon(left.root, left.waiting("builder").run_id)
    waiting.waiting("reviewer")
    codes = {
        project.root.name: interlock(project.root, "watch", "HELLO-001", "--once")
        for project in (good, bad, left, waiting)
    }
    assert {name: done.returncode for name, done in codes.items()} == {"good": 0, "bad": 1, "left": 1, "waiting": 3}
    assert "waits for   reviewer" in codes["waiting"].stdout
    assert interlock(good.root, "watch", "NOPE").returncode == 2


def test_a_picture_is_what_status_prints(tmp_path: Path) -> None:
    project = make_project(tmp_path / "hello")
    project.waiting("reviewer")
    watched, status = interlock(project.root, "watch", "--once"), interlock(project.root, "status")
    assert (watched.returncode, watched.stdout.splitlines()[0].split("(")[0]) == (0, status.stdout.split("(")[0])
    (line,) = interlock(project.root, "watch", "--once", "--json").stdout.splitlines()
    data = json.loads(line)
    assert (data["schema"], [row["run_id"] for row in data["runs"]]) == ("interlock.runs/1", ["HELLO-001.1"])


@pytest.mark.long
def test_a_run_is_watched_until_it_ends_whoever_drives_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    greeting_project(root)
    team = root / "team.py"
    first = "    if ask.attempt == 1 and ask.reask == 0:\n"
    held = '    while not (Path(ask.root) / "go").exists():\n        __import__("time").sleep(0.01)\n'
    team.write_text(team.read_text().replace(first, held + first))
    words = [sys.executable, "-m", "interlock"]
    with subprocess.Popen([*words, "run", "task.toml"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        until((root / ".interlock/runs/HELLO-001.1/progress.jsonl").exists)
        command = [*words, "watch", "HELLO-001", "--interval", "0.1", "--json"]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            first = watching.stdout.readline()
            (root / "go").touch()
            *_, last = watching.stdout
    assert (json.loads(first)["status"], json.loads(last)["status"]) == ("IN_PROGRESS", "APPROVED")
    assert watching.returncode == 0


def until(what: Any) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)
