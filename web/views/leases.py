"""The leases: a tree of what is held, by whom, who waits, and the requests that are open; to release and to answer."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.errors import InterlockError
from interlock.core.text import one_line, whole
from interlock.graph import negotiate
from interlock.graph.board import calls
from interlock.reservations import key_of
from interlock.web.lease_tree import tree
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed


class LeaseRefusedError(InterlockError):
    """A call about reservations was refused; the code is that of its rule."""


def show(request: Request) -> Response:
    """Show the leases of a project."""
    project = site_of(request).project(request.path_params["project"])
    held = project.reservations(fresh=True)
    me = ""
    if held is not None:
        with calls(project.root) as mine:
            me = mine.caller.name
    rows: Mapping[str, Any] = held or {"leases": [], "waiters": [], "negotiations": []}
    values = {"project": project, "held": rows, "tree": tree(rows["leases"]), "me": key_of(me), "key_of": key_of}
    return page(request, "leases.html", values)


def _done(request: Request, project: Project, answer: Mapping[str, Any]) -> Response:
    project.reservations(fresh=True)
    errors: list[Mapping[str, Any]] = answer.get("errors") or []
    if errors:
        first = errors[0]
        raise LeaseRefusedError(f"{first['message']} Found: {first['found']}.", str(first["fix"]), str(first["code"]))
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
    eta = form.get("eta_minutes", "")
    with calls(project.root) as mine:
        return _done(
            request, project,
            mine.respond_to_release(
                form.get("thread", ""), form.get("action", ""),
                eta_minutes=whole(eta) or None,
                reason=one_line(form.get("reason", "")) or None,
            ),
        )  # fmt: skip


def ask(request: Request) -> Response:
    """Ask the holder of a file to release it."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form = request.scope["form"]
    with calls(project.root) as mine:
        return _done(
            request, project, negotiate(mine, form.get("file", ""), one_line(form.get("reason", "")), "normal")
        )


ROUTES: Final = (
    Route("/{project}/leases", show),
    Route("/{project}/leases/release", release, methods=["POST"]),
    Route("/{project}/leases/respond", respond, methods=["POST"]),
    Route("/{project}/leases/ask", ask, methods=["POST"]),
)
