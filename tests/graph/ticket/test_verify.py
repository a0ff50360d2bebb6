"""What `interlock verify` finds in the records of ticket runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.stages import Field, Stage
from interlock.graph import PipelineSpec
from interlock.graph.engine.folder import journal_path, journal_run, snapshots_path
from interlock.graph.errors import GraphError, RunDamagedError
from interlock.graph.ticket.tickets import Tickets
from interlock.graph.verify import parse_head, verify_journal
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


def forged(tickets: Tickets) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the lines of an attempt that nobody made, in the form of the last one that was."""
    revision = tickets.state("run-1")["revision"]
    made = {entry.type: dict(entry.data) for entry in tickets.events("run-1", limit=1000)}
    stage = tickets.state("run-1")["state"]
    call = made["tool_call"] | {"state": stage, "revision": revision}
    gate = made["gate_passed"] | {"state": stage, "revision": revision, "next_state": "complete", "done": True}
    return [(f"{revision}/tool_call", "tool_call", call), (f"{revision}/gate", "gate_passed", gate)]


def _is_refused(root: Path) -> None:
    """Nobody goes on with run-1, and it alone is found."""
    for call in (lambda: Tickets(root).begin("SHOP-7", "run-1"), lambda: Tickets(root).submit_payload("run-1", 5, {})):
        with pytest.raises(RunDamagedError, match="are not those that its checkpoint follows from"):
            call()
    assert [problem.field for problem in verify_journal(root).problems] == [journal_run("run-1")]


def test_an_attempt_that_no_edge_allows_moves_nothing_and_is_found(walked: Path) -> None:
    Journal(journal_path(walked)).extend(journal_run("run-1"), forged(Tickets(walked)))
    _is_refused(walked)


def test_an_attempt_after_the_end_is_found_and_changes_nothing(walked: Path) -> None:
    tickets = Tickets(walked)
    for _ in range(12):
        tickets.submit({**ticket_of(tickets.begin("SHOP-7", "run-1")), "payload": {}})
    assert tickets.state("run-1")["state"] == "fail_closed"
    Journal(journal_path(walked)).extend(journal_run("run-1"), forged(tickets))
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


def test_a_problem_of_the_snapshots_is_placed_there_and_shown_beside_a_damaged_run(walked: Path) -> None:
    path = snapshots_path(walked)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    (walked / ".interlock" / "tickets" / "run-1" / "run.json").write_text("no JSON")
    report = verify_journal(walked)
    places = [problem.location for problem in report.problems]
    assert places == [".interlock/tickets/run-1", str(path)]
    assert [row["place"] for row in report.to_json()["problems"]] == places


def test_looking_changes_nothing_and_a_damaged_journal_is_named(walked: Path) -> None:
    path = journal_path(walked)
    path.write_bytes(path.read_bytes().replace(b"SHOP-7", b"SHOP-8", 1))
    before = sorted(path.stat().st_mtime_ns for path in walked.rglob("*"))
    assert verify_journal(walked).verdict == "damaged"
    assert sorted(path.stat().st_mtime_ns for path in walked.rglob("*")) == before


def test_a_run_of_a_pipeline_of_the_users_own_is_no_problem(root: Path) -> None:
    spec = PipelineSpec("own", (Stage("one", "Do it.", (Field("done"),)),))
    tickets = Tickets(root, specs={"own": spec})
    tickets.begin("X", "run-1", pipeline="own")
    tickets.submit_payload("run-1", 1, {"done": "yes"})
    assert verify_journal(root).problems == ()


@pytest.mark.parametrize(
    "text", ["ticket:run-1:5", "ticket:run-1:x:" + "0" * 64, "ticket:run-1:5:" + "g" * 64, ":5:" + "0" * 64]
)
def test_a_head_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(GraphError):
        parse_head(text)


def test_the_head_of_a_ticket_run_is_read() -> None:
    assert parse_head(f"ticket:run-1:5:{'a' * 64}") == ("ticket:run-1", Head(5, "a" * 64))
