"""Runs with overlapping scopes queue in place of colliding, say for whom, and give back what they held."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask, RunnerError
from interlock.agents.ask import agent_of_run
from interlock.graph.errors import GraphError
from interlock.graph.task.explain import explain_run
from interlock.graph.task.runs import RunView, drive, keep_files, view_run
from interlock.graph.task.scope_leases import ScopeLeases
from interlock.reservations import Caller, Reservations, open_reservations, replace
from tests.graph.conftest import Project, Scripted, build
from tests.reservations.world import ROOT, World, codes

REPO = Path(__file__).parents[2]
Step = Mapping[str, Any]


def other(project: Project, name: str = "other") -> Reservations:
    """Return the calls of an agent of another client that runs: this process's parent."""
    return open_reservations(str(project.root), "mcp", name=name)


def held(project: Project) -> dict[str, str]:
    """Return the holder of each pattern."""
    return {row["pattern"]: row["holder"] for row in other(project, "observer").current_state()["leases"]}


@dataclass
class Steps:
    """The steps that a drive reported, and a way to wait for one kind of it."""

    rows: list[Step] = field(default_factory=list[Step])
    seen: dict[str, threading.Event] = field(default_factory=dict[str, threading.Event])

    def __call__(self, *given: Any) -> None:
        step: Step = given[-1]
        self.rows.append(step)
        self.seen.setdefault(step["kind"], threading.Event()).set()

    def kinds(self) -> list[str]:
        return [row["kind"] for row in self.rows]

    def wait(self, kind: str) -> None:
        assert self.seen.setdefault(kind, threading.Event()).wait(60), self.kinds()


# -- one run -----------------------------------------------------------------------------------------------------------


def test_a_run_holds_its_scope_while_it_works_and_nothing_at_its_end(project: Project) -> None:
    seen: list[dict[str, str]] = []

    def look(ask: Ask) -> str:
        seen.append(held(project))
        assert ask.environment == {"INTERLOCK_AGENT_ID": "run:HELLO-001.1"}
        return build()(ask)

    project.runners["builder"] = Scripted([look])
    assert project.run().status == "APPROVED"
    assert seen == [{"src/**": "run:HELLO-001.1"}]
    assert held(project) == {}
    rows = [entry for entry in project.entries() if entry.run == "reservations"]
    assert [row.type for row in rows if row.data.get("agent") == "run:HELLO-001.1"] == [
        "agent_joined",
        "lease_granted",
        "lease_released",
    ]


def test_without_reserve_a_run_holds_nothing(project: Project) -> None:
    project.configure("[run]\nreserve = false")
    other(project).reserve_files(["src/**"])
    assert project.run().status == "APPROVED"
    assert project.asks("builder")[0].environment == {}
    assert held(project) == {"src/**": "other"}


def test_a_run_keeps_its_scope_while_it_waits_for_an_answer(project: Project) -> None:
    view = project.waiting("builder")
    assert view.phase == "waiting"
    assert held(project) == {"src/**": "run:HELLO-001.1"}
    (row,) = other(project).reserve_files(["src/a.txt"])["errors"]
    assert (row["code"], row.get("conflict", {}).get("holder_state")) == ("RSV201", "alive")


def test_a_run_that_an_agent_stopped_holds_nothing_and_goes_on(project: Project) -> None:
    def broken(_ask: Ask) -> str:
        raise RunnerError("nobody is at home", "Call again.")

    project.runners["builder"] = Scripted([broken, build()])
    run_id = project.start()
    with pytest.raises(RunnerError):
        project.drive(run_id)
    assert held(project) == {}
    steps = explain_run(view_run(run_id, root=project.root), project.root)["next"]
    assert steps == ["Call again.", f"Take the run on: interlock resume {run_id}"]
    assert project.drive(run_id).status == "APPROVED"
    assert held(project) == {}


def test_a_scope_that_cannot_be_reserved_is_an_error_with_a_fix(project: Project) -> None:
    run_id = project.start()
    (project.root / ".interlock" / "reservations.sqlite").write_text("no database")
    with pytest.raises(GraphError) as caught:
        project.drive(run_id)
    assert "RSV902" in caught.value.message
    assert caught.value.fix
    assert view_run(run_id, root=project.root).phase == "new"


# -- the wait queue ----------------------------------------------------------------------------------------------------


def test_a_run_whose_files_are_held_waits_says_for_whom_and_goes_on(project: Project) -> None:
    holder = other(project)
    (lease,) = holder.reserve_files(["src/greeting.txt"], "fixes it")["reservations"]
    steps, views = Steps(), list[RunView]()
    run_id = project.start()
    thread = threading.Thread(
        target=lambda: views.append(drive(run_id, root=project.root, runners=project.runners, notice=steps))
    )
    thread.start()
    steps.wait("queued")
    assert steps.kinds() == ["queued"]
    (blocker,) = steps.rows[0]["blockers"]
    assert (blocker["holder"], blocker["held_pattern"], blocker["state"]) == ("other", "src/greeting.txt", "alive")
    assert blocker["expires_in_seconds"] > 60
    assert project.asks("builder") == []
    holder.release_files([lease["reservation_id"]])
    thread.join(60)
    assert [view.status for view in views] == ["APPROVED"]
    assert steps.kinds()[1] == "unqueued"
    assert held(project) == {}


def test_a_call_that_cannot_wait_is_refused_and_nothing_was_done(project: Project) -> None:
    other(project).reserve_files(["src/**"])
    run_id = project.start()
    with pytest.raises(GraphError) as caught:
        drive(run_id, root=project.root, runners=project.runners, queue_seconds=0)
    assert "other" in caught.value.message
    assert "`src/**`" in caught.value.message
    assert view_run(run_id, root=project.root).phase == "new"


