"""The journal: its lines, whether it is whole, and its lines to take away."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.core.text import shown
from interlock.graph.feed import Line
from interlock.journal import canonical
from interlock.web.pages import page, page_number, site_of
from interlock.web.projects import Project

PAGE_LINES: Final = 100
_BLOCK: Final = 200
_MOMENT: Final = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?)?)?)?", re.ASCII)
"""The beginning of a time, as the journal writes it, up to any of its parts."""


class MomentError(InterlockError):
    """A filter names no time."""

    code = "WEB400"


def _wanted(request: Request, project: Project) -> Sequence[Line]:
    """Return the lines that the address asks for, in the order of the file.

    Raises:
        MomentError: `since` is not a time, nor the beginning of one.
    """
    run, kind, since = (request.query_params.get(name, "").strip() for name in ("run", "type", "since"))
    since = _beginning(since) if since else ""
    lines: Sequence[Line] = project.feed.lines_of.get(run, []) if run else project.feed.lines
    if kind or since:
        lines = [line for line in lines if kind in ("", line.type) and line.at >= since]
    return lines


def _beginning(text: str) -> str:
    """Return how the times begin from which on lines are wanted."""
    since = text.removesuffix("Z").replace(" ", "T")
    try:
        datetime.fromisoformat(since + "2000-01-01T00:00:00"[len(since) :] if _MOMENT.fullmatch(since) else "")
    except ValueError as error:
        raise MomentError(
            f"`{shown(text)}` is not a time", "Write it in UTC, as `2026-01-31` or `2026-01-31T12:00`."
        ) from error
    return since


def journal(request: Request) -> Response:
    """Show the lines of a project's journal, the newest first."""
    project = site_of(request).project(request.path_params["project"])
    lines = _wanted(request, project)
    at = page_number(request)
    last = len(lines) - (at - 1) * PAGE_LINES
    shown = project.feed.read(lines[max(0, last - PAGE_LINES) : max(0, last)])
    found = graph.verify_journal(project.root) if "verify" in request.query_params else None
    rows = [(line, json.dumps(line.data, indent=2, ensure_ascii=False)) for line in reversed(shown)]
    values = {
        "project": project, "lines": rows, "count": len(lines),
        "at": at, "pages": max(1, -(-len(lines) // PAGE_LINES)), "verified": found,
        "types": sorted({line.type for line in project.feed.lines}), "wanted": dict(request.query_params),
    }  # fmt: skip
    return page(request, "journal.html", values)


def export(request: Request) -> Response:
    """Answer with the lines that the address asks for, as they are in the file: JSON, one a line."""
    project = site_of(request).project(request.path_params["project"])
    lines = list(_wanted(request, project))

    def body() -> Iterator[bytes]:
        for start in range(0, len(lines), _BLOCK):
            for entry in project.feed.read(lines[start : start + _BLOCK]):
                yield canonical(asdict(entry)) + b"\n"

    name = f"{project.key}-journal.jsonl"
    return StreamingResponse(
        body(), media_type="application/x-ndjson", headers={"content-disposition": f'attachment; filename="{name}"'}
    )


ROUTES: Final = (Route("/{project}/journal", journal), Route("/{project}/journal/export", export))
