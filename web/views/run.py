"""A run: why it is where it is, its answers and its log."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.core.text import visible, whole
from interlock.journal import Entry
from interlock.web import evidence
from interlock.web.errors import PageError
from interlock.web.event_text import Said, said
from interlock.web.pages import page, site_of
from interlock.web.projects import Project, reading
from interlock.web.views.candidates import task_of
from interlock.web.views.changes import changed_files

LOG_LINES: Final = 200
"""So many lines of the log a page begins with; the rest is a link away."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it is listed: the line of the journal, the codes of what refused it, and what it cost."""

    seq: int
    role: str
    attempt: int
    number: int
    outcome: str
    at: str
    codes: tuple[str, ...]
    seconds: float
    tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of an answer, with the findings that are about it."""

    number: int
    text: str
    findings: tuple[dict[str, Any], ...]


def run_values(project: Project, run_id: str) -> dict[str, Any]:
    """Return all that is shown of a run; a run whose folder is gone is shown from its journal lines."""
    row = project.row(run_id)
    lines = project.feed.lines_of.get(run_id, ())
    entries, logged = project.feed.read(lines), project.feed.log_lines(run_id)
    waiting: list[str] = []
    question: graph.Question | None = None
    # What a person may do is known once the state is read, and stays empty where it cannot be.
    can: set[str] = set()
    queued = None
    try:
        view = project.view(run_id)
        explained = graph.explain_run(view, project.root)
        waiting, question = [item.role for item in view.waiting], view.question
        # A run that a process drives at this moment is neither taken on nor ended from here.
        if not view.abandoned and not explained["driven"]:
            can |= {"resume"} if not view.of_another_version and view.phase in ("new", "running") else set()
            can |= {"abandon"} if view.phase != "done" else set()
        if view.phase == "done":
            can |= {"again"}
            can |= {"restore"} if graph.base_of(view.policy.sealing) and not view.policy.tree else set()
        if view.status == "APPROVED":
            queued = next((each for each in project.queue() if each.run_id == run_id), None)
    except InterlockError as error:
        explained = {
            "why": f"Its state cannot be read: {error.message}",
            "next": [error.fix],
            "fail_reasons": [],
            "gates": [],
            "phase": "gone",
            "last_refusal": None,
            "driven": False,
        }
        if isinstance(error, graph.UnknownRunError):
            with suppress(InterlockError):
                explained = graph.explain_from_journal(project.root, run_id, project.feed)
    return {
        "project": project,
        "row": row,
        "why": explained,
        "failed": evidence.failed_tests(project.root, entries) if row.state != "APPROVED" else [],
        "files": changed_files(project, run_id),
        "answers": _answers(entries),
        "log": log_of(project.feed.read(logged[-LOG_LINES:])),
        "log_count": len(logged),
        "waiting_for": waiting,
        "question": question,
        "at_work": project.at_work(run_id) if explained["driven"] else "",
        "can": can,
        "queued": queued,
        "candidates": task_of(row.name),
    }


def run(request: Request) -> Response:
    """Show a run."""
    project = site_of(request).project(request.path_params["project"])
    run_id = request.path_params["run"]
    with reading(run_id):
        values = run_values(project, run_id)
        if "all" in request.query_params:
            values["log"] = log_of(project.feed.read(project.feed.log_lines(run_id)))
        return page(request, "run.html", values)


def log_of(entries: Sequence[Entry]) -> list[Said]:
    """Return lines in words."""
    return [said(entry) for entry in entries]


def _answers(entries: Sequence[Entry]) -> list[Answer]:
    """Return the answers, the newest first."""
    answers: list[Answer] = []
    for entry in reversed(entries):
        if entry.type != "answer":
            continue
        data = entry.data
        usage: Mapping[str, Any] = data.get("usage") or {}
        errors = [row["code"] for row in data.get("findings", ()) if row["level"] == "error"]
        answers.append(
            Answer(
                seq=entry.seq,
                role=str(data.get("role", "agent")),
                attempt=whole(data.get("attempt")),
                number=whole(data.get("reask")) + 1,
                outcome=str(data.get("outcome", "")),
                at=entry.at,
                codes=tuple(dict.fromkeys(errors)),
                seconds=usage.get("seconds") or 0.0,
                tokens=(usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0),
                usd=usage.get("usd"),
            )
        )
    return answers


def answer(request: Request) -> Response:
    """Show one answer: its text, as it came, with each finding at its line."""
    project = site_of(request).project(request.path_params["project"])
    row = project.row(request.path_params["run"])
    seq = request.path_params["seq"]
    lines = [line for line in project.feed.lines_of.get(row.run, ()) if line.type == "answer"]
    entry = next((each for each in project.feed.read(lines) if str(each.seq) == seq), None)
    if entry is None:
        raise PageError("WEB404", f"line {seq[:20]} of {row.run} is not an answer", "The run's page lists its answers.")
    data = entry.data
    with reading(row.run):
        findings: list[dict[str, Any]] = list(data.get("findings", ()))
        text = graph.RunStore(project.root, row.run).answer_of(data["role"], data.get("response_sha256", ""))
        shown = _numbered(text or "", findings)
        values: dict[str, Any] = {
            "project": project,
            "row": row,
            "entry": entry,
            "data": data,
            "lines": shown,
            "kept": text is not None,
            # Findings without a line, or of a text that is not kept, are listed above it.
            "rest": [item for item in findings if not 0 < (item.get("line") or 0) <= len(shown)],
        }
        return page(request, "answer.html", values)


def _numbered(text: str, findings: Sequence[dict[str, Any]]) -> list[TextLine]:
    at: dict[int, list[dict[str, Any]]] = {}
    for item in findings:
        at.setdefault(item.get("line") or 0, []).append(item)
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    return [
        TextLine(number, visible(line, keep="\t"), tuple(at.get(number, ()))) for number, line in enumerate(lines, 1)
    ]


ROUTES: Final = (
    Route("/{project}/runs/{run}", run),
    Route("/{project}/runs/{run}/answers/{seq}", answer),
)