def kept(_leases: ScopeLeases) -> None:
    """Leave the events in the queue of a store that has no checkout."""


Worlds = Callable[..., tuple[World, Callable[[str], ScopeLeases]]]


@pytest.fixture
def world_of(monkeypatch: pytest.MonkeyPatch) -> Worlds:
    """Give the maker of a world whose clock is stopped, and of runs in it."""
    monkeypatch.setattr(ScopeLeases, "_drain", kept)

    def made(*patterns: str) -> tuple[World, Callable[[str], ScopeLeases]]:
        world = World()

        def run(run_id: str) -> ScopeLeases:
            caller = Caller(agent_of_run(run_id), "agent", ROOT, "run", "here", world.caller(run_id).pid, "once")
            return ScopeLeases(world.runtime, caller, list(patterns) or ["src/**"], f"run {run_id}")

        return world, run

    return made


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_run_that_waits_for_one_file_more_keeps_what_it_holds_when_its_process_ends(world_of: Worlds) -> None:
    world, run = world_of("src/a", "src/b")
    Reservations(world.runtime, run("T.1").caller).reserve_files(["src/a"])
    bob = world.agent("bob")
    bob.reserve_files(["src/b"])
    with pytest.raises(GraphError), run("T.1").held(queue_seconds=0):
        raise AssertionError("it was never granted")

    def killed() -> None:
        world.end_process("T.1")
        assert codes(bob.reserve_files(["src/a"])) == ["RSV201"]
        interrupt()

    world.pauses.append(killed)
    with pytest.raises(KeyboardInterrupt), run("T.1").held():
        raise AssertionError("it was never granted")
    world.now += 3600
    assert codes(bob.reserve_files(["src/a"])) == ["RSV201"]


# -- what lives and what dies ------------------------------------------------------------------------------------------

VICTIM = """
import os, signal, sys
from pathlib import Path
from interlock.graph.task.runs import drive, start_run
from interlock.graph.task.task import task_from_mapping
from tests.graph.conftest import GATES

def die(ask):
    os.kill(os.getpid(), signal.SIGKILL)

root = Path(sys.argv[1])
task = task_from_mapping({"task_id": "HELLO-001", "task": "Greet", "gates_required": list(GATES), "scope": ["src/**"]},
                         base=str(root))
roles = ("builder", "tester", "reviewer")
run_id = start_run(root, task, roles=roles)
drive(run_id, root=root, runners=dict.fromkeys(roles, die))
"""


@pytest.mark.long
def test_what_a_killed_run_held_can_be_taken_over_and_resuming_takes_it_again(project: Project) -> None:
    done = subprocess.run([sys.executable, "-c", VICTIM, str(project.root)], cwd=REPO, check=False, timeout=120)
    assert done.returncode == -9
    (row,) = other(project).check_conflicts(["src/**"])["conflicts"]
    assert (row["holder"], row["holder_state"]) == ("run:HELLO-001.1", "gone")
    taken = other(project).reserve_files(["src/greeting.txt"])
    assert [each["holder"] for each in taken.get("taken_over", [])] == ["run:HELLO-001.1"]
    with pytest.raises(GraphError):
        drive("HELLO-001.1", root=project.root, runners=project.runners, queue_seconds=0)
    other(project).release_all()
    assert project.drive("HELLO-001.1").status == "APPROVED"
    assert held(project) == {}


def test_what_is_left_of_a_run_at_its_end_is_given_back_when_it_is_resumed(project: Project) -> None:
    """Its process was killed between its last step and the release."""
    run_id = project.run().run_id
    open_reservations(str(project.root), name=agent_of_run(run_id)).reserve_files(["src/**"])
    assert project.drive(run_id).status == "APPROVED"
    assert held(project) == {}


def test_leases_live_through_a_turn_that_is_longer_than_they_are(world_of: Worlds) -> None:
    world, run = world_of()
    mine, steps = run("T.1"), Steps()
    with mine.held(steps):
        for _ in range(10):
            world.now += 10 * 60
            mine.renew_once()
            assert [row.agent for row in world.leases()] == ["run:T.1"]
            assert codes(world.agent("other").reserve_files(["src/a"])) == ["RSV201"]
        assert len({row.token for row in world.leases()}) == 1
        mine.finish()
    assert steps.kinds() == []


# -- while a person is waited for --------------------------------------------------------------------------------------


def later(project: Project, name: str, minutes: float) -> Reservations:
    """Return the calls of an agent whose clock is ahead."""
    calls = other(project, name)
    return Reservations(replace(calls.runtime, clock=lambda: time.time() + minutes * 60), calls.caller)


def test_a_run_that_waits_for_a_person_keeps_its_files_for_max_ttl_minutes(project: Project) -> None:
    project.configure("[reservations]\nmax_ttl_minutes = 120")
    view = project.waiting("reviewer")
    keep_files(view, root=project.root, worker="", client="cli")
    keep_files(view, root=project.root, worker="claude-1")
    assert held(project) == {"src/**": "run:HELLO-001.1"}, "who only judges gets no files"
    for minutes in (6, 20, 118):
        (row,) = later(project, "other", minutes).reserve_files(["src/a.txt"])["errors"]
        assert (row["code"], row.get("conflict", {}).get("holder_state")) == ("RSV201", "alive")
    assert later(project, "other", 122).reserve_files(["src/a.txt"])["errors"] == []
