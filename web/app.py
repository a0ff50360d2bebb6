"""The application of the pages: their addresses, what refuses, and how an error is shown."""

import time
import traceback
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.core.errors import InterlockError
from interlock.web.access import ENTER, Gate
from interlock.web.errors import PageError
from interlock.web.live import Live, events
from interlock.web.pages import STATIC, refused
from interlock.web.projects import Site
from interlock.web.sessions import Sessions
from interlock.web.views import ROUTES
from interlock.web.views.inbox import waiting_items

_KEPT: Final = "private, max-age=31536000, immutable"
_COUNT_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Pages:
    """The application behind its checks, and how to end its open streams."""

    app: ASGIApp
    end_streams: Callable[[], None]


def make_pages(
    roots: Iterable[Path], sessions: Sessions, *, hosts: frozenset[str], origins: Iterable[str] = ()
) -> Pages:
    """Return the pages of some projects.

    Args:
        roots: The roots of the projects.
        sessions: Who may open them.
        hosts: Every Host header that is accepted, in full.
        origins: Origins besides `http://HOST` whose pages may ask, in full.
    """
    site = Site(roots)
    live = Live(site)
    # Before the screens, whose first part is the name of any project.
    routes = [Route("/events", events), Route("/static/{digest}/{name}", static), *ROUTES]
    app = Starlette(
        routes=routes, exception_handlers={InterlockError: _refused, HTTPException: _refused, Exception: _defect}
    )
    app.state.site = site
    app.state.live = live
    app.state.waiting = _counted(site)
    allowed = frozenset(origins) | {f"http://{host}" for host in hosts}
    return Pages(Gate(app, sessions, hosts, allowed), live.end)


def beside(pages: Pages, other: ASGIApp, end_streams: Callable[[], None], paths: Collection[str]) -> Pages:
    """Return an application that answers at some paths, and starts and ends, as another, and else as the pages."""

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        # What is no request, such as the start of the server, is for the other one.
        ours = scope["type"] == "http" and scope["path"].startswith("/") and scope["path"] not in paths
        await (pages.app if ours else other)(scope, receive, send)

    def end() -> None:
        end_streams()
        pages.end_streams()

    return Pages(chosen, end)


def link(url: str, token: str) -> str:
    """Return the link that lets a browser in, once."""
    return f"{url}{ENTER}{token}"


def static(request: Request) -> Response:
    """Answer with a file of the pages."""
    name = request.path_params["name"]
    # A name that is in the list cannot lead out of the folder.
    if name not in {path.name for path in STATIC.iterdir()}:
        raise PageError("WEB404", f"there is no file {name}", "Reload the page.")
    return FileResponse(STATIC / name, headers={"cache-control": _KEPT})


def _counted(site: Site) -> Callable[[], int]:
    """Return what counts what waits for a person; it counts anew after a second."""
    # Every page shows the number, and counting reads the state of each waiting run.
    last = [-_COUNT_SECONDS, 0]

    def count() -> int:
        now = time.monotonic()
        if now - last[0] >= _COUNT_SECONDS:
            last[:] = [now, len(waiting_items(site))]
        return int(last[1])

    return count


def _refused(request: Request, error: Exception) -> Response:
    """Show what was refused, with the way on."""
    if isinstance(error, HTTPException):
        return refused(request, f"WEB{error.status_code}", error.detail, "", error.status_code)
    assert isinstance(error, InterlockError)
    status = 404 if error.code == "WEB404" else 409
    # The first problem is the message itself.
    problems = [item if isinstance(item, str) else f"{item.text} {item.fix}" for item in error.problems[1:]]
    return refused(request, error.code, error.message, error.fix, status, problems)


def _defect(request: Request, error: Exception) -> Response:
    traceback.print_exception(error)
    fix = "Please report it; the output of the server shows where it happened."
    return refused(request, "WEB500", f"{type(error).__name__} in Interlock", fix, 500)
