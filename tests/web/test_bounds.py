"""What agents can make large, endless or odd: pages show it within bounds, or say what they leave out."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask
from interlock.graph import journal_path
from interlock.journal import Journal
from interlock.web.differences import FileDifference, Row, bounded, rows_of
from interlock.web.projects import Project as Shown
from interlock.web.projects import Site
from interlock.web.views import run as run_view
from tests.graph.conftest import Project, Scripted, envelope
from tests.table import each_row
from tests.web.conftest import World
from tests.web.hostile import keep


@each_row("lines", [["" for _ in range(8000)], [("" if n % 2 else f"{n}") for n in range(8000)], ["a", "b"] * 4000])
def test_lines_that_are_alike_are_compared_before_the_test_is_given_up(lines: list[str]) -> None:
    rows = list(rows_of(lines, ["x", *lines[: len(lines) // 2], "y", *lines[len(lines) // 2 :], "z"]))
    assert [row.text for row in rows if row.kind == "added"] == ["x", "y", "z"]
    assert not any(row.kind == "removed" for row in rows)


def test_a_difference_shows_what_was_removed_ahead_of_what_came_in_its_place() -> None:
    before, after = [str(n) for n in range(40)], [str(n) for n in range(40)]
    before[20:22], after[20:22] = ["old", "older"], ["new"]
    rows = list(rows_of(before, after))
    assert [(row.kind, row.text) for row in rows if row.kind != "same"] == [
        ("gap", "line 18"),
        ("removed", "old"),
        ("removed", "older"),
        ("added", "new"),
        ("gap", "to the end"),
    ]
    assert [row.before for row in rows if row.kind == "same"] == [18, 19, 20, 23, 24, 25]
    assert [row.after for row in rows if row.kind == "same"] == [18, 19, 20, 22, 23, 24]
    assert list(rows_of(before, before)) == []


def test_the_page_of_a_decision_has_some_rows_of_many_and_says_how_many_are_left_out(
    over: Callable[..., World], project: Project
) -> None:
    def answer(ask: Ask) -> str:
        for name in ("a", "b"):
            (Path(ask.root) / "src" / f"{name}.txt").write_text("x\n" * 19_000)
        return envelope(ask, "BLOCKED", fail_reasons=("GATE-TESTS: OBJECTION: no",))

    project.runners["builder"] = Scripted([answer])
    run = project.run().run_id
    tests = {"tests": [{"id": f"test {n}", "outcome": "failed"} for n in range(300)]}
    file = {"key": "report", "path": "a.tests.json", "sha256": keep(project.root, json.dumps(tests).encode())}
    line = {"attempt": 1, "gate": "GATE-TESTS", "ok": False, "files": [file], "tree": "", "findings": []}
    Journal(journal_path(project.root)).append(run, "tests", "evidence", line)
    browser = over(project.root).browser()
    decide, changes = (browser.get(f"/hello/runs/{run}/{name}").text for name in ("decide", "changes"))
    assert (decide.count('<tr class="added">'), decide.count('<td data-label="Since">')) == (2000, 200)
    for part in ("100 more are left out", "36,000 lines are left out", "17,000 more lines of this file are left out"):
        assert part in decide
    assert changes.count('<tr class="added">') == 20_000
    assert "18,000 more lines of this file are left out" in changes
    (file,) = bounded([FileDifference("a", "in scope", "added", "", "1", rows=(Row(None, 1, "added", "x" * 9999),))], 9)
    assert (file.rows, file.left_out) == ((), 1)


@pytest.mark.long
@each_row("number", ["9" * 5000, "٣", "-1", "1e3", "", "1.0", "\u00b2"])
def test_a_number_of_any_form_is_no_error_of_the_server(
    number: str, over: Callable[..., World], project: Project
) -> None:
    run = project.run().run_id
    browser = over(project.root).browser()
    for path in (
        f"/board?page={number}",
        f"/hello/journal?page={number}",
        f"/hello/runs/{run}/evidence?before={number}",
    ):
        assert browser.get(path).status_code == 200
    for path, names in (("decide", ("number",)), ("comment", ("attempt", "line"))):
        fields = dict.fromkeys(names, number)
        answer = browser.post(f"/hello/runs/{run}/{path}", answer="accept", path="src/greeting.txt", text="x", **fields)
        assert answer.status_code in (303, 400, 403, 409)


@each_row("path", ["../../etc/passwd", "secret/other.txt", ".env", "src"])
def test_a_comment_is_on_a_file_of_the_changes_alone(path: str, over: Callable[..., World], project: Project) -> None:
    run = project.run().run_id
    answer = over(project.root).browser().post(f"/hello/runs/{run}/comment", attempt="1", path=path, line="1", text="x")
    assert answer.status_code == 404


ODD: tuple[Any, ...] = (None, [], {}, "x", 10**30, -1, 1.5, True, [{}], {"x": []})


@pytest.mark.long
def test_lines_of_an_odd_form_leave_every_page_readable(over: Callable[..., World], project: Project) -> None:
    run = project.run().run_id
    lines = [(entry.type, entry.data) for entry in project.entries() if entry.run == run]
    journal = Journal(journal_path(project.root))
    made: list[str] = []
    for number, odd in enumerate(ODD):
        for key in sorted({name for _, data in lines for name in data}):
            name = f"ODD-{number}-{key}.1"
            journal.extend(
                name,
                [
                    (f"{at}", kind, {**data, **({key: odd} if key in data else {})})
                    for at, (kind, data) in enumerate(lines)
                ],
            )
            made.append(name)
    browser = over(project.root).browser()
    for path in ("/", "/board", "/board?status=BLOCKED", "/hello/journal"):
        assert browser.get(path).status_code == 200, path
    for name in made:
        for part in ("", "/evidence", "/changes"):
            assert browser.get(f"/hello/runs/{name}{part}").status_code in (200, 404, 409), name + part


def test_no_line_of_a_log_is_lost_while_another_page_reads_the_journal(project: Project) -> None:
    run = project.run().run_id
    site = Site([project.root])
    shown: Shown = site.project("root" if "root" in site.projects else next(iter(site.projects)))
    journal, over = Journal(journal_path(project.root)), threading.Event()

    def read_on() -> None:
        while not over.is_set():
            shown.refresh()

    readers = [threading.Thread(target=read_on) for _ in range(3)]
    before = run_view.run_values(shown, run)["log_count"]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, 16):
            journal.append(run, f"live {number}", "note", {})
            values = run_view.run_values(site.project(shown.key), run)
            assert (values["log_count"], len(values["log"])) == (before + number, min(before + number, 200))
    finally:
        over.set()
        for reader in readers:
            reader.join()
