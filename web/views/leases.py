"""The leases: what is held, by whom, who waits, and the requests that are open; to release and to answer."""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.text import one_line, whole
from interlock.graph.board import calls
from interlock.reservations import key_of
from interlock.web.errors import PageError
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed


def show(request: Request) -> Response:
    """Show the leases of a project."""
    project = site_of(request).project(request.path_params["project"])
    held = project.reservations(fresh=True)
    me = ""
    if held is not None:
        with calls(project.root) as mine:
            me = mine.caller.name
    rows: Mapping[str, Any] = held or {"leases": [], "waiters": [], "negotiations": []}
    leases = sorted(rows["leases"], key=lambda row: str(row["pattern"]))
    values = {"project": project, "held": rows, "leases": leases, "me": key_of(me), "key_of": key_of}
    return page(request, "leases.html", values)


def _done(request: Request, project: Project, answer: Mapping[str, Any]) -> Response:
    project.reservations(fresh=True)
    # The calls answer as the tools do: with errors in place of an exception.
    errors: list[Mapping[str, Any]] = answer.get("errors") or []
    if errors:
        first = errors[0]
        raise PageError(str(first["code"]), f"{first['message']} Found: {first['found']}.", str(first["fix"]))
    return redirect(request, f"/{project.key}/leases")


def release(request: Request) -> Response:
    """Release a lease of one's own."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    with calls(project.root) as mine:
        return _done(request, project, mine.release_files([request.scope["form"].get("lease", "")]))


def respond(request: Request) -> Response:
    """Answer a request: release the file, or say when."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form = request.scope["form"]
    minutes = whole(form.get("eta_minutes", "")) or None
    reason = one_line(form.get("reason", ""))
    with calls(project.root) as mine:
        action = cast('Literal["release", "defer"]', form.get("action", ""))
        answer = mine.respond_to_release(form.get("thread", ""), action, eta_minutes=minutes, reason=reason)
        return _done(request, project, answer)


def ask(request: Request) -> Response:
    """Ask the holder of a file to release it."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form = request.scope["form"]
    with calls(project.root) as mine:
        return _done(
            request, project, mine.negotiate_release(form.get("file", ""), one_line(form.get("reason", "")), "normal")
        )


ROUTES: Final = (
    Route("/{project}/leases", show),
    Route("/{project}/leases/release", release, methods=["POST"]),
    Route("/{project}/leases/respond", respond, methods=["POST"]),
    Route("/{project}/leases/ask", ask, methods=["POST"]),
)
