"""Runs that a person ends for good, and the folders of ended ones."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import REMOTE, Remote
from interlock.graph.ending import abandon, abandon_ticket, ended_runs, remove
from interlock.graph.engine.folder import list_runs
from interlock.graph.errors import RunAbandonedError, UnknownRunError
from interlock.graph.task import runs
from interlock.graph.task.build import task_graph
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore, write_atomically
from interlock.graph.task.task import Task
from interlock.graph.ticket.explain import find_ticket_run, ticket_summary
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import verify_journal
from interlock.reservations import open_reservations
from tests.graph.conftest import Project, Scripted, reviewing

DAY = 24 * 60 * 60


def test_the_newest_run_is_the_one_that_was_made_last_whatever_the_times_of_its_files(project: Project) -> None:
    first, second = project.start(), project.start()
    os.utime(project.root / f".interlock/runs/{first}/run.json")
    assert list_runs(project.root, "runs") == [first, second]
    (project.root / f".interlock/runs/{first}/made").unlink()
    assert list_runs(project.root, "runs") == [second, first], "a run of an older version goes by the time of its file"


def test_the_newest_ticket_run_is_the_one_that_was_made_last(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path)
    for run_id in ("b", "a"):
        tickets.begin("T-1", run_id)
    os.utime(tmp_path / ".interlock/tickets/b/run.json")
    assert find_ticket_run(tmp_path, "T-1") == "a"


def test_the_answer_to_a_second_run_of_a_ticket_names_the_open_one(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path)
    assert tickets.begin("T-1", "a")["reason"] == "Run a has begun."
    assert "Run a of T-1 is open too, in fetch_ticket" in tickets.begin("T-1", "b")["reason"]
    assert tickets.begin("T-2", "c")["reason"] == "Run c has begun."
    assert tickets.begin("T-1", "d", caller="another")["reason"] == "Run d has begun."
    for run_id in ("a", "b"):
        assert abandon_ticket(tmp_path, run_id)
    assert tickets.begin("T-1", "e")["reason"] == "Run e has begun."


@pytest.mark.parametrize(("length", "legal"), [(128, True), (129, False)])
def test_runs_of_tasks_and_tickets_have_names_of_one_length(project: Project, length: int, *, legal: bool) -> None:
    name = "a" * length
    begun = Tickets(project.root).begin("T-1", name)
    assert (begun["gate_result"]["status"] == "pass") is legal
    if legal:
        assert project.start(name) == name
    else:
        with pytest.raises(UnknownRunError):
            RunStore(project.root, name)


def test_a_file_that_is_written_whole_is_on_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []

    def sync(number: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(number).st_mode))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(tmp_path / "file", b"x")
    assert synced == [False, True]


@pytest.mark.long
def test_many_runs_are_read_with_one_graph(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [project.run().run_id for _ in range(2)]
    alone = [view_run(name, root=project.root) for name in names]
    compiled: list[str] = []

    def counted(task: Task, **more: Any) -> Any:
        compiled.append(task.task_id)
        return task_graph(task, **more)

    monkeypatch.setattr(runs, "task_graph", counted)
    graphs: runs.Graphs = {}
    assert [view_run(name, root=project.root, graphs=graphs) for name in names] == alone
    assert len(compiled) == 1


def test_an_abandoned_run_gives_up_its_files_and_nobody_takes_it_on(project: Project) -> None:
    view = project.waiting("reviewer")
    assert view.phase == "waiting"
    assert open_reservations(str(project.root), name="observer").current_state()["leases"]
    assert abandon(project.root, view.run_id)
    assert open_reservations(str(project.root), name="observer").current_state()["leases"] == []
    with pytest.raises(RunAbandonedError):
        project.drive(view.run_id)
    seen = view_run(view.run_id, root=project.root)
    assert (seen.phase, seen.abandoned, seen.waiting) == ("done", True, ())
    assert not abandon(project.root, view.run_id), "once is enough"
    assert len(project.entries("abandoned")) == 1
    assert verify_journal(project.root).problems == ()


def test_a_run_that_has_ended_is_not_abandoned(project: Project) -> None:
    view = project.run()
    assert not abandon(project.root, view.run_id)
    assert project.entries("abandoned") == []
    assert project.drive(view.run_id).status == "APPROVED"


def test_an_abandoned_run_that_never_began_stays_so(project: Project) -> None:
    run_id = project.start()
    assert abandon(project.root, run_id)
    assert view_run(run_id, root=project.root).phase == "done"
    with pytest.raises(RunAbandonedError):
        project.drive(run_id)


def test_an_abandoned_ticket_waits_for_nothing_and_takes_nothing(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path)
    run_id = "one"
    tickets.begin("T-1", run_id)
    assert ticket_summary(tickets, run_id)["waits_for"]
    assert abandon_ticket(tmp_path, run_id)
    assert not abandon_ticket(tmp_path, run_id)
    summary = ticket_summary(tickets, run_id)
    assert (summary["terminal"], summary["abandoned"], summary["waits_for"]) == (True, True, [])
    with pytest.raises(RunAbandonedError):
        tickets.submit_payload(run_id, 1, {})
    assert verify_journal(tmp_path).problems == ()


def ended_by(project: Project, reviewer: Scripted | Remote) -> str:
    """Run the task on fresh files with a reviewer, and return the run."""
    (project.root / "src/greeting.txt").unlink(missing_ok=True)
    project.runners["reviewer"] = reviewer
    return project.run().run_id


def test_only_runs_that_are_over_are_pruned_and_the_journal_keeps_them(project: Project) -> None:
    done, blocked, waiting = (ended_by(project, runner) for runner in (Scripted([reviewing]), Scripted(["no"]), REMOTE))
    lines = len(project.entries())
    folder = RunStore(project.root, done).folder
    for path in folder.iterdir():
        before = path.stat().st_mtime - 3 * DAY
        os.utime(path, (before, before))
    assert [run.run_id for run in ended_runs(project.root)] == [done], "a reviewer that failed can be asked again"
    assert [run.run_id for run in ended_runs(project.root, older_than_days=4)] == []
    remove(project.root, done)
    assert list_runs(project.root, "runs") == [blocked, waiting]
    assert len(project.entries()) == lines
    assert verify_journal(project.root).problems == ()
    assert project.start() not in (done, blocked, waiting)
    project.drop_last_line(done)
    assert [row.field for row in verify_journal(project.root).problems] == [done], "its end is pinned still"
