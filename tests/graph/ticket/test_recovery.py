"""What a killed call leaves is finished by the next one: nothing lost, nothing doubled, nothing half done."""

import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from interlock.gates.errors import TreeError
from interlock.graph.engine.folder import copies_dir, journal_path, journal_run
from interlock.graph.errors import RunDamagedError
from interlock.graph.ticket.contract import Ticket
from interlock.graph.ticket.explain import all_summaries
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import verify_journal
from tests.graph.ticket.walk import PAYLOADS, STATES, do_the_work, events, filled, ticket_of, walk_to


class CutOffError(Exception):
    """Simulates the end of the process."""


def _cut(*_args: object, **_kwargs: object) -> None:
    raise CutOffError


PLACES: dict[str, Callable[[Tickets, pytest.MonkeyPatch], None]] = {
    "in the node": lambda _tickets, patch: patch.setattr("interlock.graph.ticket.build.judge_stage", _cut),
    "before the lines": lambda tickets, patch: patch.setattr(tickets.journal, "extend", _cut),
    "before the copies": lambda _tickets, patch: patch.setattr(
        "interlock.graph.ticket.store.TicketStore.write_copies", _cut
    ),
    "before the snapshot": lambda tickets, patch: patch.setattr(tickets.snapshots, "append", _cut),
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("step", range(7))
def test_a_call_that_was_cut_off_is_finished_by_the_next(
    root: Path, place: str, step: int, monkeypatch: pytest.MonkeyPatch, tickets: Tickets
) -> None:
    walk_to(tickets, STATES[step])
    given = filled(tickets.ticket("run-1"))
    if given["state"] == "act_via_tools":
        do_the_work(root)
    with monkeypatch.context() as patch:
        PLACES[place](tickets, patch)
        with pytest.raises(CutOffError):
            tickets.submit(given)
    left = verify_journal(root)
    assert (left.problems, len(left.carried)) == ((), 0 if place == "in the node" else 1)
    again = Tickets(root)
    answer = again.submit(given)
    assert answer["gate_result"]["status"] == "pass"
    assert ticket_of(answer) == again.ticket("run-1")
    assert ticket_of(answer)["revision"] == given["revision"] + 1
    keys = [entry.key for entry in again.journal.entries(journal_run("run-1"))]
    assert len(set(keys)) == len(keys) == 1 + 3 * (step + 1)
    assert (copies_dir(root, "run-1") / f"{STATES[step]}.json").exists()
    assert verify_journal(root).carried == ()


@pytest.mark.parametrize("place", ["lines", "snapshot"])
def test_a_begin_that_was_cut_off_is_finished_by_the_next(
    root: Path, place: str, monkeypatch: pytest.MonkeyPatch, tickets: Tickets
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tickets.journal if place == "lines" else tickets.snapshots, "extend", _cut)
        with pytest.raises(CutOffError):
            tickets.begin("SHOP-7", "run-1")
    assert verify_journal(root).problems == ()
    again = Tickets(root)
    assert ticket_of(again.begin("SHOP-7", "run-1"))["revision"] == 1
    assert events(again) == ["run_started"]


def test_a_run_without_its_checkpoint_is_damaged_and_goes_no_further(root: Path, tickets: Tickets) -> None:
    walk_to(tickets, "extract_requirements")
    for path in (root / ".interlock" / "tickets").glob("checkpoints.sqlite*"):
        path.unlink()
    again = Tickets(root)
    lines = events(again)
    for call in (
        lambda: again.status("run-1"),
        lambda: again.begin("SHOP-7", "run-1"),
        lambda: again.submit_payload("run-1", 2, PAYLOADS["extract_requirements"]),
    ):
        with pytest.raises(RunDamagedError, match="no checkpoint"):
            call()
    assert events(again) == lines
    assert [row["run_id"] for row in all_summaries(root).damaged] == ["ticket:run-1"]


def _without_end(root: Path, lines: int) -> None:
    path = Tickets(root).journal.path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def _other_listing(root: Path) -> None:
    for path in (root / ".interlock" / "tickets" / "run-1" / "trees").iterdir():
        path.write_text(json.dumps({}))


@pytest.mark.parametrize("harm", [partial(_without_end, lines=4), _other_listing], ids=["last lines", "listing"])
def test_a_journal_that_lost_more_than_the_last_step_and_a_listing_that_was_changed_are_refused(
    root: Path, harm: Callable[[Path], None]
) -> None:
    walk_to(Tickets(root), "act_via_tools")
    given = filled(Tickets(root).ticket("run-1"))
    harm(root)
    with pytest.raises(RunDamagedError):
        Tickets(root).submit(given)


def test_lines_of_the_last_step_that_are_gone_are_written_as_they_were(root: Path) -> None:
    walk_to(Tickets(root), "act_via_tools")
    before = journal_path(root).read_bytes()
    _without_end(root, 2)
    Tickets(root).begin("SHOP-7", "run-1")
    assert journal_path(root).read_bytes() == before


@pytest.mark.parametrize("state", ["fetch_ticket", "extract_requirements"])
def test_what_a_failed_call_handed_in_is_not_judged_in_place_of_the_next(
    root: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph keeps the answer to an interrupt even when the node fails, and would hand it out once more."""
    tickets = Tickets(root)
    walk_to(tickets, state)
    given = filled(tickets.ticket("run-1"))
    with monkeypatch.context() as patch:
        patch.setattr("interlock.graph.ticket.build.judge_stage", _cut)
        with pytest.raises(CutOffError):
            tickets.submit(given)
    changed = {"title": "Another"} if state == "fetch_ticket" else {"constraints": ["Another one."]}
    other = {**given, "payload": {**given["payload"], **changed}}
    later = Tickets(root)
    ticket = ticket_of(later.submit(other))
    assert later.state("run-1")["history"][-1].get("payload") == other["payload"]
    assert ticket["revision"] == given["revision"] + 1
    assert later.submit(filled(ticket))["gate_result"]["status"] == "pass"


def test_a_run_that_cannot_be_opened_is_not_begun(root: Path, tickets: Tickets) -> None:
    bad = os.fsencode(root) + b"/\xff.txt"
    Path(os.fsdecode(bad)).write_text("a name that is not UTF-8")
    with pytest.raises(TreeError):
        tickets.begin("SHOP-7", "run-1")
    assert tickets.runs() == []
    Path(os.fsdecode(bad)).unlink()
    assert ticket_of(tickets.begin("SHOP-7", "run-1"))["revision"] == 1


def test_a_run_of_the_journal_does_not_go_on_under_another_pipeline(root: Path, tickets: Tickets) -> None:
    walk_to(tickets, "extract_requirements")
    shutil.rmtree(root / ".interlock")
    with pytest.raises(RunDamagedError):
        Tickets(root).begin("SHOP-7", "run-1", pipeline="poc")


@pytest.mark.parametrize("planted", ["a link", "a file"])
def test_what_is_planted_in_the_place_of_the_copies_is_not_followed_and_stops_nothing(
    root: Path, planted: str, caplog: pytest.LogCaptureFixture, tickets: Tickets, ticket: Ticket
) -> None:
    place = root / "artifacts" / "interlock" / "tickets"
    (root / "src").mkdir()
    if planted == "a link":
        place.symlink_to(root / "src")
    else:
        place.write_text("")
    assert tickets.submit(filled(ticket))["gate_result"]["status"] == "pass"
    assert list((root / "src").iterdir()) == []
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize("lines", [1, 3, 4])
def test_a_journal_that_lost_the_end_of_a_run_is_found(root: Path, lines: int, tickets: Tickets) -> None:
    """A step that is in the snapshots has all its lines; one that is not is written anew from its checkpoint."""
    walk_to(tickets, "scope_context")
    _without_end(root, lines)
    assert [problem.code for problem in verify_journal(root).problems] == (["JRN712"] if lines > 3 else ["RUN604"])


def test_a_database_that_cannot_be_read_is_damage_and_hides_no_other_run(root: Path, tickets: Tickets) -> None:
    walk_to(tickets, "scope_context")
    (root / ".interlock" / "tickets" / "checkpoints.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(RunDamagedError):
        Tickets(root).begin("SHOP-7", "run-1")
    assert [row["run_id"] for row in all_summaries(root).damaged] == ["ticket:run-1"]
    assert verify_journal(root).problems


def test_who_verifies_beside_a_writer_finds_nothing_wrong(root: Path, tickets: Tickets) -> None:
    stop = threading.Event()

    def write() -> None:
        for number in itertools.count():
            ticket = ticket_of(tickets.begin("SHOP-7", f"run-{number}"))
            for _ in range(5):
                if stop.is_set():
                    return
                ticket = ticket_of(tickets.submit(filled(ticket)))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        reports = [verify_journal(root) for _ in range(15)]
        looks = [all_summaries(root).damaged for _ in range(15)]
        stop.set()
        writing.result()
    assert [report.problems for report in reports if report.problems] == []
    assert [damaged for damaged in looks if damaged] == []


def test_processes_that_take_turns_see_what_the_other_did(root: Path) -> None:
    """Each remembers the run as it left it, and must not go on from there when another went on meanwhile."""
    ours, theirs = Tickets(root), Tickets(root)
    ticket = ticket_of(ours.begin("SHOP-7", "run-1"))
    for turn in range(7):
        if ticket["state"] == "act_via_tools":
            do_the_work(root)
        answer = (ours, theirs)[turn % 3 == 1].submit(filled(ticket))
        assert answer["gate_result"]["status"] == "pass"
        ticket = ticket_of(answer)
    assert ours.ticket("run-1") == theirs.ticket("run-1")
    assert ticket == ours.ticket("run-1")
    assert ticket["state"] == "complete"
