"""A ticket: its stages with what was submitted and what was found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.journal import Entry
from interlock.web.errors import PageError
from interlock.web.pages import page, site_of
from interlock.web.projects import reading


@dataclass(frozen=True, slots=True)
class Submission:
    """One attempt at a stage: the payload, what came of it, and the findings."""

    revision: int
    state: str
    status: str
    at: str
    payload: str
    issues: tuple[Mapping[str, Any], ...]


def show(request: Request) -> Response:
    """Show a ticket run."""
    project = site_of(request).project(request.path_params["project"])
    run_id = request.path_params["run"]
    name = graph.journal_run(run_id)
    row = project.feed.rows.get(name)
    if row is None:
        raise PageError("WEB404", f"there is no ticket run {run_id} in {project.title}", "The board lists them.")
    explained = graph.explain_ticket(graph.Tickets(project.root), run_id)
    with reading(run_id):
        submissions = _submissions(project.feed.entries(name))[::-1]
        values = {"project": project, "row": row, "why": explained, "submissions": submissions}
        return page(request, "ticket.html", values)


def _submissions(entries: list[Entry]) -> list[Submission]:
    payloads: dict[int, Mapping[str, Any]] = {}
    found: list[Submission] = []
    for entry in entries:
        data = entry.data
        # A submission is two lines: the call with its payload, and what its gate found.
        if entry.type == "tool_call":
            payloads[data["revision"]] = data.get("payload") or {}
        elif entry.type.startswith("gate_"):
            payload = json.dumps(payloads.get(data["revision"], {}), indent=2, ensure_ascii=False)
            issues = tuple(data.get("issues", ()))
            found.append(Submission(data["revision"], data["state"], data["status"], entry.at, payload, issues))
    return found


ROUTES: Final = (Route("/{project}/tickets/{run}", show),)
