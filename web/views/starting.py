"""Starting a run: of a new task, or of that of an earlier run."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.core.text import few, one_line
from interlock.gates import build_protocol, load_config
from interlock.web.answer_form import lines_of
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed

GATE: Final = "gate "
"""How the fields of the gates begin, of which the ticked ones are sent."""


def show(request: Request) -> Response:
    """Show the form of a new run; `like` names a run whose task it begins with."""
    project = site_of(request).project(request.path_params["project"])
    return _form(request, project, dict(request.query_params))


def _form(request: Request, project: Project, form: Mapping[str, str], error: InterlockError | None = None) -> Response:
    """Show the form as it was sent, or filled in, with what was wrong with it."""
    like, config = form.get("like", ""), load_config(project.root)
    known, tree = _known(project, like)
    if "task" not in form:
        names = {row.name for row in project.feed.newest()}
        new = next(name for at in count(1) if (name := f"TASK-{at:03}") not in names)
        gates = ("GATE-MSG-STRICT", *config.gates) if known is None else known.gates_required
        form = {
            "task_id": new if known is None else known.task_id,
            "task": "" if known is None else known.task,
            "scope": "src/**" if known is None else "\n".join(known.scope),
            **{f"{GATE}{gate}": "on" for gate in gates},
            **({"apart": "yes"} if tree else {}),
        }
    values = {
        "project": project,
        "form": form,
        "like": like,
        "known": known,
        "gates": list(build_protocol(config).gates.values()),
        "error": error,
    }
    return page(request, "start.html", values, status=200 if error is None else 409)


def _known(project: Project, like: str) -> tuple[graph.Task | None, str]:
    """Return the task of a run with the tree that it worked in; None without a run."""
    if not like:
        return None, ""
    view = project.view(project.row(like).run)
    return view.task, view.policy.tree


def start(request: Request) -> Response:
    """Start a run of the task of a form."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form: dict[str, str] = request.scope["form"]
    try:
        task = _task(project, form)
        commit = _commit(project) if "apart" in form or project.is_shared else ""
        there = project.do(f"start of {task.task_id}", partial(_start, project, task, commit))
    except InterlockError as error:
        return _form(request, project, form, error)
    return redirect(request, there)


def _start(project: Project, task: graph.Task, commit: str) -> str:
    root = project.root
    run_id = graph.start_apart(root, task, graph.Start(commit)) if commit else graph.start_run(root, task)
    project.drives.advance(run_id, wait_seconds=0.0)
    return f"/{project.key}/runs/{quote(run_id)}"


def _commit(project: Project) -> str:
    """Return the commit with which a tree of its own begins.

    Raises:
        GraphError: There is none, or the checkout has changes, which would not be in the tree.
    """
    changed, _ = graph.unsaved(project.root)
    if changed:
        raise graph.GraphError(
            f"the checkout has changes that are not committed: {few(changed)}",
            "Commit them, or take them along: `interlock run --apart --with-changes TASK.toml`.",
            graph.TREE,
        )
    return graph.target_commit(project.root, load_config(project.root).landing.target)


def _task(project: Project, form: Mapping[str, str]) -> graph.Task:
    """Return the task of a form; what the form has no field for is as in the task that it began with.

    Raises:
        TaskError: A field is ill-formed.
        AgentConfigError: A model is.
    """
    fields: dict[str, Any] = {name: one_line(form.get(name, "").strip()) for name in ("task_id", "task")}
    fields["scope"] = list(lines_of(form.get("scope", "")))
    fields["gates_required"] = [name.removeprefix(GATE) for name in form if name.startswith(GATE)]
    task = graph.task_from_mapping(fields, base=str(project.root), name="the form")
    known, _ = _known(project, form.get("like", ""))
    if known is not None:
        task = replace(known, **{name: getattr(task, name) for name in fields})
    return graph.staffed(task, load_config(project.root), project.root, lines_of(form.get("models", "")))


ROUTES: Final = (
    Route("/{project}/start", show),
    Route("/{project}/start", start, methods=["POST"]),
)
