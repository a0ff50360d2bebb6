"""Ctrl-C in the middle of a run: it stops at once, keeps the run whole, and says how to go on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.test_kills import greeting_project
from tests.child import Child
from tests.interlock.test_cli import interlock

SLOW = '''"""An agent that is a process: it says that it works, and ends only when it is interrupted."""

import os
import subprocess

import team
from interlock.agents import RunnerError


def builder(ask):
    if os.path.exists(f"{ask.root}/free"):
        return team.builder(ask)
    done = subprocess.run(["sh", "-c", "COMMAND"], cwd=ask.root)
    raise RunnerError(f"the agent ended with {done.returncode}", "Start it again.")
'''


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to_group", [True, False], ids=["as a terminal does", "to the command alone"])
def test_an_interrupted_run_stops_at_once_and_resumes_as_if_it_was_never_stopped(
    number: signal.Signals, to_group: bool, tmp_path: Path
) -> None:
    root = tmp_path / "a project"
    task = greeting_project(root)
    task.write_text(task.read_text().replace("team:builder", "slow:builder"))
    # Where the signal comes to Interlock alone, what the agent started in its turn is ended as well.
    waiting = "echo here; exec cat hold" if to_group else "cat hold & echo here; wait"
    (root / "slow.py").write_text(SLOW.replace("COMMAND", waiting))
    os.mkfifo(root / "hold")
    command = [sys.executable, "-m", "interlock", "run", "a project/task.toml", "--root", "a project"]
    with Child(*command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True) as running:
        assert running.line() == "here\n"
        (os.killpg if to_group else os.kill)(running.pid, number)
        out, err = running.communicate(timeout=30)
    assert (running.returncode, out) == (128 + number, ""), err
    assert f"interlock resume HELLO-001.1 --root '{root}'" in err
    (root / "free").touch()
    resumed = interlock(root, "resume", "HELLO-001", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout.splitlines()[-1])["status"] == "APPROVED"
    assert interlock(root, "verify").returncode == 0
