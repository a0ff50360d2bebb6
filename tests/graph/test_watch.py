"""What a look at a project finds, and that it reads on instead of anew."""

import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from interlock.graph import Tickets, Watch, abandon, board, journal_path
from interlock.graph.task.progress import Progress
from interlock.graph.task.store import RunStore
from interlock.redaction import redactor_for
from interlock.reservations import identity, open_reservations
from tests.graph.conftest import Project, Scripted, build

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = "2026-01-02T03:04:05.000Z"


def test_a_look_has_runs_tickets_leases_the_queue_and_what_waits(project: Project) -> None:
    view = project.waiting("reviewer")
    Tickets(project.root).begin("SHOP-7", "SHOP-7.1")
    me = identity.person(os.environ)
    ann, bob, carl = (open_reservations(str(project.root), "cli", name=name) for name in (me, "bob", "carl"))
    ann.reserve_files(["docs/**"], "writes")
    carl.reserve_files(["test/**"], "writes")
    bob.negotiate_release("test/a", "between others", "normal")
    bob.negotiate_release("docs/a", "for a fix", "normal")
    look = Watch(project.root).look()
    assert [(row["run_id"], row["of"], row["state"]) for row in look.runs] == [
        ("SHOP-7.1", "ticket", "at its agent"), (view.run_id, "task", "review"),
    ]  # fmt: skip
    assert {row["holder"] for row in look.leases} == {me, "carl", f"run:{view.run_id}"}
    assert [(row["agent"], row["patterns"]) for row in look.queue] == [("bob", ["test/a"]), ("bob", ["docs/a"])]
    assert [(row["wait"], row["next"].split()[1]) for row in look.waits] == [
        ("negotiation", "respond"),
        ("review", "ask"),
    ]
    alone = Watch(project.root, view.run_id).look()
    assert [row["run_id"] for row in alone.runs] == [view.run_id]
    assert ([row["holder"] for row in alone.leases], alone.queue) == ([f"run:{view.run_id}"], [])
    assert [row["wait"] for row in alone.waits] == ["review"]


def test_a_file_that_was_granted_to_the_person_meanwhile_waits_for_them_with_its_time(project: Project) -> None:
    me = open_reservations(str(project.root), "cli", name=identity.person(os.environ))
    bob = open_reservations(str(project.root), "cli", name="bob")
    bob.reserve_files(["docs/a b"])
    me.negotiate_release("docs/a b", "for a fix", "normal")
    assert Watch(project.root).look().waits == []
    bob.release_all()
    (wait,) = Watch(project.root).look().waits
    assert (wait["wait"], wait["next"]) == ("claim", "interlock reserve 'docs/a b'")
    assert wait["text"].endswith(": 2 min left")


def test_who_is_at_work_in_a_driven_run_is_seen_as_its_progress_grows(project: Project) -> None:
    run_id = project.waiting("builder").run_id
    store, watch = RunStore(project.root, run_id), Watch(project.root, run_id)
    progress = Progress(store, redactor_for(project.root), now=lambda: AT)
    (row,) = watch.look().runs
    assert (row["state"], row["at_work"]) == ("answer", [])

    def awaited(*notices: Mapping[str, object]) -> list[tuple[str, str, str, object]]:
        for notice in notices:
            progress.write(notice)
        (row,) = watch.look().runs
        assert row["state"] == "at work"
        return [(each["name"], each["doing"], each["since"], each["tokens"]) for each in row["at_work"]]

    with store.locked():
        asking = {"kind": "asking", "role": "builder", "attempt": 1, "reask": 0}
        rows = awaited({"kind": "answered", "role": "builder"}, asking)
        assert rows == [("builder", "at work", STAMP, None)]
        rows = awaited({"kind": "working", "role": "builder", "tool": "Edit", "calls": 1, "tokens": 7})
        assert rows == [("builder", "Edit", STAMP, 7)]
        rows = awaited(
            {"kind": "answered", "role": "builder"}, {"kind": "collecting", "role": "tester", "gate": "GATE-X"}
        )
        assert rows == [("GATE-X", "collecting evidence", STAMP, None)]
        rows = awaited({"kind": "collected", "gate": "GATE-X"}, {"kind": "queued", "blockers": []})
        assert rows == [("files", "waits for files that others hold", STAMP, None)]
        assert awaited({"kind": "unqueued"}, {"kind": "asking"}, {"kind": "working", "tokens": "many"}) == []
    assert watch.look().runs[0]["state"] == "answer"


def test_a_run_that_was_begun_and_never_driven_is_seen_until_it_is_abandoned(project: Project) -> None:
    run_id = project.start()
    watch = Watch(project.root)
    look = watch.look()
    assert [(row["run_id"], row["state"], row["status"]) for row in look.runs] == [(run_id, "cut off", None)]
    assert [(row["run_id"], row["next"]) for row in look.waits] == [(run_id, f"interlock resume {run_id}")]
    assert [row["state"] for row in Watch(project.root, run_id).look().runs] == ["cut off"]
    with RunStore(project.root, run_id).locked():
        assert ([row["state"] for row in watch.look().runs], watch.look().waits) == (["at work"], [])
    abandon(project.root, run_id)
    assert ([row["state"] for row in watch.look().runs], watch.look().waits) == (["abandoned"], [])
    assert [row["state"] for row in Watch(project.root).look().runs] == ["abandoned"]


@pytest.mark.parametrize(("runner", "state"), [("good", "ended"), ("blocked", "blocked"), ("abandoned", "abandoned")])
def test_a_run_that_is_over_says_how(project: Project, runner: str, state: str) -> None:
    if runner == "blocked":
        project.runners["builder"] = Scripted([build("hi\n")])
    run_id = project.waiting("builder").run_id if runner == "abandoned" else project.run().run_id
    if runner == "abandoned":
        abandon(project.root, run_id)
    assert [row["state"] for row in Watch(project.root).look().runs] == [state]


def test_a_thousand_runs_that_did_not_move_are_not_read_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.configure("[run]\nreserve = false")
    project.waiting("reviewer")
    watch = Watch(project.root)
    before = watch.look()
    read: list[str] = []
    whole = board.view_run

    def view_run(run_id: str, **named: object) -> object:
        read.append(run_id)
        return whole(run_id, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(board, "view_run", view_run)
    position = watch.board.feed.position
    assert watch.look() == before
    assert (read, watch.board.feed.position) == ([], position)
    second = project.waiting("reviewer").run_id
    assert watch.look().runs[0]["run_id"] == second
    assert read == [second]


def test_a_journal_that_is_written_or_damaged_and_a_run_that_is_gone_end_no_look(project: Project) -> None:
    run_id = project.waiting("reviewer").run_id
    watch, path = Watch(project.root), journal_path(project.root)
    with path.open("ab") as file:
        file.write(b'{"half of a')
    assert ([row["state"] for row in watch.look().runs], watch.look().damaged) == (["review"], "")
    with path.open("ab") as file:
        file.write(b" line\n")
    look = watch.look()
    assert ([row["state"] for row in look.runs], "not JSON" in look.damaged) == (["review"], True)
    shutil.rmtree(project.root / ".interlock/runs" / run_id)
    look = watch.look()
    assert (look.runs, look.waits) == ([], [])
