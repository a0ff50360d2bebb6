"""The inbox: all that waits for a person, over all projects, each with the way to answer it.

What a person dismissed is kept in `.interlock/dismissed.json`, until something new happens to it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.files import write_atomically
from interlock.graph import Wait, state_dir
from interlock.web.errors import PageError
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project, Site
from interlock.web.views.actions import allowed

_DISMISSED: Final = "dismissed.json"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits: its `kind`, what it is about, what is to be done, since when, and where to do it.

    `mark` is another one as soon as anything happens to it, so that what was dismissed comes back then.
    """

    kind: str
    project: Project
    name: str
    text: str
    since: str
    path: str
    mark: str


def waiting_items(site: Site) -> list[Item]:
    """Return what waits for a person, the newest first, but for what was dismissed."""
    site.refresh()
    items: list[Item] = []
    for project in site.projects.values():
        gone = _dismissed(project.root)
        for wait, since in project.waiting():
            mark, path = _mark(wait, since), f"/{project.key}{_path(wait)}"
            if mark not in gone:
                items.append(Item(wait.kind, project, wait.file or wait.run, wait.text, since, path, mark))
    return sorted(items, key=lambda item: item.since, reverse=True)


def _mark(wait: Wait, since: str) -> str:
    return f"{wait.key} {since}"


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


def dismiss_item(request: Request) -> Response:
    """Put one thing out of the inbox."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    mark, marks = request.scope["form"].get("mark"), [_mark(*each) for each in project.waiting()]
    if mark not in marks:
        raise PageError("WEB409", "this waits for nobody any more", "Go back to the inbox, and reload it.")
    # What is not open any more is forgotten, so that the file stays small.
    kept = [mark, *(each for each in _dismissed(project.root) if each in marks)]
    write_atomically(state_dir(project.root) / _DISMISSED, json.dumps(kept).encode(), durable=False)
    return redirect(request, "/")


def _dismissed(root: Path) -> frozenset[str]:
    """Return the marks of what was dismissed; none where the file cannot be read, so that nothing stays hidden."""
    try:
        return frozenset(map(str, json.loads((root / ".interlock" / _DISMISSED).read_bytes())))
    except (OSError, ValueError, TypeError):
        return frozenset()


ROUTES: Final = (
    Route("/", inbox),
    Route("/{project}/dismiss", dismiss_item, methods=["POST"]),
)
