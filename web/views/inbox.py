"""The inbox: all that waits for a person, over all projects, each with the way to answer it."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.graph import Wait
from interlock.web.pages import page, site_of
from interlock.web.projects import Project, Site


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits: its `kind`, what it is about, what is to be done, since when, and where to do it."""

    kind: str
    project: Project
    name: str
    text: str
    since: str
    path: str


def waiting_items(site: Site) -> list[Item]:
    """Return what waits for a person, the newest first."""
    site.refresh()
    items = [
        Item(wait.kind, project, wait.file or wait.run, wait.text, since, f"/{project.key}{_path(wait)}")
        for project in site.projects.values()
        for wait, since in project.waiting()
    ]
    return sorted(items, key=lambda item: item.since, reverse=True)


def _path(wait: Wait) -> str:
    # Requests for files belong to no run.
    if wait.kind in ("negotiation", "claim"):
        return "/leases"
    there = f"/runs/{quote(wait.run)}"
    if wait.kind in ("objection", "waiver"):
        return f"{there}/decide"
    return f"{there}/answer/{quote(wait.role)}" if wait.kind in ("review", "answer") else there


def inbox(request: Request) -> Response:
    """Show the inbox."""
    site = site_of(request)
    return page(request, "inbox.html", {"items": waiting_items(site)})


ROUTES: Final = (Route("/", inbox),)
