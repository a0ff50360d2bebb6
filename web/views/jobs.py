"""What is under way in the background: its page, and the buttons of landing."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.text import count, few, whole
from interlock.web.errors import PageError
from interlock.web.jobs import Say
from interlock.web.pages import page, redirect, site_of
from interlock.web.views.actions import allowed
from interlock.web.views.starting import follow, start_form


def show(request: Request) -> Response:
    """Show a job; one that is over leads on, or says why it was refused."""
    project = site_of(request).project(request.path_params["project"])
    job = project.jobs.find(request.path_params["job"])
    if job.error is not None:
        if job.form:
            return start_form(request, project, job.form, error=job.error)
        raise job.error
    if job.there:
        return redirect(request, job.there)
    return page(request, "job.html", {"project": project, "job": job})


def land(request: Request) -> Response:
    """Land a run, or the whole queue, in the background."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    run_id = request.scope["form"].get("run", "")
    runs = [run_id] if run_id else [each.run_id for each in project.queue() if not each.held]

    def work(say: Say) -> str:
        def notice(step: Mapping[str, Any]) -> None:
            say(": ".join(filter(None, (few(step["runs"]), step["line"]))))

        refused = [each for each in graph.land(project.root, runs, notice=notice) if each.state != "landed"]
        if refused:
            error = PageError(refused[0].code or "WEB409", _not_landed(refused[0]), refused[0].fix)
            error.problems = tuple(f"{_not_landed(each)} {each.fix}" for each in refused)
            raise error
        return f"/{project.key}/runs/{quote(run_id)}" if run_id else "/board"

    return follow(request, project, project.jobs.begin(f"landing of {run_id or count(runs, 'run')}", {}, work))


def _not_landed(row: graph.Landing) -> str:
    named = few(row.files or row.tests)
    return f"{few(row.run_ids)} did not land ({row.state}): {row.message}{f' ({named})' if named else ''}."


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
    return redirect(request, "/board" if form.get("from") == "board" else f"/{project.key}/runs/{quote(run_id)}")


ROUTES: Final = (
    Route("/{project}/jobs/{job}", show),
    Route("/{project}/land", land, methods=["POST"]),
    Route("/{project}/queue", queue, methods=["POST"]),
)
