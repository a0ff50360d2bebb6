"""Runs with overlapping scopes queue in place of colliding, say for whom, and give back what they held."""

import json
import signal
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
from interlock.graph import Watch, explain_run
from interlock.graph.errors import LeasesError, ScopeHeldError
from interlock.graph.feed import Feed
from interlock.graph.task.runs import RunView, drive, keep_files, view_run
from interlock.graph.task.scope_leases import SLICE_SECONDS, ScopeLeases
from interlock.reservations import Caller, Reservations, open_reservations, replace
from tests import warm
from tests.campaign.test_kills import greeting_project
from tests.graph.conftest import Project, Scripted, build, envelope, reviewing
from tests.reservations.world import ROOT, World, codes, ids

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
        "agent_joined", "lease_granted", "lease_released",
    ]  # fmt: skip


def test_a_blocked_run_gives_its_scope_back_too(project: Project) -> None:
    reason = "GATE-TESTS: no"
    project.runners["builder"] = Scripted([lambda ask: envelope(ask, "BLOCKED", fail_reasons=(reason,))])
    view = project.run()
    assert (view.phase, view.status, view.values["fail_reasons"]) == ("done", "BLOCKED", [reason])
    assert held(project) == {}


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


def test_a_run_that_an_agent_stopped_keeps_its_scope_and_goes_on(project: Project) -> None:
    def broken(_ask: Ask) -> str:
        raise RunnerError("nobody is at home", "Call again.")

    project.runners["builder"] = Scripted([broken, build()])
    run_id = project.start()
    with pytest.raises(RunnerError):
        project.drive(run_id)
    assert held(project) == {"src/**": "run:HELLO-001.1"}
    assert project.drive(run_id).status == "APPROVED"
    assert held(project) == {}


def test_a_scope_that_cannot_be_reserved_is_an_error_with_a_fix(project: Project) -> None:
    run_id = project.start()
    (project.root / ".interlock" / "reservations.sqlite").write_text("no database")
    with pytest.raises(LeasesError) as caught:
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
    with pytest.raises(ScopeHeldError) as caught:
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


def test_a_long_wait_reports_again_and_keeps_its_place(world_of: Worlds) -> None:
    world, run = world_of()
    holder = world.agent("holder")
    (lease,) = holder.reserve_files(["src/a"])["reservations"]
    behind = world.agent("behind")
    steps = Steps()

    def release_after_three(step: Step) -> None:
        steps(step)
        if steps.kinds().count("queued") == 2:
            assert codes(behind.reserve_files(["src/a"])) == ["RSV201"]
            holder.reserve_files(["src/a"])
        if steps.kinds().count("queued") == 3:
            holder.release_files([lease["reservation_id"]])

    with run("T.1").held(release_after_three):
        assert [row.agent for row in world.leases()] == ["run:T.1"]
    assert steps.kinds() == ["queued", "queued", "queued", "unqueued"]
    waits = [row["waited_seconds"] for row in steps.rows]
    assert waits[0] == 0
    assert waits[1] >= SLICE_SECONDS
    assert waits[2] >= 2 * SLICE_SECONDS


def test_a_wait_that_is_interrupted_gives_up_its_place(world_of: Worlds) -> None:
    world, run = world_of()
    world.agent("holder").reserve_files(["src/a"])

    world.pauses.append(interrupt)
    with pytest.raises(KeyboardInterrupt), run("T.1").held():
        raise AssertionError("it was never granted")
    assert world.waiters() == []


def test_a_run_that_is_interrupted_while_it_waits_to_go_on_keeps_what_it_held(world_of: Worlds) -> None:
    world, run = world_of("src/a", "src/b")
    with pytest.raises(RuntimeError), run("T.1").held():
        raise RuntimeError("the agent stopped")
    (lost,) = [row for row in world.leases() if row.pattern == "src/b"]
    Reservations(world.runtime, run("T.1").caller).release_files([lost.reservation_id])
    world.agent("ann").reserve_files(["src/b"])

    world.pauses.append(interrupt)
    with pytest.raises(KeyboardInterrupt), run("T.1").held():
        raise AssertionError("it was never granted")
    assert {row.pattern: row.agent for row in world.leases()} == {"src/a": "run:T.1", "src/b": "ann"}
    assert world.waiters() == []


