"""The evidence of a run: each gate in one attempt beside another, and every file by its digest."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.text import whole
from interlock.journal import Entry
from interlock.web import evidence
from interlock.web.evidence import Collected, Compared, File
from interlock.web.image_diff import Difference, around, difference, kind_of, strip
from interlock.web.pages import page, site_of
from interlock.web.projects import NotHereError, Project, reading

SHOWN_BYTES: Final = 256 * 1024
"""So much of a text is shown at once."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_SAFE: Final = {"content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'"}


@dataclass(frozen=True, slots=True)
class Shot:
    """A screenshot of one name, before and after; either may be missing."""

    name: str
    before: File | None
    after: File | None
    difference: Difference | None


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
    by_gate = {(one.attempt, one.gate): one for one in found}
    gates = [
        _gate(project, entries, by_gate.get((earlier, one.gate)), one, by_gate.values(), shown=only is None)
        for one in found
        if one is by_gate[one.attempt, one.gate] and one.attempt == later and (only is None or one.gate in only)
    ]  # fmt: skip
    return {"project": project, "row": row, "gates": gates, "attempts": attempts, "before": earlier, "after": later}


def _gate(
    project: Project, entries: Sequence[Entry], before: Collected | None, after: Collected, every: Iterable[Collected],
    *, shown: bool,
) -> Gate:  # fmt: skip
    files = evidence.cited(entries)
    was = {} if before is None else {file.name: file for file in before.files if file.key == "screenshots"}
    now = {file.name: file for file in after.files if file.key == "screenshots"}

    def read(sha256: str) -> bytes | None:
        return evidence.read(project.root, files[sha256])

    shots = [
        Shot(
            name, was.get(name), now.get(name),
            difference(was[name].sha256, now[name].sha256, read) if name in was and name in now else None,
        )
        for name in dict.fromkeys((*now, *was)) if shown
    ]  # fmt: skip
    return Gate(
        after, before, shots, evidence.compare(project.root, before, after, every),
        evidence.counts(project.root, after),
        {file.sha256: evidence.is_in_place(project.root, file) for file in after.files},
    )  # fmt: skip


def show(request: Request) -> Response:
    """Show the evidence of a run."""
    project = site_of(request).project(request.path_params["project"])
    asked = request.query_params
    run_id = request.path_params["run"]
    with reading(run_id):
        values = evidence_values(project, run_id, asked.get("before", ""), asked.get("after", ""))
        return page(request, "evidence.html", values)


def _file(request: Request) -> tuple[Project, File, bytes]:
    project = site_of(request).project(request.path_params["project"])
    row = project.row(request.path_params["run"])
    file = evidence.cited(project.feed.entries(row.run)).get(request.path_params["sha256"])
    data = None if file is None else evidence.read(project.root, file)
    if file is None or data is None:
        raise NotHereError("no evidence of this run has that digest here", "The evidence page lists its files.")
    return project, file, data


def _part(request: Request, data: bytes) -> bytes:
    """Return the part of a picture from the row `from` on; empty where the whole is asked for, or none can be made."""
    return strip(data, whole(request.query_params["from"])) if "from" in request.query_params else b""


def raw(request: Request) -> Response:
    """Answer with a file as a picture that nothing runs in, or as plain text; a piece of either, from `from` on."""
    _, file, data = _file(request)
    kind = kind_of(data)
    if kind is not None:
        part = _part(request, data)
        return Response(part or data, media_type="image/png" if part else kind, headers=_SAFE)
    start = whole(request.query_params.get("from"))
    part = data[start : start + SHOWN_BYTES]
    name = _NOT_IN_NAMES.sub("_", file.name)[:100]
    headers = {**_SAFE, "content-disposition": f'inline; filename="{name}.txt"'}
    return Response(part, media_type="text/plain; charset=utf-8", headers=headers)


def text(request: Request) -> Response:
    """Show a text file of the evidence, a piece at a time."""
    project, file, data = _file(request)
    start = min(whole(request.query_params.get("from")), max(0, len(data) - 1))
    part = data[start : start + SHOWN_BYTES]
    values = {
        "project": project, "row": project.row(request.path_params["run"]), "file": file, "size": len(data),
        "start": start, "end": start + len(part), "text": part.decode("utf-8", "replace"), "step": SHOWN_BYTES,
        "picture": kind_of(data),
    }  # fmt: skip
    return page(request, "file.html", values)


def element(request: Request) -> Response:
    """Answer with the part of a screenshot around an element, which is outlined."""
    _, file, data = _file(request)
    # One part of the path: a pattern with commas in it would be tried in every way that they can be placed.
    box = [whole(part) for part in request.path_params["box"].split(",", 4)]
    png = around(data, (box[0], box[1], box[2], box[3])) if len(box) == 4 and file.key == "screenshots" else b""
    if not png:
        raise NotHereError("the element is not in this picture", "Look at the whole picture.")
    return Response(png, media_type="image/png", headers=_SAFE)


def differing(request: Request) -> Response:
    """Answer with the picture of what differs between two screenshots."""
    project = site_of(request).project(request.path_params["project"])
    files = evidence.cited(project.feed.entries(project.row(request.path_params["run"]).run))
    before, after = request.path_params["before"], request.path_params["after"]
    if before not in files or after not in files:
        raise NotHereError("no evidence of this run has that digest here", "The evidence page lists its files.")
    found = difference(before, after, lambda sha256: evidence.read(project.root, files[sha256]))
    if found.unknown:
        raise NotHereError(found.unknown, "Look at both pictures.")
    return Response(_part(request, found.png) or found.png, media_type="image/png", headers=_SAFE)


ROUTES: Final = (
    Route("/{project}/runs/{run}/evidence", show),
    Route("/{project}/runs/{run}/files/{sha256}", raw),
    Route("/{project}/runs/{run}/files/{sha256}/text", text),
    Route("/{project}/runs/{run}/files/{sha256}/element/{box}", element),
    Route("/{project}/runs/{run}/differences/{before}/{after}", differing),
)
