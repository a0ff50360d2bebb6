"""Pages over real projects, and browsers that were let in."""

import html
import os
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from interlock.gates.collect import find_browser
from interlock.web import Pages, Rights, Sessions, make_pages
from interlock.web.access import COOKIE, ENTER, csrf_token
from tests.graph.conftest import Project, make_project

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium

    from tests.web.browsing import Served, Visit

HOST: Final = "127.0.0.1:8000"
URL: Final = f"http://{HOST}"
FORM: Final = "application/x-www-form-urlencoded"


@dataclass
class Browser:
    """A client that keeps the cookie of its session, as a browser does."""

    client: TestClient
    sessions: Sessions
    csrf: str = field(init=False, default="")

    def enter(self, rights: Rights) -> httpx.Response:
        """Open a new link, and learn the token of the session's forms."""
        answer = self.client.get(ENTER + self.sessions.invite(rights))
        self.csrf = csrf_token(self.client.cookies[COOKIE])
        return answer

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask for a page, and follow no redirect; every address on it lies where the session is good."""
        answer = self.client.get(path, headers=headers, follow_redirects=False)
        if answer.headers.get("content-type", "").startswith("text/html"):
            places = re.findall(r' (?:href|src|action|formaction|data-events)="(/[^"]*)', answer.text)
            assert [place for place in places if not place.startswith(f"{self.sessions.base}/")] == []
        return answer

    def post(self, path: str, /, **fields: str) -> httpx.Response:
        """Send a form of this session."""
        return self.client.post(path, data={"csrf": self.csrf, **fields}, follow_redirects=False)

    def text(self, path: str) -> str:
        """Return what a page says, without its markup."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text)))


@dataclass
class World:
    """Some projects, the pages over them, and whoever is let in."""

    roots: list[Path]
    sessions: Sessions
    pages: Pages

    def browser(self, rights: Rights | None = "decide") -> Browser:
        """Return a browser that was let in; with None, one that was not."""
        client = TestClient(self.pages.app, base_url=URL + self.sessions.base, raise_server_exceptions=False)
        made = Browser(client, self.sessions)
        if rights is not None:
            made.enter(rights)
        return made


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose builder writes a good greeting at once."""
    return make_project(tmp_path / "hello")


@pytest.fixture
def over() -> Generator[Callable[..., World]]:
    """Return what puts pages over some roots."""
    made: list[World] = []

    def make(*roots: Path, name: str = "ada") -> World:
        sessions = Sessions(roots[0], name)
        pages = make_pages(roots, sessions, hosts=frozenset({HOST}))
        made.append(World(list(roots), sessions, pages))
        return made[-1]

    yield make
    for world in made:
        world.pages.end_streams()


@pytest.fixture
def world(over: Callable[..., World], project: Project) -> World:
    """Return pages over the project."""
    return over(project.root)


@pytest.fixture(scope="module")
def chromium() -> Generator["Chromium"]:
    """Return a browser for the tests of a module."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=find_browser(), args=flags)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: "Chromium") -> Generator["Callable[..., Visit]"]:
    """Return what opens a window of a server; at the end, nothing may have gone wrong in any."""
    from tests.web.browsing import visit

    windows: list[tuple[Any, Visit]] = []

    def enter(of: "Served", *arguments: Any, **wishes: Any) -> "Visit":
        context, made = visit(chromium, of, *arguments, **wishes)
        windows.append((context, made))
        return made

    yield enter
    wrong = [fault for _, made in windows for fault in made.wrong]
    for context, _ in windows:
        context.close()
    assert wrong == []
