"""The statistics of a project: what fails, what takes long, and what waits for what."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.web.pages import page, site_of
from interlock.web.plots import of_project


def show(request: Request) -> Response:
    """Show the plots of a project."""
    project = site_of(request).project(request.path_params["project"])
    plots = of_project(project.feed.newest(), project.feed.waits)
    return page(request, "statistics.html", {"project": project, "plots": plots})


ROUTES: Final = (Route("/{project}/statistics", show),)
