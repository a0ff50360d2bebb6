"""The evidence of a run: two attempts beside one another, and its files as they were judged."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.text import whole
from interlock.gates import image_type
from interlock.web import evidence
from interlock.web.errors import PageError
from interlock.web.evidence import Collected, Compared, File
from interlock.web.pages import page, site_of
from interlock.web.projects import Project, reading

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_SAFE: Final = {"content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'"}


@dataclass(frozen=True, slots=True)
class Shot:
    """A screenshot of one name, before and after; either may be missing."""

    name: str
    before: File | None
    after: File | None


@dataclass(frozen=True, slots=True)
class Gate:
    """What is shown of one gate: the later collection, the earlier one, and what they say beside one another."""

    after: Collected
    before: Collected | None
    shots: Sequence[Shot]
    rows: Sequence[Compared]
    tests: Mapping[str, int]
    in_place: Mapping[str, bool]


def _attempt(text: str, known: Sequence[int], otherwise: int) -> int:
    return number if (number := whole(text, -1)) in known else otherwise


def evidence_values(
    project: Project, run_id: str, before: str = "", after: str = "", only: Collection[str] | None = None
) -> dict[str, Any]:
    """Return what is shown of a run's evidence: of the last two attempts that have any, or of those that are named.

    Where gates are named in `only`, it is theirs alone, without screenshots.
    """
    row = project.row(run_id)
    entries = project.feed.entries(run_id)
    found = evidence.collected(project.root, entries)
    attempts = sorted({one.attempt for one in found})
    later = _attempt(after, attempts, attempts[-1] if attempts else 0)
    earlier = _attempt(before, [0, *attempts], max((each for each in attempts if each < later), default=0))
    # Within an attempt evidence may be made again: the last one counts.
    last = {one.gate: one for one in found if one.attempt == later and (only is None or one.gate in only)}
    before_it = {one.gate: one for one in found if one.attempt == earlier}
    gates = [_gate(project, before_it.get(name), one, found, shown=only is None) for name, one in last.items()]
    return {"project": project, "row": row, "gates": gates, "attempts": attempts, "before": earlier, "after": later}


def _gate(
    project: Project, before: Collected | None, after: Collected, every: Iterable[Collected], *, shown: bool
) -> Gate:
    was = {} if before is None else {file.name: file for file in before.files if file.key == "screenshots"}
    now = {file.name: file for file in after.files if file.key == "screenshots"}
    names = dict.fromkeys((*now, *was)) if shown else {}
    return Gate(
        after=after,
        before=before,
        shots=[Shot(name, was.get(name), now.get(name)) for name in names],
        rows=evidence.compare(project.root, before, after, every),
        tests=evidence.counts(project.root, after),
        in_place={file.sha256: evidence.is_in_place(project.root, file) for file in after.files},
    )


def show(request: Request) -> Response:
    """Show the evidence of a run."""
    project = site_of(request).project(request.path_params["project"])
    asked = request.query_params
    run_id = request.path_params["run"]
    with reading(run_id):
        values = evidence_values(project, run_id, asked.get("before", ""), asked.get("after", ""))
        return page(request, "evidence.html", values)


def raw(request: Request) -> Response:
    """Answer with a file as a picture that nothing runs in, or as plain text."""
    project = site_of(request).project(request.path_params["project"])
    row = project.row(request.path_params["run"])
    file = evidence.cited(project.feed.entries(row.run)).get(request.path_params["sha256"])
    data = None if file is None else evidence.read(project.root, file)
    if file is None or data is None:
        raise PageError("WEB404", "no evidence of this run has that digest here", "The evidence page lists its files.")
    kind = image_type(data)
    if kind is not None:
        return Response(data, media_type=kind, headers=_SAFE)
    # A name with quotes or line ends would break out of the header.
    name = _NOT_IN_NAMES.sub("_", file.name)[:100]
    headers = {**_SAFE, "content-disposition": f'inline; filename="{name}.txt"'}
    return Response(data, media_type="text/plain; charset=utf-8", headers=headers)


ROUTES: Final = (
    Route("/{project}/runs/{run}/evidence", show),
    Route("/{project}/runs/{run}/files/{sha256}", raw),
)