def test_a_run_that_waits_for_one_file_more_keeps_what_it_holds_when_its_process_ends(world_of: Worlds) -> None:
    world, run = world_of("src/a", "src/b")
    Reservations(world.runtime, run("T.1").caller).reserve_files(["src/a"])
    bob = world.agent("bob")
    bob.reserve_files(["src/b"])
    with pytest.raises(ScopeHeldError), run("T.1").held(queue_seconds=0):
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


def test_a_run_that_would_close_a_circle_keeps_what_has_unsaved_work_and_says_so(world_of: Worlds) -> None:
    world, run = world_of("src/**", "docs/**")
    mine, theirs = run("T.1"), world.agent("theirs")
    Reservations(world.runtime, mine.caller).reserve_files(["docs/x", "docs/y"])
    world.unsaved.add("docs/x")
    theirs.reserve_files(["src/x"])
    assert codes(theirs.reserve_files(["docs/x"], wait_seconds=1)) == ["RSV201"]
    with pytest.raises(LeasesError) as caught, mine.held():
        raise AssertionError("it was never granted")
    assert "RSV204" in caught.value.message
    assert "docs/x" in caught.value.message
    assert "(INTERLOCK_AGENT_ID=run:T.1 interlock release --all)" in caught.value.fix
    assert {row.pattern: row.agent for row in world.leases()} == {"docs/x": "run:T.1", "src/x": "theirs"}
    assert world.waiters() == ["theirs"]


def test_a_run_that_would_close_a_circle_gives_up_what_it_holds_and_waits(world_of: Worlds) -> None:
    world, run = world_of("src/**", "docs/**")
    mine, theirs, steps = run("T.1"), world.agent("theirs"), Steps()
    Reservations(world.runtime, mine.caller).reserve_files(["docs/x"])
    theirs.reserve_files(["src/x"])
    assert codes(theirs.reserve_files(["docs/x"], wait_seconds=1)) == ["RSV201"]

    def notice(step: Step) -> None:
        steps(step)
        if step["kind"] == "queued" and any(row["code"] == "RSV204" for row in world.events("lease_refused")):
            assert [row.pattern for row in world.leases() if row.agent == "theirs"] == ["src/x", "docs/x"]
            theirs.release_all()

    with mine.held(notice):
        assert {row.agent for row in world.leases()} == {"run:T.1"}
    assert steps.kinds() == ["queued", "queued", "unqueued"]


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
    with pytest.raises(ScopeHeldError):
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


def test_resuming_a_run_at_its_end_makes_no_store_and_minds_no_damaged_one(project: Project) -> None:
    run_id = project.run().run_id
    store = project.root / ".interlock" / "reservations.sqlite"
    store.unlink()
    assert project.drive(run_id).status == "APPROVED"
    assert not store.exists()
    store.write_text("no database")
    steps = Steps()
    assert drive(run_id, root=project.root, runners=project.runners, notice=steps).status == "APPROVED"
    assert steps.kinds() == ["leases_trouble"]


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


def test_a_run_that_slept_past_its_lease_gets_one_notice_of_who_has_its_files(world_of: Worlds) -> None:
    world, run = world_of()
    mine, steps = run("T.1"), Steps()
    with mine.held(steps):
        world.now += 3600
        assert codes(world.agent("other").reserve_files(["src/a"])) == []
        mine.renew_once()
        mine.renew_once()
        assert steps.kinds() == ["scope_lost"]
        assert steps.rows[0]["blockers"][0]["holder"] == "other"
        world.agent("other").release_all()
        mine.renew_once()
        assert [row.agent for row in world.leases()] == ["run:T.1"]
        assert steps.kinds() == ["scope_lost", "leases_trouble"]
        assert world.agent("other").lost_by(["run:T.1"]) == {}


