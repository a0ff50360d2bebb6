"""Restoring files of a run: what would change, and the button that does it, as `interlock restore` does."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.web.differences import bounded, differing
from interlock.web.errors import PageError
from interlock.web.pages import page, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed

SHOWN_LINES: Final = 5000
_TREE: Final = re.compile("[0-9a-f]{40,64}|")


def show(request: Request) -> Response:
    """Show which files would change, and how; with `as_left`, to what the agent left."""
    project = site_of(request).project(request.path_params["project"])
    return _page(request, project, as_left="as_left" in request.query_params)


def _page(request: Request, project: Project, *, as_left: bool = False, **more: object) -> Response:
    row = project.row(request.path_params["run"])
    wanted = graph.restoring(project.root, project.view(row.run), as_left=as_left)
    now, then = wanted.hand_overs()
    files = differing(now, then, lambda name: graph.content_of(project.root, row.run, name))
    values = {
        "project": project,
        "row": row,
        "wanted": wanted,
        "as_left": as_left,
        "files": bounded(files, SHOWN_LINES),
        "paths": json.dumps([file.path for file in files]),
        "done": None,
        "undo": None,
    }
    return page(request, "restore.html", {**values, **more})


def restore(request: Request) -> Response:
    """Write the files that were shown as a stored tree has them, and say how to bring back what they held."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form: dict[str, str] = request.scope["form"]
    paths, tree = _paths(form.get("paths", "")), form.get("tree", "")
    if not paths or not _TREE.fullmatch(tree):
        raise PageError("WEB403", "nothing was done: the form names no files", "Reload the page.")
    view = project.view(project.row(request.path_params["run"]).run)
    wanted = graph.restoring(project.root, view, paths, tree=tree)
    done = wanted.apply()
    return _page(request, project, done=done, undo={"paths": json.dumps(done), "tree": wanted.now})


def _paths(text: str) -> Sequence[str]:
    try:
        read: Any = json.loads(text)
    except ValueError:
        return ()
    return [each for each in cast("list[object]", read) if isinstance(each, str)] if isinstance(read, list) else ()


ROUTES: Final = (
    Route("/{project}/runs/{run}/restore", show),
    Route("/{project}/runs/{run}/restore", restore, methods=["POST"]),
)
