"""What a run asks a person: an objection to answer, a gate to waive for the tree that was judged, or not."""

from dataclasses import replace
from typing import Any, Final, cast, get_args
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.core.text import one_line, whole
from interlock.graph import AnswerKind
from interlock.web.access import session_of
from interlock.web.answer_form import lines_of
from interlock.web.errors import PageError
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import reading
from interlock.web.views.actions import allowed
from interlock.web.views.changes import changes_values
from interlock.web.views.evidence import evidence_values

FIELDS: Final = ("scope", "may_change", "inputs", "gates_required")
"""What a correction may change besides the text, one item a line."""
SHOWN_LINES: Final = 2000
"""So many lines of all changed files are shown."""
SHOWN_ROWS: Final = 200
"""So many findings of a gate are shown, and so many of its messages and tests."""


def show(request: Request) -> Response:
    """Show what a run asks a person, with what there is to decide by, and the form for the answer."""
    project = site_of(request).project(request.path_params["project"])
    row = project.row(request.path_params["run"])
    view = project.view(row.run)
    if view.question is None:
        raise PageError("WEB409", f"run {row.run} asks no person for a decision", "Look at the run: it has gone on.")
    values: dict[str, Any] = {
        **changes_values(project, row.run, most=SHOWN_LINES),
        "question": view.question,
        "task": view.task,
        "fields": FIELDS,
        "gates": [],
        "most": SHOWN_ROWS,
        "unread": "",
    }
    try:
        with reading(row.run):
            judged = evidence_values(project, row.run, only=view.question.gates)["gates"]
            return page(request, "decide.html", {**values, "gates": judged})
    except (InterlockError, OSError) as error:
        # An odd line of evidence must not keep a person from answering.
        return page(request, "decide.html", {**values, "unread": str(error)})


def decide(request: Request) -> Response:
    """Keep a person's answer, and take the run on in the background."""
    allowed(request, "decide")
    project = site_of(request).project(request.path_params["project"])
    run_id = project.row(request.path_params["run"]).run
    form: dict[str, str] = request.scope["form"]
    kind, number = form.get("answer", ""), whole(form.get("number"))
    # The number is that of the question that was shown: an answer to an older one is refused later.
    if kind not in get_args(AnswerKind) or not number:
        raise PageError("WEB403", "nothing was done: the form names no answer", "Reload the page.")
    task = project.view(run_id).task
    if kind == "correct":
        lists = {name: lines_of(form.get(name, "")) for name in FIELDS}
        task = replace(task, task=one_line(form.get("task", "")), **cast("dict[str, Any]", lists))
    graph.answer_question(
        project.root,
        run_id,
        cast("AnswerKind", kind),
        by=session_of(request.scope).name,
        reason=form.get("reason", ""),
        gate=form.get("gate", ""),
        task=task,
        number=number,
    )
    project.drives.advance(run_id, wait_seconds=1.0)
    return redirect(request, f"/{project.key}/runs/{quote(run_id)}")


ROUTES: Final = (
    Route("/{project}/runs/{run}/decide", show),
    Route("/{project}/runs/{run}/decide", decide, methods=["POST"]),
)