@pytest.mark.long
def test_a_command_that_waits_says_for_whom_and_an_interrupt_gives_up_its_place(tmp_path: Path) -> None:
    root = tmp_path / "project"
    task = greeting_project(root)
    holder = open_reservations(str(root), "mcp", name="other")
    assert holder.reserve_files(["src/**"], "fixes it")["errors"] == []
    command = [sys.executable, "-m", "interlock", "run", str(task), "--root", str(root)]
    with subprocess.Popen(command, cwd=REPO, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        assert any("waiting in the queue" in line for line in lines)
        assert "other (alive) holds `src/**`" in next(lines)
        running.send_signal(signal.SIGINT)
        assert "interlock resume HELLO-001.1" in running.stderr.read()
    assert running.returncode == 130
    holder.release_all()
    standing = holder.current_state()
    assert (standing["leases"], standing["waiters"]) == ([], [])
    done = warm.interlock(REPO, "resume", "HELLO-001.1", "--root", str(root))
    assert done.returncode == 0, done.stderr
    assert holder.current_state()["leases"] == []


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


def test_a_run_that_lost_its_files_while_it_waited_says_who_has_them_until_it_holds_them_again(
    project: Project,
) -> None:
    run_id = project.waiting("reviewer").run_id
    late = later(project, "other", 1450)
    late.current_state()
    assert [each["wait"] for each in Watch(project.root).look().waits if each["wait"] == "files"] == ["files"]
    late.reserve_files(["src/a.txt"])
    (wait,) = [each for each in Watch(project.root).look().waits if each["wait"] == "files"]
    assert (wait["run_id"], wait["text"].startswith("other ")) == (run_id, True)
    feed = Feed(project.root)
    feed.catch_up()
    assert "lease_expired" in [line.type for line in feed.log_lines(run_id)]
    explained = explain_run(view_run(run_id, root=project.root), project.root)
    assert explained["files_lost"][0]["by"] == "other"
    late.release_all()
    project.runners["reviewer"] = Scripted([reviewing])
    steps = Steps()
    drive(run_id, root=project.root, runners=project.runners, notice=steps, answers={"reviewer": ""})
    assert [row["code"] for row in steps.rows if row["kind"] == "leases_trouble"] == ["RSV211"]
    assert [each for each in Watch(project.root).look().waits if each["wait"] == "files"] == []


def test_a_run_that_an_agent_stopped_is_nobodys_process_and_alive(world_of: Worlds) -> None:
    world, run = world_of()
    with pytest.raises(RunnerError), run("T.1").held():
        raise RunnerError("nobody is at home", "Call again.")
    world.end_process("T.1")
    world.now += 3600
    (row,) = world.agent("other").reserve_files(["src/a"])["errors"]
    assert row.get("conflict", {}).get("holder_state") == "alive"


def test_the_idempotency_keys_of_an_agent_do_not_touch_what_is_remembered_of_its_run(world_of: Worlds) -> None:
    world, run = world_of()
    calls, steps = Reservations(world.runtime, run("T.1").caller), Steps()
    calls.reserve_files(["src/**"])
    for key in ("lost", "lent"):
        assert calls.send_message("run:T.1", "a note", "note", key)["errors"] == []
    world.now += 3600
    assert [lost.pattern for lost in world.agent("other").lost_by(["run:T.1"])["run:T.1"]] == ["src/**"]
    with run("T.1").held(steps):
        assert calls.lost_by(["run:T.1"]) == {}
    assert steps.kinds() == ["leases_trouble"]


def test_what_a_worker_loses_of_the_files_that_it_was_lent_the_run_has_lost(world_of: Worlds) -> None:
    world, run = world_of()
    calls = Reservations(world.runtime, run("T.1").caller)
    calls.reserve_files(["src/**"])
    run("T.1").lend(world.caller("worker"))
    world.end_process("worker")
    world.agent("other").reserve_files(["src/a"])
    assert [(lost.pattern, lost.by) for lost in calls.lost_by(["run:T.1"])["run:T.1"]] == [("src/**", "other")]


def test_what_an_older_version_lent_is_taken_back(world_of: Worlds) -> None:
    world, run = world_of()
    lent = ids(world.agent("worker").reserve_files(["src/**"]))
    with world.store.transaction() as tx:
        tx.remember("run:T.1", "lent", "", json.dumps(lent), world.now)
    with run("T.1").held():
        assert [row.agent for row in world.leases()] == ["run:T.1"]
