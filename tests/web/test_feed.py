"""The rows that the journal's lines give."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from interlock.graph import Tickets, abandon, journal_path
from interlock.graph.feed import Feed, Row
from interlock.journal import Entry, Journal
from interlock.web.matrix import matrix
from interlock.web.plots import of_project
from tests.graph.conftest import Project, Scripted, build, envelope, reviewing
from tests.graph.test_objections import answered, decide, objecting
from tests.web.conftest import World


def test_a_row_says_what_the_lines_of_its_run_say(project: Project) -> None:
    project.runners["builder"].answers = [build("hi\n"), build()]  # type: ignore[union-attr]
    view = project.run()
    feed = Feed(project.root)
    feed.catch_up()
    row = feed.rows[view.run_id]
    assert (row.kind, row.name, row.title, row.state, row.attempt) == (
        "task", "HELLO-001", "Write the greeting", "APPROVED", 2,
    )  # fmt: skip
    assert list(row.roles) == ["builder", "tester", "reviewer"]
    assert row.failed == {"GATE-TESTS": 1}
    assert row.total.asks == sum(count.asks for count in row.spent.values()) == 5
    assert row.over
    assert not row.reasons


def cells(project: Project, run_id: str) -> dict[str, list[str]]:
    feed = Feed(project.root)
    feed.catch_up()
    rows = matrix(feed.rows[run_id].gates, feed.entries(run_id)).rows
    return {gate: [cell.state for cell in row] for gate, row in rows}


def test_objections_and_void_waivers_are_no_failures_and_the_table_says_what_they_are(project: Project) -> None:
    project.runners["builder"] = Scripted([objecting(), build("hi\n")])
    view = project.run()
    states = {"GATE-MSG-STRICT": "open", "GATE-TESTS": "objected", "GATE-LINT": "open", "GATE-REVIEW": "open"}
    assert cells(project, view.run_id) == {gate: [state] for gate, state in states.items()}
    view = answered(project, view, "accept")
    decide(project, view, "waive", reason="fine")
    (project.root / "src/greeting.txt").write_text("something else\n")
    view = project.drive(view.run_id)
    states = {"GATE-MSG-STRICT": "passed", "GATE-TESTS": "void", "GATE-LINT": "void", "GATE-REVIEW": "void"}
    assert {gate: row[0] for gate, row in cells(project, view.run_id).items()} == states
    feed = Feed(project.root)
    feed.catch_up()
    row = feed.rows[view.run_id]
    assert (dict(row.failed), row.waived) == ({}, {})
    assert answered(project, view, "waive").status == "APPROVED"
    states = {"GATE-MSG-STRICT": "passed", "GATE-TESTS": "waived", "GATE-LINT": "passed", "GATE-REVIEW": "passed"}
    assert {gate: row[1] for gate, row in cells(project, view.run_id).items()} == states


def test_a_gate_that_was_passed_stays_so_in_an_attempt_whose_review_failed(project: Project) -> None:
    refusing = ("GATE-REVIEW: I do not like it",)
    project.runners["reviewer"] = Scripted([lambda ask: envelope(ask, "BLOCKED", fail_reasons=refusing), reviewing])
    project.runners["builder"] = Scripted([build(), build("hello\n\n")])
    view = project.run()
    assert view.status == "APPROVED"
    assert cells(project, view.run_id) == {
        gate: ["failed" if gate == "GATE-REVIEW" else "passed", "passed"] for gate in project.task.gates_required
    }


def test_clean_evidence_without_a_verdict_is_named(project: Project) -> None:
    project.runners["tester"] = Scripted(["no envelope"])
    view = project.run()
    assert cells(project, view.run_id)["GATE-TESTS"] == ["clean"]


def test_what_is_written_later_is_read_once_and_the_last_one_comes_first(project: Project) -> None:
    feed = Feed(project.root)
    feed.catch_up()
    assert feed.newest() == []
    first = project.run().run_id
    feed.catch_up()
    before = len(feed.lines)
    second = project.start()
    project.drive(second)
    feed.catch_up()
    assert second in {line.run for line in feed.lines[before:]}
    assert first not in {line.run for line in feed.lines[before:]}
    assert [row.run for row in feed.newest()] == [second, first]
    assert feed.read(feed.lines) == project.entries()
    assert feed.entries(first) == [entry for entry in project.entries() if entry.run == first]
    feed.catch_up()
    assert len(feed.lines) == len(project.entries())


def test_an_abandoned_run_is_over(project: Project) -> None:
    project.runners["builder"].answers = [lambda ask: envelope(ask, "IN_PROGRESS")]  # type: ignore[union-attr]
    run_id = project.start()
    abandon(project.root, run_id)
    feed = Feed(project.root)
    feed.catch_up()
    row = feed.rows[run_id]
    assert (row.over, row.abandoned, row.state) == (True, True, ""), "nothing was written of it but its end"


def test_a_run_without_a_line_is_found_by_its_folder_and_goes_with_it(project: Project) -> None:
    feed = Feed(project.root)
    older = project.run().run_id
    feed.catch_up()
    run_id = project.start()
    feed.catch_up()
    (row, _) = feed.newest()
    assert (row.run, row.name, row.title, row.lines) == (run_id, "HELLO-001", "Write the greeting", 0)
    gone = project.start()
    feed.catch_up()
    shutil.rmtree(project.root / ".interlock/runs" / gone)
    project.drive(run_id)
    feed.catch_up()
    assert [(row.run, bool(row.state)) for row in feed.newest()] == [(run_id, True), (older, True)]


def test_a_waiver_counts_for_its_attempt_alone() -> None:
    row = Row("A-1.1", "task")

    def take(kind: str, **data: object) -> dict[str, str]:
        row.take(cast("Entry", SimpleNamespace(type=kind, at="2026-01-02T03:04:05Z", data=data)))
        return dict(row.waived)

    take("status", to="READY_FOR_REVIEW", attempt=1)
    assert take("waiver", gate="GATE-X", by="ada") == {"GATE-X": "ada"}
    assert take("status", to="IN_PROGRESS", attempt=2) == {}
    take("waiver", gate="GATE-X", by="ada")
    assert take("status", to="APPROVED", attempt=2) == {"GATE-X": "ada"}, "a line of an older version"
    assert take("status", to="APPROVED", attempt=2, waived={"GATE-Y": "bob"}) == {"GATE-Y": "bob"}


def test_a_wait_lasts_from_event_to_event_and_its_reason_says_whether_it_was_granted(tmp_path: Path) -> None:
    rows = (("granted", True), ("it holds them", True), ("its process has ended", False), ("deadlock", False))
    lines = [
        (
            f"s/{number}/{kind}",
            kind,
            {"waiter_id": number, "agent": "run:A-1.1", "at": f"2026-01-02T03:04:{at}Z", **data},
        )
        for number, (why, _) in enumerate(rows)
        for kind, at, data in (
            ("waiter_joined", "05", {"patterns": ["src/**"]}),
            ("waiter_left", "25", {"reason": why}),
        )
    ]
    Journal(journal_path(tmp_path)).extend("reservations", lines)
    feed = Feed(tmp_path)
    feed.catch_up()
    assert [(wait.seconds, wait.granted) for wait in feed.waits] == [(20.0, granted) for _, granted in rows]
    (*_, plot) = of_project([Row("A-1.1", "task", state="IN_PROGRESS", abandoned=True)], feed.waits)
    assert [bar.text.endswith("not granted") for bar in plot.bars] == [not granted for _, granted in rows]
    attempts = of_project([Row("A-1.1", "task", state="IN_PROGRESS", abandoned=True)], ())[1]
    assert attempts.bars[0].text == "0, abandoned"


def test_a_ticket_has_its_state_and_title(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path)
    tickets.begin("T-1", "a")
    feed = Feed(tmp_path)
    feed.catch_up()
    row = feed.rows["ticket:a"]
    assert (row.run, row.kind, row.name, row.over) == ("a", "ticket", "T-1", False)


def test_a_damaged_journal_is_named_and_what_was_read_stays(over: Callable[..., World], project: Project) -> None:
    project.run()
    world = over(project.root)
    browser = world.browser()
    assert "HELLO-001.1" in browser.text("/board")
    path = project.root / "artifacts/interlock/events.jsonl"
    with path.open("ab") as file:
        file.write(b'{"not": "a line"}\n')
    text = browser.text("/board")
    assert "The journal of hello cannot be read" in text
    assert "HELLO-001.1" in text


def test_a_page_gets_what_happened_since_it_was_made(over: Callable[..., World], project: Project) -> None:
    browser = over(project.root).browser()
    path, after = re.findall(r'data-events="[^"]{17}([^"]+)" data-after="([^"]*)"', browser.get("/board").text)[0]
    assert (path, after) == ("/events", "hello:0")
    run_id = project.run().run_id
    asked: list[str] = []
    with browser.client.stream("GET", f"{path}?after={after}") as answer:
        for line in answer.iter_lines():
            asked.append(line)
            if line.startswith("data:"):
                break
    assert run_id in json.loads(asked[-1].removeprefix("data: "))["runs"]
