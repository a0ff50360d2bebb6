"""The candidates of a task beside one another: their gates, their sizes, what they cost, and what they changed."""

import re
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.graph.feed import Row
from interlock.web.differences import FileDifference
from interlock.web.errors import PageError
from interlock.web.pages import page, site_of
from interlock.web.projects import Project
from interlock.web.views.changes import changes_values

SHOWN_LINES: Final = 2000
"""So many lines are shown of each candidate."""
_CANDIDATE: Final = re.compile(r"(?P<task>.+)-C[0-9]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """The newest run of a candidate: its row, whether each gate is passed, and what it changed."""

    row: Row
    passed: dict[str, bool]
    files: list[FileDifference]


def task_of(name: str) -> str:
    """Return the task whose candidate a task id names; empty for another task."""
    found = _CANDIDATE.fullmatch(name)
    return found["task"] if found else ""


def candidates_of(project: Project, task_id: str) -> list[Row]:
    """Return the newest run of each candidate of a task, in the order of their numbers."""
    newest: dict[str, Row] = {}
    for row in project.feed.newest():
        if row.kind == "task" and task_of(row.name) == task_id:
            newest.setdefault(row.name, row)
    return sorted(newest.values(), key=lambda row: (len(row.name), row.name))


def show(request: Request) -> Response:
    """Show the candidates of a task."""
    project = site_of(request).project(request.path_params["project"])
    task_id = request.path_params["task"]
    rows = candidates_of(project, task_id)
    if not rows:
        raise PageError("WEB404", f"there are no candidates of {task_id}", "The board lists the runs.")
    found = [_candidate(project, row) for row in rows]
    gates = list(dict.fromkeys(gate for each in found for gate in each.row.gates))
    values: dict[str, Any] = {"project": project, "task_id": task_id, "candidates": found, "gates": gates}
    return page(request, "candidates.html", values)


def _candidate(project: Project, row: Row) -> Candidate:
    passed: dict[str, bool] = {}
    try:
        explained = graph.explain_run(project.view(row.run), project.root)
        passed = {str(gate["gate"]): bool(gate["passed"]) for gate in explained["gates"]}
    # The others are shown where one of them cannot be read.
    except InterlockError:
        pass
    return Candidate(row, passed, changes_values(project, row.run, most=SHOWN_LINES)["files"])


ROUTES: Final = (Route("/{project}/candidates/{task}", show),)
