"""Runs that a person ends for good, and the folders of ended ones."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import REMOTE, Remote
from interlock.gates.sealed import Store
from interlock.graph.ending import abandon, abandon_ticket, ended_runs, remove
from interlock.graph.engine.folder import beside_run, journal_path, list_runs
from interlock.graph.errors import GraphError
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore
from interlock.graph.ticket.explain import ticket_summary
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import verify_journal
from interlock.journal import Journal
from interlock.reservations import open_reservations
from tests import warm
from tests.graph.conftest import Project, Scripted, reviewing

DAY = 24 * 60 * 60


def test_an_abandoned_run_gives_up_its_files_and_nobody_takes_it_on(project: Project) -> None:
    view = project.waiting("reviewer")
    assert view.phase == "waiting"
    assert open_reservations(str(project.root), name="observer").current_state()["leases"]
    assert abandon(project.root, view.run_id)
    assert open_reservations(str(project.root), name="observer").current_state()["leases"] == []
    with pytest.raises(GraphError):
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
    with pytest.raises(GraphError):
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
    with pytest.raises(GraphError):
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
    assert [run.run_id for run in ended_runs(project.root)] == [done, blocked]
    assert [run.run_id for run in ended_runs(project.root, older_than_days=4)] == []
    remove(project.root, done)
    assert list_runs(project.root, "runs") == [blocked, waiting]
    assert len(project.entries()) == lines + 1
    assert [(entry.run, entry.type) for entry in project.entries()[lines:]] == [(f"{done}/beside", "pruned")]
    assert verify_journal(project.root).problems == ()
    assert project.start() not in (done, blocked, waiting)
    project.drop_last_line(done)
    assert [row.field for row in verify_journal(project.root).problems] == [done], "its end is pinned still"


def test_prune_goes_by_age_or_by_size_the_oldest_first_and_spares_what_an_open_run_needs(project: Project) -> None:
    old, new = (ended_by(project, Scripted([reviewing])) for _ in range(2))
    compiled = Store(project.root).folder / "bytecode/some/module.pyc"
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(b"x" * 3_000_000)
    for path, days in ((compiled, 10), *((path, 40) for path in RunStore(project.root, old).folder.iterdir())):
        before = path.stat().st_mtime - days * DAY
        os.utime(path, (before, before))

    def prune(*words: str) -> dict[str, Any]:
        done = warm.interlock(project.root, "prune", "--json", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def names(found: dict[str, Any]) -> list[str]:
        return [row["run_id"] for row in found["runs"]] + [Path(row["path"]).name for row in found["kept"]]

    assert names(prune("--dry-run")) == [old, new], "what gates keep goes only by age or size"
    assert names(prune("--dry-run", "--older", "30d")) == [old]
    assert names(prune("--dry-run", "--older", "3d")) == [old, "some"]
    total = prune("--dry-run")["total_bytes"]
    assert names(prune("--dry-run", "--max-size", f"{total / 1e6 - 1:.3f}MB")) == [old, "some"]
    assert names(prune("--dry-run", "--max-size", "2GB")) == []
    assert warm.interlock(project.root, "prune", "--older", "month").returncode == 2
    waiting = ended_by(project, REMOTE)
    said = warm.interlock(project.root, "prune", "--older", "3d", "--yes")
    assert f"since {waiting} can still go on" in said.stderr
    assert (list_runs(project.root, "runs"), compiled.exists()) == ([new, waiting], True)
    abandon(project.root, waiting)
    assert names(prune("--older", "3d", "--yes")) == ["some"]
    assert (list_runs(project.root, "runs"), compiled.exists()) == ([new, waiting], False)


def test_an_approved_run_in_a_tree_of_its_own_is_not_pruned_before_it_has_landed(project: Project) -> None:
    run = project.run().run_id
    path = RunStore(project.root, run).folder / "run.json"
    row = json.loads(path.read_text())
    path.write_text(json.dumps({**row, "policy": {**row["policy"], "tree": "t-1", "commit": "c"}}))
    assert list(ended_runs(project.root)) == []
    beside = Journal(journal_path(project.root))
    beside.append(beside_run(run), "landed", "landed", {"commit": "c0ffee", "target": "main"})
    assert [each.run_id for each in ended_runs(project.root)] == [run]
