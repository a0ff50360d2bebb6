"""What a killed call leaves is finished by the next one: nothing lost, nothing doubled, nothing half done."""

import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from interlock.gates.errors import TreeError
from interlock.graph.engine.folder import journal_path, journal_run, snapshots_path
from interlock.graph.errors import RunDamagedError
from interlock.graph.pipeline import TICKET, pipeline_graph
from interlock.graph.ticket.answers import sent
from interlock.graph.ticket.contract import SentTicket
from interlock.graph.ticket.explain import all_summaries
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import verify_journal
from tests.graph.ticket.walk import STATES, do_the_work, filled, ticket_of, walk_to


class CutOffError(Exception):
    """Simulates the end of the process."""


def _cut(*_args: object, **_kwargs: object) -> None:
    raise CutOffError


PLACES: dict[str, Callable[[Tickets, pytest.MonkeyPatch], None]] = {
    "before the lines": lambda tickets, patch: patch.setattr(tickets.journal, "extend", _cut),
    "before the snapshot": lambda tickets, patch: patch.setattr(tickets.snapshots, "append", _cut),
    "before the copies": lambda _tickets, patch: patch.setattr(
        "interlock.graph.ticket.store.TicketStore.write_copies", _cut
    ),
}


@pytest.mark.sample(every=2)
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
    again = Tickets(root)
    answer = again.submit(given)
    assert answer["gate_result"]["status"] == "pass"
    assert ticket_of(answer) == sent(again.ticket("run-1"))
    assert ticket_of(answer)["revision"] == given["revision"] + 1
    keys = [entry.key for entry in again.journal.entries(journal_run("run-1"))]
    assert len(set(keys)) == len(keys) == 1 + 3 * (step + 1)


@pytest.mark.parametrize("place", ["begin", "snapshot"])
def test_a_begin_that_was_cut_off_is_finished_by_the_next(
    root: Path, place: str, monkeypatch: pytest.MonkeyPatch, tickets: Tickets
) -> None:
    with monkeypatch.context() as patch:
        log = tickets.journal if place == "begin" else tickets.snapshots
        patch.setattr(log, "append", _cut)
        with pytest.raises(CutOffError):
            tickets.begin("SHOP-7", "run-1")
    again = Tickets(root)
    assert again.ticket("run-1")["state"] == "fetch_ticket"
    assert ticket_of(again.begin("SHOP-7", "run-1"))["revision"] == 1


@pytest.mark.sample("1")
@pytest.mark.parametrize("steps", [0, 1, 4, 6, 7])
def test_the_journal_alone_says_where_a_run_is(root: Path, steps: int, tickets: Tickets) -> None:
    """What was kept beside it is lost, or is in a database of checkpoints that an older version wrote."""
    walk_to(tickets, STATES[steps])
    state = tickets.state("run-1")
    (root / ".interlock" / "tickets" / "run-1" / "pins.jsonl").unlink()
    shutil.copy(__file__, root / ".interlock" / "tickets.sqlite")
    assert Tickets(root).state("run-1") == state
    assert ticket_of(Tickets(root).begin("SHOP-7", "run-1"))["revision"] == state["revision"]
    assert verify_journal(root).problems == ()


def _without_end(root: Path, lines: int) -> None:
    path = Tickets(root).journal.path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))


def _other_listing(root: Path) -> None:
    for path in (root / ".interlock" / "tickets" / "run-1" / "trees").iterdir():
        path.write_text(json.dumps({}))


@pytest.mark.parametrize("harm", [partial(_without_end, lines=1), _other_listing], ids=["last line", "listing"])
def test_a_journal_that_lost_its_last_line_and_a_listing_that_was_changed_are_refused(
    root: Path, harm: Callable[[Path], None]
) -> None:
    walk_to(Tickets(root), "act_via_tools")
    given = filled(Tickets(root).ticket("run-1"))
    harm(root)
    with pytest.raises(RunDamagedError):
        Tickets(root).submit(given)


@pytest.mark.parametrize("again", ["same process", "another process"])
def test_what_a_failed_call_handed_in_is_not_judged_in_place_of_the_next(
    root: Path, again: str, monkeypatch: pytest.MonkeyPatch, tickets: Tickets
) -> None:
    """LangGraph keeps the answer to an interrupt even when the node fails, and would hand it out once more."""
    walk_to(tickets, "extract_requirements")
    given = filled(tickets.ticket("run-1"))
    with monkeypatch.context() as patch:
        patch.setattr(tickets.journal, "extend", _cut)
        with pytest.raises(CutOffError):
            tickets.submit(given)
    other = {**given, "payload": {**given["payload"], "constraints": ["Another one."]}}
    later = tickets if again == "same process" else Tickets(root)
    ticket = ticket_of(later.submit(other))
    assert later.state("run-1")["history"][-1].get("payload") == other["payload"]
    assert (ticket["state"], ticket["revision"]) == ("scope_context", 3)
    ticket = ticket_of(later.submit(filled(ticket)))
    assert ticket["state"] == "gather_evidence"


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
    root: Path, planted: str, caplog: pytest.LogCaptureFixture, tickets: Tickets, ticket: SentTicket
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


