"""The changes of a run: each hand-over against the base or another one, with comments on lines."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.text import shown, whole
from interlock.web.access import session_of
from interlock.web.differences import FileDifference, bounded, by_line, differing
from interlock.web.errors import PageError
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed

SHOWN_LINES: Final = 20_000
"""So many lines of all files are shown."""


def changes_values(
    project: Project, run_id: str, before: str = "", after: str = "", most: int = SHOWN_LINES
) -> dict[str, Any]:
    """Return what is shown of a run's changes: the base against the last hand-over, or those that are named.

    No more than `most` lines are shown.
    """
    row = project.row(run_id)
    kept = {each.label: each for each in graph.hand_overs(project.root, run_id)}
    labels = list(kept)
    last = after if after in kept else labels[-1] if labels else ""
    first = before if before in kept else labels[0] if labels else ""
    files = (
        bounded(differing(kept[first], kept[last], lambda digest: graph.content_of(project.root, run_id, digest)), most)
        if last and first != last
        else []
    )
    attempt = kept[last].attempt if last else 0
    # Of each attempt there is at most one such line.
    put_back = [row.paths for row in graph.put_back_of(project.root, run_id) if row.attempt == attempt]
    remarks = [each for each in graph.comments(project.root, run_id) if each.attempt == attempt]
    return {
        "project": project,
        "row": row,
        "files": files,
        "labels": labels,
        "before": first,
        "after": last,
        "attempt": attempt,
        "put_back": put_back[0] if put_back else [],
        "comments": by_line(remarks),
        "remarks": remarks,
        "unseen": _unseen(remarks, files),
    }


def changed_files(project: Project, run_id: str) -> list[FileDifference]:
    """Return the files that differ between the base and the last hand-over of a run, without their lines.

    Compared anew only once the run has moved: the page of a run is made again with each line of its log.
    """
    moves = sum(line.type == "status" for line in project.feed.lines_of.get(run_id, ()))
    known = project.changed.get(run_id)
    if known is None or known[0] != moves:
        known = project.changed[run_id] = moves, changes_values(project, run_id, most=0)["files"]
    return known[1]


def _unseen(remarks: Iterable[graph.Comment], files: Iterable[FileDifference]) -> list[graph.Comment]:
    """Return the comments on lines that the differences leave out, and on files that do not differ."""
    seen = {(file.path, row.after) for file in files for row in file.rows} | {(file.path, 0) for file in files}
    return [each for each in remarks if (each.path, each.line) not in seen]


def show(request: Request) -> Response:
    """Show the changes of a run."""
    project = site_of(request).project(request.path_params["project"])
    asked = request.query_params
    values = changes_values(project, request.path_params["run"], asked.get("from", ""), asked.get("to", ""))
    view = project.view(values["row"].run)
    more = {"going": graph.comments_go_to(view.policy), "over": view.phase == "done"}
    return page(request, "changes.html", {**values, **more})


def comment(request: Request) -> Response:
    """Keep a comment on a line."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    run_id = project.row(request.path_params["run"]).run
    form = request.scope["form"]
    attempt, line = (whole(form.get(name), -1) for name in ("attempt", "line"))
    path = form.get("path", "")
    kept = graph.hand_overs(project.root, run_id)
    # A comment goes into a prompt or a reason, so it may not name just any path.
    if not any(path in {*row.files, *(each.path for each in row.outside)} for row in kept):
        raise PageError(
            "WEB404", f"no hand-over of {run_id} has a file {shown(path)}", "Comment on a file of its changes."
        )
    graph.comment(project.root, run_id, attempt, path, line, form.get("text", ""), session_of(request.scope).name)
    there = urlencode({"from": form.get("before", ""), "to": form.get("after", "")})
    return redirect(request, f"/{project.key}/runs/{quote(run_id)}/changes?{there}#{quote(path)}")


ROUTES: Final = (
    Route("/{project}/runs/{run}/changes", show),
    Route("/{project}/runs/{run}/comment", comment, methods=["POST"]),
)
