"""A ticket: its stages with what was submitted, what was found, and each quotation beside the file that it is from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock import graph
from interlock.core.text import visible
from interlock.gates.shared import shared
from interlock.gates.stages import Source, Sources, parse_locator
from interlock.journal import Entry
from interlock.web.pages import page, site_of
from interlock.web.projects import NotHereError, Project, reading

_MAX_LINES: Final = 60


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation of an evidence item: where it says it is from, its text, and what the file has there now."""

    source: str
    locator: str
    snippet: str
    now: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Submission:
    """One attempt at a stage: the payload, what came of it, and the findings."""

    revision: int
    state: str
    status: str
    at: str
    payload: str
    issues: tuple[Mapping[str, Any], ...]
    quotations: tuple[Quotation, ...]


def show(request: Request) -> Response:
    """Show a ticket run."""
    project = site_of(request).project(request.path_params["project"])
    run_id = request.path_params["run"]
    name = graph.journal_run(run_id)
    row = project.feed.rows.get(name)
    if row is None:
        raise NotHereError(f"there is no ticket run {run_id} in {project.title}", "The board lists them.")
    explained = graph.explain_ticket(graph.Tickets(project.root), run_id)
    with reading(run_id):
        submissions = _submissions(project, project.feed.entries(name))[::-1]
        values = {"project": project, "row": row, "why": explained, "submissions": submissions}
        return page(request, "ticket.html", values)


def _submissions(project: Project, entries: list[Entry]) -> list[Submission]:
    payloads: dict[int, Mapping[str, Any]] = {}
    found: list[Submission] = []
    for entry in entries:
        data = entry.data
        if entry.type == "tool_call":
            payloads[data["revision"]] = data.get("payload") or {}
        elif entry.type.startswith("gate_"):
            payload = payloads.get(data["revision"], {})
            found.append(
                Submission(
                    data["revision"], data["state"], data["status"], entry.at,
                    json.dumps(payload, indent=2, ensure_ascii=False), tuple(data.get("issues", ())),
                    tuple(_quotation(project, item) for item in _items(payload)),
                )
            )  # fmt: skip
    return found


def _items(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items: object = payload.get("evidence_items")
    rows = cast("list[object]", items) if isinstance(items, list) else []
    return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, dict)]


def _quotation(project: Project, item: Mapping[str, Any]) -> Quotation:
    locator, snippet = str(item.get("locator", "")), str(item.get("snippet", ""))
    now = cited_lines(project.root, locator) if item.get("source_type") == "repo" else None
    cited = "\n".join(line.rstrip() for line in snippet.strip("\n").splitlines())
    holds = None if now is None else cited in now
    source = str(item.get("source_id", ""))
    return Quotation(source, locator, visible(snippet, keep="\n\t"), visible(now or "", keep="\n\t"), holds)


def cited_lines(root: Path, locator: str) -> str | None:
    """Return the lines that a locator names as they are now; None where the file is not shared."""
    place = parse_locator(locator)
    if place is None or place.path not in shared(root, [place.path]):
        return None
    source = Sources(root).read(place.path, "locator")
    if not isinstance(source, Source):
        return None
    end = min(place.end or place.start, place.start + _MAX_LINES - 1)
    return "\n".join(source.lines[place.start - 1 : end])


ROUTES: Final = (Route("/{project}/tickets/{run}", show),)
