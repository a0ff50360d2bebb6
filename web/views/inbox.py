"""The inbox: all that waits for a person, over all projects, each with the way to answer it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.web.feed import Row
from interlock.web.leases import picture
from interlock.web.pages import page, site_of
from interlock.web.site import Project, Site

LOOKED_AT: Final = 200
"""So many runs that are not over are looked at, the ones that changed last; older ones are on the board."""


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
        item
        for project in site.projects.values()
        for item in (*(each for row in _open(project) for each in _of_run(project, row)), *_negotiations(project))
    ]
    return sorted(items, key=lambda item: item.since, reverse=True)


def _open(project: Project) -> list[Row]:
    """Return the rows of task runs that may wait for somebody; a BLOCKED one only where it is its task's newest."""
    seen: set[str] = set()
    found: list[Row] = []
    for row in project.feed.newest():
        if row.kind == "task" and not row.over and not (row.state == "BLOCKED" and row.name in seen):
            found.append(row)
        seen.add(row.name)
        if len(found) >= LOOKED_AT:
            break
    return found


def _of_run(project: Project, row: Row) -> Iterator[Item]:
    try:
        view = project.view(row.run)
    except InterlockError:
        return
    there = f"/{project.key}/runs/{quote(row.run)}"

    def item(kind: str, text: str, path: str = "") -> Item:
        return Item(kind, project, row.run, text, row.changed_at, there + path)

    if view.abandoned:
        return
    if view.question is not None:
        for gate, why in view.question.gates.items():
            yield item(view.question.kind, f"{gate}: {why}", "/decide")
    if view.phase == "waiting":
        for each in view.waiting:
            role = view.policy.protocol.roles[each.role]
            kind = "review" if role.kind == "review" else "answer"
            again = ", again" if each.request["reask"] else ""
            yield item(kind, f"{each.role} is asked{again}: {row.title}", f"/answer/{quote(each.role)}")
    elif view.phase in ("running", "new"):
        store = graph.RunStore(project.root, row.run)
        stopped = None if store.driven() else store.stopped()
        if stopped is not None:
            yield item("stopped", f"{stopped['code']}: {stopped['message']}")
        elif not store.driven():
            yield item("cut off", "nobody drives it; it can be taken on")
    elif view.phase == "done" and view.status == "BLOCKED":
        first = row.reasons[0] if row.reasons else "no reason is kept"
        yield item("blocked", f"{first}{f' and {len(row.reasons) - 1} more' if len(row.reasons) > 1 else ''}")


def _negotiations(project: Project) -> Iterator[Item]:
    held = picture(project.root)
    rows: list[dict[str, Any]] = [] if held is None else held["negotiations"]
    for row in rows:
        if not row["resolved"]:
            text = f"{row['requester']} asks {row['holder']} for {row['file']}"
            yield Item("negotiation", project, str(row["file"]), text, str(row["created_at"]), f"/{project.key}/leases")


def inbox(request: Request) -> Response:
    """Show the inbox."""
    return page(request, "inbox.html", {"items": waiting_items(site_of(request))})


ROUTES: Final = (Route("/", inbox),)
