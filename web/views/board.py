"""The board: all runs and tickets, the one that changed last first."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.errors import InterlockError
from interlock.envelope.protocol import STATUSES
from interlock.graph.feed import Row
from interlock.web.pages import page, page_number, site_of
from interlock.web.projects import Project, Site

PAGE_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class Item:
    """One row as it is shown; `next` is what happens next, in words."""

    project: Project
    row: Row
    next: str


def found_rows(site: Site, wanted: Mapping[str, str]) -> list[tuple[Project, Row]]:
    """Return the rows that a filter lets pass, the one that changed last first."""
    projects = [project for key, project in site.projects.items() if wanted.get("project") in (None, "", key)]
    fits = _filter(wanted)
    rows = [
        (project, row)
        for project in projects
        for row in (project.feed.newest() if fits is None else filter(fits, project.feed.newest()))
    ]
    # Each feed is sorted; only several of them have to be merged.
    if len(projects) > 1:
        rows.sort(key=lambda pair: pair[1].changed_at, reverse=True)
    return rows


def _filter(wanted: Mapping[str, str]) -> Callable[[Row], bool] | None:
    """Return a predicate for the rows that fit; None where all do."""
    status, kind, role, gate, text = (wanted.get(name, "") for name in ("status", "kind", "role", "gate", "q"))
    if not (status or kind or role or gate or text):
        return None
    text = text.lower()

    def fits(row: Row) -> bool:
        return (
            (not status or row.shown_state == status)
            and (not kind or row.kind == kind)
            and (not role or role in row.roles)
            and (not gate or gate in row.gates)
            and text in row.words
        )

    return fits


def next_step(project: Project, row: Row) -> str:
    """Return what happens next to a run, in a few words."""
    if row.landed:
        return f"landed on {row.landed['target']}"
    if row.over:
        return ""
    if row.kind == "ticket":
        return "waits for its agent"
    try:
        view = project.view(row.run)
    # One run whose folder is damaged must not take the board down.
    except InterlockError as error:
        return error.message
    if view.question is not None:
        return f"waits for you: {view.question.kind}"
    if view.phase == "waiting":
        return f"waits for {', '.join(item.role for item in view.waiting)}"
    if view.phase == "done":
        return "ended"
    return project.at_work(row.run) or ("not started" if view.phase == "new" else "cut off")


def board(request: Request) -> Response:
    """Show the board."""
    site = site_of(request)
    site.refresh()
    wanted = dict(request.query_params)
    rows = found_rows(site, wanted)
    at = page_number(request)
    shown = rows[(at - 1) * PAGE_ROWS : at * PAGE_ROWS]
    items = [Item(project, row, next_step(project, row)) for project, row in shown]
    values: dict[str, Any] = {
        "items": items,
        "queues": [(project, project.queue(), [*project.said()]) for project in site.projects.values()],
        "count": len(rows),
        "at": at,
        "pages": max(1, -(-len(rows) // PAGE_ROWS)),
        "wanted": wanted,
        "statuses": (*STATUSES, "abandoned"),
        "roles": sorted({*_names(site, "roles")}),
        "gates": sorted({*_names(site, "gates")}),
    }
    return page(request, "board.html", values)


def _names(site: Site, name: str) -> Iterator[str]:
    for project in site.projects.values():
        # Names to choose from: those of recent runs will do.
        for row in project.feed.newest()[:500]:
            yield from getattr(row, name)


ROUTES: Final = (Route("/board", board),)
