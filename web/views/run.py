"""A run: its path through the statuses, its attempts and gates, its answers, and why it is where it is."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.web.pages import page, site_of


def run(request: Request) -> Response:
    """Show a run."""
    project = site_of(request).project(request.path_params["project"])
    row = project.row(request.path_params["run"])
    view = project.view(row.run)
    explained = graph.explain_run(view, project.root)
    entries = project.feed.entries(row.run)
    return page(request, "run.html", {"project": project, "row": row, "why": explained, "entries": entries})


ROUTES: Final = (Route("/{project}/runs/{run}", run),)
