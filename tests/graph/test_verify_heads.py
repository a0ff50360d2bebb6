"""A head that was kept of a finished run finds every later change to the journal of that run, and no work of others."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from interlock.graph.ending import abandon
from interlock.graph.task.runs import RunView, start_run
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import verify_journal
from interlock.journal import Head, Journal
from tests.graph.conftest import Project, Scripted, envelope

Lines = list[bytes]


def blocked(project: Project) -> None:
    """Let the run end BLOCKED: its builder gives up."""
    reasons = ("GATE-TESTS: the brief is missing",)
    project.runners["builder"] = Scripted([lambda ask: envelope(ask, "BLOCKED", fail_reasons=reasons)])


def approved(project: Project) -> None:
    """Let the run end APPROVED, as it does."""


def journal_of(project: Project) -> Journal:
    return Journal(project.root / "artifacts/interlock/events.jsonl")


def append_approval(project: Project, run_id: str) -> None:
    """Write what a forger writes: a line with a hash that fits."""
    journal_of(project).append(run_id, "9.9/status/APPROVED", "status", {"to": "APPROVED"})


def append_two(project: Project, run_id: str) -> None:
    append_approval(project, run_id)
    journal_of(project).append(run_id, "runner_failed/9", "runner_failed", {"role": "builder"})


def harmed(change: Callable[[Lines, list[int]], Lines]) -> Callable[[Project, str], None]:
    """Change the lines of a file; the change is given the places of the run's lines."""

    def harm(project: Project, run_id: str) -> None:
        path = journal_of(project).path
        lines = path.read_bytes().splitlines(keepends=True)
        places = [at for at, line in enumerate(lines) if json.loads(line)["run"] == run_id]
        path.write_bytes(b"".join(change(lines, places)))

    return harm


def without(lines: Lines, *gone: int) -> Lines:
    return [line for at, line in enumerate(lines) if at not in gone]


def swapped(lines: Lines, at: list[int]) -> Lines:
    lines[at[-1]], lines[at[-2]] = lines[at[-2]], lines[at[-1]]
    return lines


HARMS: dict[str, Callable[[Project, str], None]] = {
    "a line appended": append_approval,
    "two lines appended": append_two,
    "the last line repeated": harmed(lambda lines, at: [*lines, lines[at[-1]]]),
    "the last line cut": harmed(lambda lines, at: without(lines, at[-1])),
    "the last three lines cut": harmed(lambda lines, at: without(lines, *at[-3:])),
    "a line in the middle cut": harmed(lambda lines, at: without(lines, at[2])),
    "the last two lines swapped": harmed(swapped),
    "a value changed": harmed(lambda lines, at: [line.replace(b"HELLO", b"HELLA") for line in lines]),
}


def head_of(view: RunView) -> Head:
    assert view.head is not None
    return view.head


@pytest.mark.parametrize("clone", [False, True], ids=["here", "in a clone"])
def test_every_later_change_is_found_by_the_head(project: Project, clone: bool) -> None:
    view = project.run()
    given = [(view.run_id, head_of(view))]
    if clone:
        shutil.rmtree(project.root / ".interlock")
    path = journal_of(project).path
    whole = path.read_bytes()
    assert verify_journal(project.root, given).problems == ()
    for name, harm in HARMS.items():
        path.write_bytes(whole)
        harm(project, view.run_id)
        assert verify_journal(project.root, given).problems, name


@pytest.mark.parametrize("end", [approved, blocked])
def test_lines_behind_the_end_of_a_finished_run_are_found_without_a_head(
    project: Project, end: Callable[[Project], None]
) -> None:
    end(project)
    append_approval(project, project.run().run_id)
    assert [item.code for item in verify_journal(project.root).problems] == ["JRN714"]


def test_a_run_that_was_abandoned_ends_with_the_line_that_says_so(project: Project) -> None:
    view = project.waiting("tester")
    assert abandon(project.root, view.run_id)
    assert verify_journal(project.root).problems == ()
    last = [entry for entry in project.entries() if entry.run == view.run_id][-1]
    assert verify_journal(project.root, [(view.run_id, Head(last.seq, last.hash))]).problems == ()
    append_approval(project, view.run_id)
    found = verify_journal(project.root, [(view.run_id, Head(last.seq, last.hash))])
    assert [item.code for item in found.problems] == ["JRN714"]


def test_a_checkout_that_cannot_be_written_is_verified_and_left_as_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a read-only disk: nothing is opened for writing, and nothing is missed."""
    given = [(view.run_id, head_of(view)) for view in [project.run()]]
    tickets = Tickets(project.root)
    tickets.begin("SHOP-7", "run-1")
    state = sorted(path for path in project.root.rglob("*.sqlite*") if path.is_file())
    before = [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in state]
    assert len(before) >= 3

    def no_writing(path: str, mode: int) -> bool:
        return mode != os.W_OK

    with monkeypatch.context() as patch:
        patch.setattr("os.access", no_writing)
        found = verify_journal(project.root, given)
        assert (found.verdict, found.heads) == ("whole", 2)
        append_approval(project, given[0][0])
        assert [item.code for item in verify_journal(project.root, given).problems] == ["JRN714"]
    assert [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in state] == before


def test_the_reservations_go_on_after_any_head(project: Project) -> None:
    """They are a run of the journal that never ends."""
    project.run()
    begun = next(entry for entry in project.entries() if entry.run == "reservations")
    start_run(project.root, replace(project.task, task_id="HELLO-002"), roles=tuple(project.runners))
    assert verify_journal(project.root, [("reservations", Head(begun.seq, begun.hash))]).problems == ()