def test_a_pipeline_that_changed_since_a_run_began_is_reported_once(root: Path) -> None:
    ticket = ticket_of(Tickets(root).begin("SHOP-7", "run-1"))
    other = {"ticket": replace(TICKET, stages=(replace(TICKET.stages[0], role="Fetch it."), *TICKET.stages[1:]))}
    tickets = Tickets(root, specs=other)
    for _ in range(2):
        tickets.begin("SHOP-7", "run-1")
    changed = [entry for entry in tickets.journal.entries(journal_run("run-1")) if entry.type == "policy_changed"]
    assert [entry.data["what"] for entry in changed] == ["pipeline"]
    assert tickets.ticket("run-1")["agent_role"] != ticket["agent_role"]


def test_a_step_keeps_no_checkpoint(root: Path) -> None:
    walk_to(Tickets(root), "record_and_finalize")
    assert [path.name for path in (root / ".interlock").glob("**/*.sqlite")] == []


def test_a_journal_that_lost_the_end_of_a_run_is_refused_by_its_snapshots(root: Path, tickets: Tickets) -> None:
    walk_to(tickets, "scope_context")
    (root / ".interlock" / "tickets" / "run-1" / "pins.jsonl").unlink()
    _without_end(root, 3)
    with pytest.raises(RunDamagedError):
        Tickets(root).begin("SHOP-7", "run-1")
    assert [problem.code for problem in verify_journal(root).problems] == ["RUN604"]


def test_a_run_that_was_killed_before_its_first_snapshot_goes_on(root: Path) -> None:
    ticket = ticket_of(Tickets(root).begin("SHOP-7", "run-1"))
    (root / ".interlock" / "tickets" / "run-1" / "pins.jsonl").unlink()
    snapshots_path(root).unlink()
    assert verify_journal(root).verdict == "whole"
    assert ticket_of(Tickets(root).begin("SHOP-7", "run-1")) == ticket
    assert verify_journal(root).verdict == "whole"


@pytest.mark.parametrize(
    "pin",
    [
        "[]", "null", "{", "[" * 100_000, '{"head":1,"snapshots":1}', '{"head":{"seq":0,"hash":"a"}}', "\xff",
        '{"head":{"seq":"1","hash":"a"},"snapshots":{"seq":1,"hash":"a"}}', '{"head":{"seq":1,"hash":[]}}',
        '{"head":{"seq":9,"hash":"%s"},"snapshots":{"seq":1,"hash":"a"}}' % ("0" * 64),
    ],
)  # fmt: skip
def test_a_pin_of_another_form_is_damage_and_hides_no_other_run(root: Path, pin: str, tickets: Tickets) -> None:
    for run_id in ("run-1", "run-2"):
        tickets.begin("SHOP-7", run_id)
    (root / ".interlock" / "tickets" / "run-1" / "pins.jsonl").write_bytes(pin.encode("latin-1"))
    with pytest.raises(RunDamagedError):
        Tickets(root).begin("SHOP-7", "run-1")
    found = all_summaries(root)
    assert ([row["run_id"] for row in found.tickets], [row["run_id"] for row in found.damaged]) == (
        ["run-2"],
        ["ticket:run-1"],
    )
    assert verify_journal(root).problems


@pytest.mark.parametrize("kept", ["a row that was cut off", "a row of zeros", "the one pin of an earlier version"])
def test_the_last_whole_pin_holds_the_journal(root: Path, kept: str, tickets: Tickets) -> None:
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    before = {path: path.read_bytes() for path in (journal_path(root), snapshots_path(root))}
    tickets.submit(filled(ticket))
    pins = root / ".interlock" / "tickets" / "run-1" / "pins.jsonl"
    if kept.startswith("a row"):
        with pins.open("ab") as file:
            file.write(b'{"head": {"seq"' if "cut" in kept else b"\0" * 90)
    else:
        (pins.parent / "pin.json").write_bytes(pins.read_bytes().splitlines()[-1])
        pins.unlink()
    assert verify_journal(root).verdict == "whole"
    for path, data in before.items():
        path.write_bytes(data)
    with pytest.raises(RunDamagedError):
        Tickets(root).begin("SHOP-7", "run-1")


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


def test_what_is_no_payload_is_judged_as_an_empty_one_in_a_graph_of_the_callers(root: Path) -> None:
    graph: Any = pipeline_graph(TICKET, root=root, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "mine"}}
    graph.invoke({"ticket_id": "SHOP-7"}, config)
    for given in ("done", {"payload": [1]}):
        waiting = graph.get_state(config).tasks[0].interrupts[0]
        graph.invoke(Command(resume={waiting.id: given}), config)
    assert [row["gate"] for row in graph.get_state(config).values["history"]] == ["retry", "retry"]


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
    assert ticket == sent(ours.ticket("run-1"))
    assert ticket["state"] == "complete"
