"""Drives: a run in a thread of this process, bounded waits, one drive for each run, errors that are not lost."""

import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError
from interlock.graph import GraphError, RunBusyError, start_run
from interlock.graph.task.background import Drives
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import task_from_mapping
from tests.child import python
from tests.graph.conftest import GATES, Project, asks_of, build, judge_log, reviewing

REPO = Path(__file__).parents[2]
AGENTS = """
import threading
from tests.graph.conftest import build

asked = threading.Semaphore(0)
go = threading.Event()
asks = []

def slow(ask):
    asks.append(ask.ask_id)
    asked.release()
    assert go.wait(60)
    return build()(ask)

def broken(ask):
    asks.append(ask.ask_id)
    asked.release()
    raise RuntimeError("nobody is at home")

def leaving(ask):
    raise SystemExit(3)
"""


def begin(project: Project, builder: str = "remote") -> str:
    """Start a run whose roles answer from outside, the builder apart where one is named."""
    agents = {name: {"runner": "remote"} for name in ("builder", "tester", "reviewer")}
    agents["builder"] = {"runner": builder}
    data = {"task_id": "HELLO-001", "task": "Greet", "gates_required": list(GATES), "scope": ["src/**"]}
    return start_run(project.root, task_from_mapping({**data, "agents": agents}, base=str(project.root)))


@pytest.fixture
def agents(project: Project, request: pytest.FixtureRequest) -> Any:
    """Put the agents' functions beside the configuration, under a name of this test's own."""
    import importlib

    name = f"agents_of_{abs(hash(request.node.nodeid))}"
    (project.root / f"{name}.py").write_text(AGENTS, encoding="utf-8")
    sys.path.append(str(project.root))
    yield importlib.import_module(name)
    sys.path.remove(str(project.root))
    del sys.modules[name]


def test_a_call_that_cannot_wait_returns_running_and_the_next_one_joins(project: Project, agents: Any) -> None:
    drives, run_id = Drives(project.root), begin(project, f"python:{agents.__name__}:slow")
    view = drives.advance(run_id, wait_seconds=0)
    assert (view.phase, view.waiting) == ("running", ())
    assert agents.asked.acquire(timeout=60)
    assert drives.busy() == (run_id,)
    assert RunStore(project.root, run_id).driven()
    assert drives.advance(run_id, wait_seconds=0).phase == "running"
    agents.go.set()
    view = drives.advance(run_id, wait_seconds=60)
    assert [item.role for item in view.waiting] == ["tester"]
    assert len(agents.asks) == 1
    assert not RunStore(project.root, run_id).driven()


def test_an_answer_waits_for_the_drive_that_is_under_way_and_is_refused_when_it_cannot(
    project: Project, agents: Any
) -> None:
    drives, run_id = Drives(project.root), begin(project, f"python:{agents.__name__}:slow")
    drives.advance(run_id, wait_seconds=0)
    assert agents.asked.acquire(timeout=60)
    with pytest.raises(RunBusyError):
        drives.advance(run_id, answers={"tester": "nonsense"}, wait_seconds=0)
    caught: list[BaseException] = []

    def hand_in() -> None:
        try:
            drives.advance(run_id, answers={"reviewer": "nonsense"}, wait_seconds=60)
        except GraphError as error:
            caught.append(error)

    thread = threading.Thread(target=hand_in)
    thread.start()
    agents.go.set()
    thread.join(60)
    assert [type(error) for error in caught] == [GraphError]
    assert [item.role for item in drives.advance(run_id).waiting] == ["tester"]


def test_one_of_many_callers_hands_in_an_answer_and_the_others_are_refused(project: Project) -> None:
    drives, run_id = Drives(project.root), begin(project)
    text = build()(asks_of(drives.advance(run_id), project.root)["builder"])

    def hand_in(_number: int) -> str:
        try:
            return drives.advance(run_id, answers={"builder": text}).phase
        except GraphError as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        results = pool.map(hand_in, range(8))
    assert sorted(results) == ["RUN605"] * 7 + ["waiting"]
    assert len(project.entries("answer")) == 1


def test_an_error_that_nobody_waited_for_is_raised_by_the_next_call(project: Project, agents: Any) -> None:
    drives, run_id = Drives(project.root), begin(project, f"python:{agents.__name__}:broken")
    assert drives.advance(run_id, wait_seconds=0).phase == "running"
    assert agents.asked.acquire(timeout=60)
    thread = next((item for item in threading.enumerate() if item.name == f"drive {run_id}"), None)
    if thread is not None:
        thread.join(60)
    with pytest.raises(RunnerError):
        drives.advance(run_id)
    assert len(agents.asks) == 1


def test_an_agent_that_ends_its_process_ends_its_own_drive_alone(project: Project, agents: Any) -> None:
    with pytest.raises(RunnerError):
        Drives(project.root).advance(begin(project, f"python:{agents.__name__}:leaving"))


def test_a_run_that_another_process_drives_is_running_and_takes_no_answer(project: Project) -> None:
    run_id = begin(project)
    drives = Drives(project.root)
    text = build()(asks_of(drives.advance(run_id), project.root)["builder"])
    lock = RunStore(project.root, run_id).folder / "lock"
    script = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,fcntl.LOCK_EX);print('held',flush=True);input()"
    with python(script, lock) as other:
        assert other.line() == "held\n"
        view = drives.advance(run_id, wait_seconds=0)
        assert (view.phase, view.waiting) == ("running", ())
        with pytest.raises(RunBusyError):
            drives.advance(run_id, answers={"builder": text}, wait_seconds=0)
        other.communicate()
    assert [item.role for item in drives.advance(run_id, answers={"builder": text}).waiting] == ["tester"]


def test_a_run_can_be_looked_at_while_it_is_driven(project: Project) -> None:
    """A look neither fails nor makes the drive fail, whatever the drive writes at that moment."""
    drives, run_id = Drives(project.root), begin(project)
    problems: list[BaseException] = []
    phases: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                phases.add(view_run(run_id, root=project.root).phase)
            except (GraphError, sqlite3.Error) as error:
                problems.append(error)
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for role, answer in (("builder", build()), ("tester", judge_log), ("reviewer", reviewing)):
            view = drives.advance(run_id)
            drives.advance(run_id, answers={role: answer(asks_of(view, project.root)[role])})
    finally:
        done.set()
        thread.join(60)
    assert problems == []
    assert {"waiting"} <= phases
