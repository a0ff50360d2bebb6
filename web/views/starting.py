"""Starting a run: the form of a new task, and the task of a run once more."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.text import count, few, one_line
from interlock.gates import build_protocol, load_config
from interlock.web.answer_form import lines_of
from interlock.web.jobs import Job, Say
from interlock.web.pages import page, redirect, site_of
from interlock.web.projects import Project
from interlock.web.views.actions import allowed

LISTS: Final = ("scope", "may_change", "inputs")
"""What a form has one item a line of."""
GATE: Final = "gate "
"""How the fields of the gates begin, of which the ticked ones are sent."""
_CANDIDATE: Final = re.compile(r"-C\d+$")


def show(request: Request) -> Response:
    """Show the form of a new run; `like` names a run whose task it begins with."""
    project = site_of(request).project(request.path_params["project"])
    return start_form(request, project, dict(request.query_params))


def start_form(
    request: Request,
    project: Project,
    form: Mapping[str, str],
    *,
    error: InterlockError | None = None,
    findings: Sequence[Finding] = (),
) -> Response:
    """Show the form as it was sent, or filled in from the run that it names, with what was wrong with it."""
    like = form.get("like", "")
    task = project.view(project.row(like).run).task if like else None
    values = {
        "project": project,
        "form": form if "task" in form else _filled(project, task),
        "like": like,
        "roles": [] if task is None else list(task.agents),
        "in_git": graph.in_git(project.root),
        "where": form.get("where") or _where(project, like),
        "gates": list(build_protocol(load_config(project.root)).gates.values()),
        "error": error,
        "findings": findings,
    }
    return page(request, "start.html", values, status=200 if error is None and not findings else 409)


def _filled(project: Project, task: graph.Task | None) -> dict[str, str]:
    """Return what the form begins with: a task, or what the last task, or task.toml, has of the project."""
    tasks = [row for row in project.feed.newest() if row.kind == "task"]
    filled = {"task_id": _next_id(row.name for row in tasks), "task": "", "scope": "src/**"}
    gates, known = ("GATE-MSG-STRICT", *load_config(project.root).gates), task
    # Without any of them a person fills in more of the form.
    with suppress(InterlockError):
        if known is None:
            path = project.root / "task.toml"
            known = graph.RunStore(project.root, tasks[0].run).load()[0] if tasks else graph.load_task(path)
    if known is not None:
        filled |= {name: "\n".join(getattr(known, name)) for name in LISTS}
        filled["page"], gates = known.page or "", known.gates_required
    if task is not None:
        filled |= {"task_id": task.task_id, "task": task.task}
    return filled | {f"{GATE}{gate}": "on" for gate in gates}


def _next_id(names: Iterable[str]) -> str:
    """Return the id that follows on those of the project, the newest of which comes first: `CART-004`."""
    parts = [_CANDIDATE.sub("", name).rpartition("-") for name in names]
    numbered = [(stem, number) for stem, _, number in parts if number.isdecimal()]
    stem, width = (numbered[0][0], len(numbered[0][1])) if numbered else ("TASK", 3)
    last = max((int(number) for each, number in numbered if each == stem), default=0)
    return f"{stem}-{last + 1:0{width}}"


def start(request: Request) -> Response:
    """Check the task of a form, or that of the run that it names, and start a run of it in the background."""
    allowed(request, "review")
    project = site_of(request).project(request.path_params["project"])
    form: dict[str, str] = request.scope["form"]
    try:
        task = _task(project, form)
        faults = graph.preflight(graph.prepare(project.root, task))
        commit = _commit(project, form)
    except InterlockError as error:
        return start_form(request, project, form, error=error)
    if any(fault.level == "error" for fault in faults):
        return start_form(request, project, form, findings=faults)

    accepted = form.get("accept_base") == "yes"

    def work(say: Say) -> str:
        if commit:
            begin = graph.Start(commit, accept_base=accepted)
            run_id = graph.start_apart(project.root, task, begin, warn=say, progress=say)
        else:
            run_id = graph.start_run(project.root, task, warn=say, progress=say, accept_base=accepted)
        project.drives.advance(run_id, wait_seconds=0.0)
        return f"/{project.key}/runs/{quote(run_id)}"

    job = project.jobs.begin(f"start of {task.task_id}", form, work)
    return follow(request, project, job)


def _commit(project: Project, form: Mapping[str, str]) -> str:
    """Return the commit with which a tree of its own begins; empty for a run that works in the checkout.

    Raises:
        GraphError: Changes are not committed, and nobody said what that means.
    """
    where = form.get("where") or _where(project, form.get("like", ""))
    if where not in ("apart", "changes"):
        return ""
    root = project.root
    commit = graph.target_commit(root, load_config(root).landing.target)
    changed, _ = graph.unsaved(root)
    if changed and where == "apart":
        raise graph.GraphError(
            f"{count(len(changed), 'file')} of the checkout changed and not committed: {few(changed)}",
            "Commit them, or choose to take along what is not committed.",
            graph.TREE,
        )
    return graph.commit_of_changes(root, commit) if where == "changes" else commit


def _where(project: Project, like: str) -> str:
    return "apart" if like and project.view(project.row(like).run).policy.tree else "here"


def follow(request: Request, project: Project, job: Job) -> Response:
    """Lead on to where a job led, or to its page for as long as it is under way."""
    return redirect(request, job.there or f"/{project.key}/jobs/{job.key}")


def _task(project: Project, form: Mapping[str, str]) -> graph.Task:
    """Return the task of a form; what the form has no field for is as in the run that it is like.

    Raises:
        TaskError: A field is ill-formed.
        AgentConfigError: A model is.
    """
    like = project.view(project.row(form["like"]).run).task if form.get("like") else None
    if like is not None and "task" not in form:
        return like
    fields: dict[str, Any] = {name: list(lines_of(form.get(name, ""))) for name in LISTS}
    fields["gates_required"] = [name.removeprefix(GATE) for name in form if name.startswith(GATE)]
    fields |= {"task_id": form.get("task_id", "").strip(), "task": one_line(form.get("task", "").strip())}
    if form.get("page", "").strip():
        fields["page"] = form["page"].strip()
    task = graph.task_from_mapping(fields, base=str(project.root), name="the form")
    if like is not None:
        names = ("agents", "run", "budget", "commands", "base")
        task = replace(task, **{name: getattr(like, name) for name in names})
    return graph.staffed(task, load_config(project.root), project.root, lines_of(form.get("models", "")))


ROUTES: Final = (
    Route("/{project}/start", show),
    Route("/{project}/start", start, methods=["POST"]),
)
