"""The inbox: all that waits for a person, over all projects, each with the way to answer it."""

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.errors import InterlockError
from interlock.web.feed import Row
from interlock.web.pages import page, site_of
from interlock.web.site import Project, Site


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits: its `kind`, the `run` that it is about, and what is to be done, in words."""

    kind: str
    project: Project
    row: Row
    text: str


def waiting_items(site: Site) -> list[Item]:
    """Return what waits for a person, the newest first."""
    site.refresh()
    return [
        item
        for project in site.projects.values()
        for row in project.feed.newest()
        if not row.over and row.kind == "task"
        for item in _of_run(project, row)
    ]


def _of_run(project: Project, row: Row) -> list[Item]:
    try:
        view = project.view(row.run)
    except InterlockError:
        return []
    return [Item("review", project, row, f"{item.role} is asked") for item in view.waiting]


def inbox(request: Request) -> Response:
    """Show the inbox."""
    return page(request, "inbox.html", {"items": waiting_items(site_of(request))})


ROUTES: Final = (Route("/", inbox),)
