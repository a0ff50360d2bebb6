"""What waits in a project, and that a board reads on instead of anew."""

import os

import pytest

from interlock.graph import abandon, board
from interlock.graph.board import Board
from interlock.graph.task.store import RunStore
from interlock.reservations import identity, open_reservations
from tests.graph.conftest import Project


def waits(found: Board) -> list[tuple[str, str]]:
    """Return what waits now, and the command that goes on from there."""
    found.refresh()
    return [(each.wait.kind, each.wait.command.split()[1]) for each in found.waiting()]


def test_what_waits_for_a_person_is_of_runs_and_of_those_who_ask_for_a_file(project: Project) -> None:
    project.waiting("reviewer")
    me = identity.person(os.environ)
    ann, bob, carl = (open_reservations(str(project.root), "cli", name=name) for name in (me, "bob", "carl"))
    ann.reserve_files(["docs/**"], "writes")
    carl.reserve_files(["test/**"], "writes")
    bob.negotiate_release("test/a", "between others", "normal")
    bob.negotiate_release("docs/a", "for a fix", "normal")
    assert waits(Board(project.root)) == [("negotiation", "respond"), ("review", "ask")]


def test_a_run_that_was_begun_and_never_driven_waits_until_it_is_abandoned(project: Project) -> None:
    run_id = project.start()
    found = Board(project.root)
    assert (waits(found), found.at_work(run_id)) == ([("cut off", "resume")], "")
    with RunStore(project.root, run_id).locked():
        assert (waits(found), found.at_work(run_id)) == ([], "at work")
    abandon(project.root, run_id)
    assert waits(found) == []
    assert [(row.over, row.abandoned) for row in found.feed.newest()] == [(True, True)]


def test_a_thousand_runs_that_did_not_move_are_not_read_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.configure("[run]\nreserve = false")
    project.waiting("reviewer")
    found = Board(project.root)
    before = waits(found)
    read: list[str] = []
    whole = board.view_run

    def view_run(run_id: str, **named: object) -> object:
        read.append(run_id)
        return whole(run_id, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(board, "view_run", view_run)
    position = found.feed.position
    assert waits(found) == before
    assert (read, found.feed.position) == ([], position)
    second = project.waiting("reviewer").run_id
    assert len(waits(found)) == 2
    assert read == [second]
