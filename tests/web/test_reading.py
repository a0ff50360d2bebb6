"""What people read on narrow screens, by keyboard, and of pictures: nothing is cut, hidden or without its name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from interlock.agents import REMOTE
from tests.graph.conftest import Scripted, build, make_project
from tests.web.browsing import Visit, served

pytestmark = [pytest.mark.browser, pytest.mark.long]
Open = Callable[..., Visit]


def test_a_comment_begins_at_the_number_of_its_line_by_click_and_by_keyboard(tmp_path: Path, opened: Open) -> None:
    project = make_project(tmp_path / "hello")
    project.runners |= {"builder": Scripted([build("one\ntwo\n"), build()]), "reviewer": REMOTE}
    project.task = replace(project.task, agents={name: {"runner": "remote"} for name in project.runners})
    run = project.run().run_id
    with served(project.root) as server:
        window = opened(server)
        page = window.open(f"/hello/runs/{run}/changes?from=base&to=1")
        page.get_by_role("link", name="2", exact=True).click()
        expect(page.get_by_role("spinbutton")).to_have_value("2")
        expect(page.get_by_label("Comment", exact=True)).to_be_focused()
        page.get_by_role("link", name="2", exact=True).focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.get_by_role("spinbutton")).to_have_value("1")
        page.keyboard.type("why?")
        page.get_by_role("button", name="Keep it").click()
        window.sees("why?")
