"""A program of an agent that outlives the process that drove its run: real processes, a real SIGKILL."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.ask import agent_of_run, run_mark
from interlock.core import process as programs
from interlock.gates.sealed import Store
from interlock.graph import abandon
from interlock.graph.board import Board
from interlock.graph.errors import RunBusyError
from interlock.graph.task.explain import explain_run
from interlock.graph.task.left_agents import left_agents
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore
from interlock.reservations import open_reservations, process
from tests import warm
from tests.campaign.test_kills import greeting_project
from tests.graph.conftest import Project, Scripted, build

REPO = Path(__file__).parents[2]
RUN = "HELLO-001.1"
BUILDER = """
import os, sys, time
from pathlib import Path

import psutil

sys.stdin.read()  # an agent is given work once it is noted
known = Path("pids")
if known.exists():
    found = [psutil.Process(int(pid)) for pid in known.read_text().split() if psutil.pid_exists(int(pid))]
    Path("beside").write_text(" ".join(str(each) for each in found if each.status() != psutil.STATUS_ZOMBIE))
    raise SystemExit(3)
if child := os.fork():
    known.write_text(f"{os.getpid()} {child}")
    Path("asked").write_text("the builder works")
time.sleep(600)
"""


def left(root: Path) -> list[int]:
    return [row.pid for row in left_agents(RunStore(root, RUN))]


@pytest.fixture
def orphan(project: Project) -> Iterator[tuple[Project, int]]:
    """Give a run that waits and a process that leads a group of its own, noted as its builder's."""
    project.waiting("builder")
    child = started(project.root)
    note(project.root, child.pid, process.started(child.pid))
    yield project, child.pid
    programs.signal_group(child.pid)
    child.wait()


def started(root: Path, run: str = RUN, *command: str, **options: Any) -> "subprocess.Popen[Any]":
    """Start a process as the runner of a run does."""
    env = {**os.environ, "INTERLOCK_RUN": run_mark(root, run)}
    return programs.start(command or ("sleep", "600"), env=env, **options)


def note(root: Path, pid: float, started: str, host: str = "") -> Path:
    path = Store(root).folder / "agents" / f"{RUN}@1.1-builder-0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"role": "builder", "pid": pid, "started": started, "host": host or process.host()}))
    return path


def test_resuming_a_run_whose_process_was_killed_ends_its_agent_before_it_asks_again(tmp_path: Path) -> None:
    root = tmp_path / "project"
    task = greeting_project(root)
    (root / "builder.py").write_text(BUILDER)
    runner = f'builder = {{ runner = "command", argv = ["{sys.executable}", "builder.py"] }}'
    task.write_text(task.read_text().replace('builder = { runner = "python:team:builder" }', runner))
    os.mkfifo(root / "asked")
    command = [sys.executable, "-m", "interlock", "run", str(task), "--root", str(root)]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        assert (root / "asked").read_text() == "the builder works"
        driver.send_signal(signal.SIGKILL)
    pids = [int(pid) for pid in (root / "pids").read_text().split()]
    try:
        assert left(root) == [pids[0]]
        board = Board(root)
        board.refresh()
        ((wait, _since),) = board.waiting()
        assert (wait.kind, f"process {pids[0]}" in wait.text) == ("cut off", True)
        done = warm.interlock(REPO, "resume", RUN, "--root", str(root))
        assert (done.returncode, (root / "beside").read_text()) == (2, ""), done.stderr
        assert left(root) == []
    finally:
        programs.signal_group(pids[0])


def test_a_run_that_is_abandoned_leaves_no_agent_behind(orphan: tuple[Project, int]) -> None:
    project, pid = orphan
    assert left(project.root) == [pid]
    assert abandon(project.root, RUN)
    assert (left(project.root), process.is_running(process.host(), pid, "")) == ([], False)


@pytest.mark.parametrize("why", ["ended", "other files", "not known"])
def test_no_run_begins_beside_an_agent_that_a_killed_run_left_on_its_files(
    orphan: tuple[Project, int], why: str
) -> None:
    project, pid = orphan
    if why == "other files":
        project.task = replace(project.task, scope=("docs/**",))
        (project.root / "docs").mkdir()
    elif why == "not known":
        note(project.root, pid, process.started(pid), "elsewhere")
    view = view_run(RUN, root=project.root)
    assert f"builder still works (process {pid})" in explain_run(view, project.root)["why"]
    assert f"(process {pid})" in warm.interlock(project.root, "status").stdout
    if why == "not known":
        with pytest.raises(RunBusyError):
            project.start()
    else:
        project.start()
    assert process.is_running(process.host(), pid, "") == (why != "ended")


def test_an_agent_is_ended_when_the_files_of_its_killed_run_are_taken_over(orphan: tuple[Project, int]) -> None:
    project, pid = orphan
    path = note(project.root, pid, process.started(pid))
    text = path.read_text()
    path.unlink()
    second = project.start()
    path.write_text(text)  # it was killed after the second one began
    open_reservations(str(project.root), name=agent_of_run(RUN)).release_all()
    project.runners["builder"] = Scripted([build()])
    assert project.drive(second).status == "APPROVED"
    assert not process.is_running(process.host(), pid, "")


def test_a_process_of_the_same_number_that_started_at_another_time_is_left_alone(orphan: tuple[Project, int]) -> None:
    project, pid = orphan
    note(project.root, pid, "another")
    assert left(project.root) == []
    assert abandon(project.root, RUN)
    assert process.is_running(process.host(), pid, "")


@pytest.mark.parametrize("why", ["another run", "another machine", "our own group"])
def test_what_cannot_be_known_to_be_the_agent_is_refused_and_not_ended(
    orphan: tuple[Project, int], why: str, request: pytest.FixtureRequest
) -> None:
    project, pid = orphan
    match why:
        case "another run":
            stranger = started(project.root, "HELLO-001.2")
            request.addfinalizer(lambda: (stranger.kill(), stranger.wait()))
            pid = stranger.pid
            path = note(project.root, pid, process.started(pid))
        case "another machine":
            path = note(project.root, pid, process.started(pid), "elsewhere")
        case _:
            path = note(project.root, os.getpgrp(), process.started(os.getpgrp()))
    for act in (lambda: project.drive(RUN), lambda: abandon(project.root, RUN)):
        with pytest.raises(RunBusyError) as caught:
            act()
        assert (caught.value.code, str(path) in caught.value.fix) == ("RUN603", True)
    assert process.is_running(process.host(), pid, "")
    path.unlink()
    assert abandon(project.root, RUN)
