"""What people read on narrow screens, by keyboard, and of pictures: nothing is cut, hidden or without its name."""

from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from interlock.agents import REMOTE
from interlock.web import report
from tests.graph.conftest import Scripted, build, make_project
from tests.web.browsing import Sample, Served, Visit, sample, screens, served

pytestmark = [pytest.mark.browser, pytest.mark.long]
Open = Callable[..., Visit]
SPLIT = """() => [...document.querySelectorAll('.grid thead th, .grid .num, .status, .code .no, .code .sign')]
    .filter(e => { const r = document.createRange(); r.selectNodeContents(e);
        const lines = new Set([...r.getClientRects()].map(b => Math.round(b.top / 8)));
        return lines.size > 1 && !/\\s/.test(e.textContent.trim()); })
    .map(e => e.textContent)"""
"""The single words of tables and lines that take more than one line."""
NAMELESS = """() => [...document.querySelectorAll('.grid td:not(:empty)')]
    .filter(e => getComputedStyle(e, '::before').content === 'none' && !e.querySelector('details, button'))
    .map(e => e.outerHTML)"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample(tmp_path_factory.mktemp("reading") / "hello")


@pytest.fixture(scope="module")
def server(made: Sample) -> Generator[Served]:
    with served(made.root) as running:
        yield running


def test_no_word_is_cut_and_a_stacked_value_has_the_name_of_its_column(
    made: Sample, server: Served, opened: Open
) -> None:
    for width in (375, 768):
        window = opened(server, viewport={"width": width, "height": 800})
        for path in screens(made, "hello"):
            page = window.open(path)
            assert page.evaluate(SPLIT) == [], path
            assert width > 700 or page.evaluate(NAMELESS) == [], path
            assert width > 700 or page.locator("header.top").bounding_box()["height"] < 70  # pyright: ignore


def test_a_report_fits_a_narrow_window_and_gives_times_that_stay(
    made: Sample, server: Served, opened: Open, tmp_path: Path
) -> None:
    text = report(made.root, made.approved)
    assert " ago<" not in text
    (tmp_path / "report.html").write_text(text)
    page = opened(server, viewport={"width": 375, "height": 800}).page
    page.goto(f"file://{tmp_path}/report.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_comment_begins_at_the_number_of_its_line(tmp_path: Path, opened: Open) -> None:
    project = make_project(tmp_path / "hello")
    project.runners |= {"builder": Scripted([build("one\ntwo\n"), build()]), "reviewer": REMOTE}
    project.task = replace(project.task, agents={name: {"runner": "remote"} for name in project.runners})
    run = project.run().run_id
    with served(project.root) as server:
        window = opened(server)
        page = window.open(f"/hello/runs/{run}/changes?from=base&to=1")
        page.locator("[data-pick]", has_text="2").click()
        expect(page.get_by_role("spinbutton")).to_have_value("2")
        expect(page.get_by_label("Comment", exact=True)).to_be_focused()
        page.keyboard.type("why?")
        page.get_by_role("button", name="Save").click()
        window.sees("why?")
