"""The rows that the journal's lines give."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from interlock.graph import Tickets, abandon
from interlock.graph.feed import Feed, Row
from interlock.journal import Entry
from tests.graph.conftest import Project, Scripted, build, envelope
from tests.graph.test_objections import answered, decide, objecting
from tests.web.conftest import World


def test_a_row_says_what_the_lines_of_its_run_say(project: Project) -> None:
    project.runners["builder"].answers = [build("hi\n"), build()]  # type: ignore[union-attr]
    view = project.run()
    feed = Feed(project.root)
    feed.catch_up()
    row = feed.rows[view.run_id]
    assert (row.kind, row.name, row.title, row.state, row.attempt) == (
        "task",
        "HELLO-001",
        "Write the greeting",
        "APPROVED",
        2,
    )
    assert list(row.roles) == ["builder", "tester", "reviewer"]
    assert row.failed == {"GATE-TESTS": 1}
    assert row.total.asks == sum(count.asks for count in row.spent.values()) == 5
    assert row.over
    assert not row.reasons


def test_objections_and_void_waivers_are_no_failures(project: Project) -> None:
    project.runners["builder"] = Scripted([objecting(), build("hi\n")])
    view = project.run()
    view = answered(project, view, "accept")
    decide(project, view, "waive", reason="fine")
    (project.root / "src/greeting.txt").write_text("something else\n")
    view = project.drive(view.run_id)
    feed = Feed(project.root)
    feed.catch_up()
    row = feed.rows[view.run_id]
    assert (dict(row.failed), row.waived) == ({}, {})
    assert answered(project, view, "waive").status == "APPROVED"


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


def test_a_page_learns_that_something_happened_since_it_was_made(over: Callable[..., World], project: Project) -> None:
    browser = over(project.root).browser()
    path, before = re.findall(r'data-events="[^"]{17}([^"]+)" data-now="([^"]*)"', browser.get("/board").text)[0]
    project.run()
    with browser.client.stream("GET", path) as answer:
        now = next(line for line in answer.iter_lines() if line.startswith("data:")).removeprefix("data: ")
    assert (path, before, int(now) > 0) == ("/events", "0", True)
