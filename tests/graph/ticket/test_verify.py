"""What `interlock verify` finds in the records of ticket runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from interlock.gates.stages import Field, Stage
from interlock.graph.engine.folder import journal_path, journal_run, snapshots_path
from interlock.graph.errors import RunDamagedError
from interlock.graph.pipeline import PipelineSpec, pipeline_graph
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import HeadError, parse_head, verify_journal
from interlock.journal import Head, Journal
from tests.graph.ticket.walk import filled, ticket_of


@pytest.fixture
def walked(root: Path) -> Path:
    """Return a project with two ticket runs in the middle of their work."""
    tickets = Tickets(root)
    for run_id in ("run-1", "run-2"):
        ticket = ticket_of(tickets.begin("SHOP-7", run_id))
        ticket = ticket_of(tickets.submit({**ticket, "payload": {}}))
        for _ in range(3):
            ticket = ticket_of(tickets.submit(filled(ticket)))
        tickets.submit(filled(ticket, state="complete"))
    return root


def forged(tickets: Tickets, status: str = "pass", **changed: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the lines of an attempt that nobody made, in the form of the last one that was."""
    revision = tickets.state("run-1")["revision"]
    made = {entry.type: dict(entry.data) for entry in tickets.events("run-1", limit=1000)}
    stage = tickets.state("run-1")["state"]
    call = made["tool_call"] | {"state": stage, "revision": revision}
    gate = made["gate_passed"] | {"state": stage, "revision": revision, "next_state": "complete", "done": True}
    gate |= {"status": status, "issues": [], **changed}
    return [(f"{revision}/tool_call", "tool_call", call), (f"{revision}/gate", f"gate_{status}ed", gate)]


def _is_refused(root: Path) -> None:
    """Nobody goes on with run-1, and it alone is found."""
    for call in (lambda: Tickets(root).begin("SHOP-7", "run-1"), lambda: Tickets(root).state("run-1")):
        with pytest.raises(RunDamagedError, match="do not follow from one another"):
            call()
    assert [problem.field for problem in verify_journal(root).problems] == [journal_run("run-1")]


@pytest.mark.parametrize("changed", [{}, {"next_state": "propose_plan", "done": True}, {"state": "propose_plan"}])
def test_an_attempt_that_no_edge_allows_moves_nothing_and_is_found(walked: Path, changed: dict[str, Any]) -> None:
    tickets = Tickets(walked)
    lines = forged(tickets, **changed)
    Journal(journal_path(walked)).extend(journal_run("run-1"), lines)
    _is_refused(walked)


def test_an_attempt_after_the_end_is_found_and_changes_nothing(walked: Path) -> None:
    tickets = Tickets(walked)
    for _ in range(12):
        tickets.submit({**ticket_of(tickets.begin("SHOP-7", "run-1")), "payload": {}})
    assert tickets.state("run-1")["state"] == "fail_closed"
    Journal(journal_path(walked)).extend(journal_run("run-1"), forged(tickets))
    _is_refused(walked)


def test_a_second_beginning_is_found_and_changes_nothing(walked: Path) -> None:
    journal = Journal(journal_path(walked))
    start = journal.find(journal_run("run-1"), "run_started")
    assert start is not None
    journal.append(journal_run("run-1"), "again", "run_started", {**start.data, "owner": "mallory"})
    _is_refused(walked)


def test_the_records_of_ticket_runs_are_whole(walked: Path) -> None:
    report = verify_journal(walked)
    assert (report.verdict, report.problems, report.heads) == ("whole", (), 2)
    assert (report.runs, report.tickets, report.kinds) == (0, 2, ((2, "ticket run"),))


def test_a_root_without_tickets_stays_without_their_files(root: Path) -> None:
    verify_journal(root)
    assert not (root / ".interlock").exists()


HARMS = [(name, harm) for name in ("events", "tickets") for harm in ("dropped", "changed", "swapped")]


@pytest.mark.parametrize(("name", "harm"), [*HARMS, ("tickets", "last")])
def test_a_harmed_line_is_found(walked: Path, name: str, harm: str) -> None:
    path = journal_path(walked) if name == "events" else snapshots_path(walked)
    lines = path.read_bytes().splitlines(keepends=True)
    mine = [at for at, line in enumerate(lines) if json.loads(line)["run"] == "ticket:run-1"]
    at = mine[-1] if harm == "last" else mine[1]
    match harm:
        case "changed":
            lines[at] = lines[at].replace(b"SHOP-7" if b"SHOP-7" in lines[at] else b"run-1", b"SHOP-8", 1)
        case "swapped":
            lines[at], lines[mine[2]] = lines[mine[2]], lines[at]
        case _:
            del lines[at]
    path.write_bytes(b"".join(lines))
    assert verify_journal(walked).problems


def test_what_is_kept_of_another_run_is_found(walked: Path) -> None:
    runs = walked / ".interlock" / "tickets"
    shutil.copy(runs / "run-1" / "pins.jsonl", runs / "run-2" / "pins.jsonl")
    assert [problem.code for problem in verify_journal(walked).problems].count("JRN713") == 2


def test_a_problem_of_the_snapshots_is_placed_there_and_shown_beside_a_damaged_run(walked: Path) -> None:
    path = snapshots_path(walked)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    (walked / ".interlock" / "tickets" / "run-1" / "run.json").write_text("no JSON")
    report = verify_journal(walked)
    places = [problem.location for problem in report.problems]
    assert places == [str(path), ".interlock/tickets/run-1"]
    assert [row["place"] for row in report.to_json()["problems"]] == places


def test_looking_changes_nothing_and_a_damaged_journal_is_named(walked: Path) -> None:
    path = journal_path(walked)
    path.write_bytes(path.read_bytes().replace(b"SHOP-7", b"SHOP-8", 1))
    before = sorted(path.stat().st_mtime_ns for path in walked.rglob("*"))
    assert verify_journal(walked).verdict == "damaged"
    assert sorted(path.stat().st_mtime_ns for path in walked.rglob("*")) == before


def test_a_run_of_a_pipeline_of_the_users_own_is_no_problem(root: Path) -> None:
    spec = PipelineSpec("own", (Stage("one", "Do it.", (Field("done"),)),))
    graph: Any = pipeline_graph(spec, root=root, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "mine"}}
    graph.invoke({"ticket_id": "X"}, config)
    waiting = graph.get_state(config).tasks[0].interrupts[0].id
    graph.invoke(Command(resume={waiting: {"payload": {"done": "yes"}}}), config)
    assert verify_journal(root).problems == ()


@pytest.mark.parametrize(
    "text", ["ticket:run-1:5", "ticket:run-1:x:" + "0" * 64, "ticket:run-1:5:" + "g" * 64, ":5:" + "0" * 64]
)
def test_a_head_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(HeadError):
        parse_head(text)


def test_the_head_of_a_ticket_run_is_read() -> None:
    assert parse_head(f"ticket:run-1:5:{'a' * 64}") == ("ticket:run-1", Head(5, "a" * 64))
