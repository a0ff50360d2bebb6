"""The rows that the journal's lines give."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from interlock.graph import Tickets, abandon
from interlock.graph.feed import Feed
from tests.graph.conftest import Project, build, envelope
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
    assert run_id not in feed.rows, "nothing was written of it but its end"


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
    path = re.findall(r'data-events="[^"]{17}([^"]+)"', browser.get("/board").text)[0]
    assert path == "/events?after=hello:0"
    run_id = project.run().run_id
    asked: list[str] = []
    with browser.client.stream("GET", path) as answer:
        for line in answer.iter_lines():
            asked.append(line)
            if line.startswith("data:"):
                break
    assert run_id in json.loads(asked[-1].removeprefix("data: "))["runs"]
