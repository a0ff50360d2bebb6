"""The journal: its lines, whether it is whole, and its lines to take away."""

from itertools import islice
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.web.pages import page, site_of

PAGE_LINES: Final = 100


def journal(request: Request) -> Response:
    """Show the last lines of a project's journal, of one run or of all."""
    site = site_of(request)
    project = site.project(request.path_params["project"])
    run = request.query_params.get("run") or None
    lines = list(islice(project.feed.journal.entries(run), 0, None))
    return page(request, "journal.html", {"project": project, "lines": lines[-PAGE_LINES:][::-1], "run": run})


ROUTES: Final = (Route("/{project}/journal", journal),)
