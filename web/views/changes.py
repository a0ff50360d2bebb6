"""The changes of a run: each hand-over against the base or another one, with comments on lines."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.text import shown, whole
from interlock.graph import HandOver
from interlock.web.access import session_of
from interlock.web.differences import FileDifference, bounded, by_line, differing
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import NotHereError, Project
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
        bounded(differing(kept[first], kept[last], lambda digest: graph.kept_file(project.root, run_id, digest)), most)
        if last and first != last
        else []
    )
    attempt = kept[last].attempt if last else 0
    put_back = [row.paths for row in graph.put_back_of(graph.RunStore(project.root, run_id)) if row.attempt == attempt]
    remarks = [each for each in graph.comments(project.root, run_id) if each.attempt == attempt]
    return {
        "project": project, "row": row, "files": files, "labels": labels, "before": first, "after": last,
        "attempt": attempt, "put_back": put_back[0] if put_back else [], "comments": by_line(remarks),
        "remarks": remarks, "unseen": _unseen(remarks, files),
    }  # fmt: skip


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
    more = {"going": graph.comments_go_to(view.policy), "over": view.phase == "done" and not view.failed}
    return page(request, "changes.html", {**values, **more, "split": "split" in asked})


def comment(request: Request) -> Response:
    """Keep a comment on a line."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    run_id = project.row(request.path_params["run"]).run
    form = request.scope["form"]
    attempt, line = (whole(form.get(name), -1) for name in ("attempt", "line"))
    path = form.get("path", "")
    kept = graph.hand_overs(project.root, run_id)
    if not any(path in {*row.files, *(each.path for each in row.outside)} for row in kept):
        raise NotHereError(f"no hand-over of {run_id} has a file {shown(path)}", "Comment on a file of its changes.")
    # The files at an objection have the attempt of a hand-over too.
    rows = sorted((row for row in kept if row.attempt == attempt), key=lambda row: row.label == form.get("after"))
    count = _line_count(project, run_id, rows[-1] if rows else None, path)
    if count is not None and line > count:
        message = f"{shown(path)} has {count} lines in attempt {attempt}, and no line {line}"
        raise graph.CommentError(message, f"Name a line from 1 to {count}, or 0 for the file as a whole.")
    graph.comment(project.root, run_id, attempt, path, line, form.get("text", ""), session_of(request.scope).name)
    there = urlencode({"from": form.get("before", ""), "to": form.get("after", "")})
    return redirect(request, f"/{project.key}/runs/{quote(run_id)}/changes?{there}#{quote(path)}")


def _line_count(project: Project, run_id: str, of: HandOver | None, path: str) -> int | None:
    """Return how many lines a file of a hand-over has; None where its content is not kept."""
    if of is None:
        return None
    digests = {**of.files, **{row.path: row.after for row in of.outside}}
    data = graph.kept_file(project.root, run_id, digest) if (digest := digests.get(path, "")) else b""
    return None if data is None else len(data.decode("utf-8", "replace").splitlines())


ROUTES: Final = (
    Route("/{project}/runs/{run}/changes", show),
    Route("/{project}/runs/{run}/comment", comment, methods=["POST"]),
)
