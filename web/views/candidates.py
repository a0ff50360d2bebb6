"""The candidates of a task beside one another: their gates, their sizes, what they cost, and what they changed."""

from contextlib import suppress
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.graph.feed import Row
from interlock.web.errors import PageError
from interlock.web.pages import page, site_of
from interlock.web.projects import Project
from interlock.web.views.changes import changes_values

SHOWN_LINES: Final = 2000
"""So many lines are shown of each candidate."""


def task_of(name: str) -> str:
    """Return the task whose candidate a task id names; empty for another task."""
    found = graph.CANDIDATE.fullmatch(name)
    return found[1] if found else ""


def show(request: Request) -> Response:
    """Show the newest run of each candidate of a task, in the order of their numbers."""
    project = site_of(request).project(request.path_params["project"])
    task_id = request.path_params["task"]
    # Of each name the newest comes first, and the last one of a dictionary stays.
    newest = {row.name: row for row in reversed(project.feed.newest()) if task_of(row.name) == task_id}
    rows = sorted(newest.values(), key=lambda row: (len(row.name), row.name))
    if not rows:
        raise PageError("WEB404", f"there are no candidates of {task_id}", "The board lists the runs.")
    found = [(row, _gates(project, row), changes_values(project, row.run, most=SHOWN_LINES)["files"]) for row in rows]
    gates = list(dict.fromkeys(gate for row in rows for gate in row.gates))
    values = {"project": project, "task_id": task_id, "candidates": found, "gates": gates}
    return page(request, "candidates.html", values)


def _gates(project: Project, row: Row) -> dict[str, bool]:
    """Return whether each gate is passed; of a run that cannot be read, nothing."""
    with suppress(InterlockError):
        explained = graph.explain_run(project.view(row.run), project.root)
        return {gate["gate"]: gate["passed"] for gate in explained["gates"]}
    return {}


ROUTES: Final = (Route("/{project}/candidates/{task}", show),)
