"""Landing from the pages: a run, or all that waits, and the order in which it waits."""

from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.text import count, few, whole
from interlock.web.errors import PageError
from interlock.web.pages import redirect, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed


def land(request: Request) -> Response:
    """Land a run, or the whole queue."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    run_id = request.scope["form"].get("run", "")
    runs = [run_id] if run_id else [each.run_id for each in project.queue() if not each.held]
    there = f"/{project.key}/runs/{quote(run_id)}" if run_id else "/board"
    title = f"landing of {run_id or count(runs, 'run')}"
    return redirect(request, project.do(title, partial(_land, project, runs, there)))


def _land(project: Project, runs: Sequence[str], there: str) -> str:
    refused = [row for row in graph.land(project.root, runs) if row.state != "landed"]
    if refused:
        told = [
            f"{few(row.run_ids)}: {row.state}, {row.message} {few(row.files or row.tests)}".strip() for row in refused
        ]
        fixes = dict.fromkeys(row.fix for row in refused)
        raise PageError(refused[0].code or "WEB409", "; ".join(told), " ".join(fixes))
    return there


def queue(request: Request) -> Response:
    """Hold a run back, release it, or move it in the queue."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form = request.scope["form"]
    run_id = project.row(form.get("run", "")).run
    if form.get("do") == "move":
        graph.move(project.root, run_id, whole(form.get("position"), 1))
    else:
        graph.hold(project.root, run_id, form.get("do") == "hold")
    return redirect(request, "/board")


ROUTES: Final = (
    Route("/{project}/land", land, methods=["POST"]),
    Route("/{project}/queue", queue, methods=["POST"]),
)
