"""The workers of a project with a database: who is alive and drives what, what waits, and what is stalled."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.web.pages import page, site_of


def show(request: Request) -> Response:
    """Show workers, queues, and runs that do not go on by themselves."""
    project = site_of(request).project(request.path_params["project"])
    return page(request, "workers.html", {"project": project, "found": graph.overview(project.root)})


ROUTES: Final = (Route("/{project}/workers", show),)
