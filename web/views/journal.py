"""The journal: its lines."""

import json
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.graph.feed import Line
from interlock.web.pages import page, page_number, site_of

PAGE_LINES: Final = 100


def journal(request: Request) -> Response:
    """Show the lines of a project's journal, the newest first."""
    project = site_of(request).project(request.path_params["project"])
    run, kind = (request.query_params.get(name, "").strip() for name in ("run", "type"))
    lines: Sequence[Line] = project.feed.lines_of.get(run, []) if run else project.feed.lines
    lines = [line for line in lines if line.type == kind] if kind else lines
    at = page_number(request)
    # Pages count from the end, and only the lines of one are read from the disk.
    last = len(lines) - (at - 1) * PAGE_LINES
    shown = project.feed.read(lines[max(0, last - PAGE_LINES) : max(0, last)])
    rows = [(line, json.dumps(line.data, indent=2, ensure_ascii=False)) for line in reversed(shown)]
    values = {
        "project": project,
        "lines": rows,
        "count": len(lines),
        "at": at,
        "pages": max(1, -(-len(lines) // PAGE_LINES)),
        "types": sorted({line.type for line in project.feed.lines}),
        "wanted": dict(request.query_params),
    }
    return page(request, "journal.html", values)


ROUTES: Final = (Route("/{project}/journal", journal),)
