"""What a person does to a run: answer for a role, take it on, abandon it, restore files, land it, order the queue."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.text import count, few, whole
from interlock.web.access import session_of
from interlock.web.answer_form import Asked, asked, composed, hand_in, judged
from interlock.web.errors import PageError
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project
from interlock.web.sessions import Rights


def allowed(request: Request, wanted: Rights) -> None:
    """Let a session through that has these rights.

    Raises:
        PageError: WEB403, it has fewer.
    """
    if not session_of(request.scope).may(wanted):
        # Without a terminal, as for an agent, its link gives fewer rights.
        fix = "Open a link that `interlock ui` prints in a terminal."
        raise PageError("WEB403", f"this session may not {wanted}", fix)


def _run(request: Request) -> tuple[Project, graph.RunView]:
    project = site_of(request).project(request.path_params["project"])
    return project, project.view(project.row(request.path_params["run"]).run)


def _ask(request: Request) -> tuple[Project, Asked]:
    project, view = _run(request)
    name = request.path_params["role"]
    found = asked(view, name)
    if found is None:
        raise PageError(
            "WEB409",
            f"run {view.run_id} does not wait for {name}: {_instead(project, view)}",
            "Look at the run: somebody may have answered, or it went on.",
        )
    return project, found


def _instead(project: Project, view: graph.RunView) -> str:
    """Return what happened last in a run, in words."""
    if view.phase == "new":
        return "it has not started"
    last = project.feed.entries(view.run_id)[-1]
    who = last.data.get("role") or last.data.get("by") or ""
    whose = f"of {who} " if who else ""
    return f"it is {view.status or 'not started'}; its last line is `{last.type}` {whose}at {last.at}"


def answer_form(request: Request) -> Response:
    """Show what a role is asked, with the form for its answer."""
    project, ask = _ask(request)
    values = _form_values(project, ask, dict(request.query_params))
    return page(request, "answer_form.html", values)


def _form_values(project: Project, ask: Asked, form: dict[str, str]) -> dict[str, Any]:
    # A reviewer who opens the form finds the comments of this attempt as reasons already.
    if not form and ask.role.kind == "review" and ask.role.certifies:
        kept = graph.comments(project.root, ask.view.run_id)
        mine = [row.remark for row in kept if row.attempt == ask.view.values["attempt"]]
        form = {"reasons": "\n".join(mine), "outcome": "fail"} if mine else form
    text = composed(ask, form)
    return {
        "project": project,
        "row": project.row(ask.view.run_id),
        "ask": ask,
        "form": form,
        "text": text,
        "findings": judged(project, ask, text) if form and text else [],
        "refusal": _refusal(project, ask),
    }


def _refusal(project: Project, ask: Asked) -> dict[str, Any] | None:
    """Return why the last answer of the role was refused, when it is asked again."""
    if not ask.request["reask"]:
        return None
    return graph.explain_run(ask.view, project.root)["last_refusal"]


def preview(request: Request) -> Response:
    """Show the envelope that a form makes, and what the rules find in it."""
    project, ask = _ask(request)
    return page(request, "answer_form.html", _form_values(project, ask, request.scope["form"]))


def submit(request: Request) -> Response:
    """Hand the answer of a form in."""
    allowed(request, "review")
    project, ask = _ask(request)
    form: dict[str, str] = request.scope["form"]
    if not composed(ask, form):
        raise PageError("WEB403", "nothing was submitted: the answer has no outcome", "Go back, and choose an outcome.")
    view = hand_in(project, ask, form, session_of(request.scope).name)
    again = asked(view, ask.role.name)
    there = f"/{project.key}/runs/{quote(view.run_id)}"
    # A refused answer leads back to the form, which says why.
    if again is not None and again.request["reask"]:
        there += f"/answer/{quote(ask.role.name)}"
    return redirect(request, there)


def resume(request: Request) -> Response:
    """Take a run on in the background."""
    allowed(request, "review")
    project, view = _run(request)
    project.drives.advance(view.run_id, wait_seconds=1.0)
    return _back(request, project, view)


def abandon(request: Request) -> Response:
    """End a run for good."""
    allowed(request, "review")
    project, view = _run(request)
    if request.scope["form"].get("sure") != "yes":
        raise PageError("WEB403", "nothing was done: ending a run has to be confirmed", "Go back, and tick the box.")
    graph.abandon(project.root, view.run_id)
    return _back(request, project, view)


def restore(request: Request) -> Response:
    """Make files what they were when a run began, as `interlock restore` does, and say how to undo it."""
    allowed(request, "review")
    project, view = _run(request)
    wanted = graph.restoring(project.root, view)
    done = wanted.apply()
    undo = f"interlock restore {view.run_id} {shlex.join(done)} --tree {wanted.now}"
    return page(request, "restored.html", {"project": project, "run_id": view.run_id, "done": done, "undo": undo})


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
    refused = [(row, row.error) for row in graph.land(project.root, runs) if row.error is not None]
    if refused:
        why = [
            f"{few(row.run_ids)}: {row.state}, {error} {few(row.files or row.tests)}".strip() for row, error in refused
        ]
        fixes = dict.fromkeys(error.fix for _, error in refused)
        raise PageError(refused[0][1].code, "; ".join(why), " ".join(fixes))
    return there


def queue(request: Request) -> Response:
    """Hold a run back, release it, or move it in the queue."""
    allowed(request, "review")
    project, view = _run(request)
    form = request.scope["form"]
    if form.get("do") == "move":
        graph.move(project.root, view.run_id, whole(form.get("position"), 1))
    else:
        graph.hold(project.root, view.run_id, form.get("do") == "hold")
    return redirect(request, "/board")


def _back(request: Request, project: Project, view: graph.RunView) -> Response:
    return redirect(request, f"/{project.key}/runs/{quote(view.run_id)}")


def _post(path: str, action: Callable[[Request], Response]) -> Route:
    return Route(f"/{{project}}/runs/{{run}}/{path}", action, methods=["POST"])


ROUTES: Final = (
    Route("/{project}/runs/{run}/answer/{role}", answer_form),
    _post("answer/{role}/preview", preview),
    _post("answer/{role}", submit),
    _post("resume", resume),
    _post("abandon", abandon),
    _post("restore", restore),
    _post("queue", queue),
    Route("/{project}/land", land, methods=["POST"]),
)
