"""A run as one file: everything that its pages show, pictures inside, readable from the disk and without a script."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from interlock import graph
from interlock.journal import Entry
from interlock.web import evidence
from interlock.web.image_diff import around, difference, kind_of
from interlock.web.pages import STATIC, render
from interlock.web.projects import Project, Site, reading
from interlock.web.views.changes import changes_values
from interlock.web.views.evidence import evidence_values
from interlock.web.views.run import log_of, run_values

MAX_PICTURE_BYTES: Final = 24 * 1024 * 1024
"""So much of pictures is put into one report; those that come after are named."""


MAX_ELEMENTS: Final = 20
"""So many findings show their element in one report; each is cut from a whole screenshot."""


def report(root: Path, run_id: str) -> str:
    """Return the report of a task run as HTML.

    Raises:
        NotHereError: The journal has no such run.
        UnreadableLinesError: See `reading`.
    """
    site = Site([root])
    project = next(iter(site.projects.values()))
    project.refresh()
    with reading(run_id):
        return _report(root, project, run_id)


def _report(root: Path, project: Project, run_id: str) -> str:
    entries = project.feed.entries(project.row(run_id).run)
    files = evidence.cited(entries)
    left, elements = MAX_PICTURE_BYTES, MAX_ELEMENTS

    def embedded(data: bytes | None) -> str:
        """Return a picture as an address that holds it; empty for what is none, is gone, or is too much."""
        nonlocal left
        kind = kind_of(data or b"")
        if data is None or kind is None or len(data) > left:
            return ""
        left -= len(data)
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    def picture(sha256: str) -> str:
        return embedded(evidence.read(root, files[sha256]))

    def element(one: evidence.Element) -> str:
        nonlocal elements
        elements -= 1
        return embedded(around(evidence.read(root, files[one.sha256]) or b"", one.box)) if elements >= 0 else ""

    def changed(before: str, after: str) -> str:
        return embedded(difference(before, after, lambda sha256: evidence.read(root, files[sha256])).png)

    values = {
        **run_values(project, run_id), **changes_values(project, run_id), "evidence": evidence_values(project, run_id),
        "log": log_of(entries), "picture": picture, "changed": changed,
        "element": element,
        "style": Markup((STATIC / "interlock.css").read_text("utf-8")),  # noqa: S704 - no text of a run
        "archive": True, "texts": _texts(root, entries), "remarks": graph.comments(root, run_id),
    }  # fmt: skip
    return render("report.html", values)


def _texts(root: Path, entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return what each answer says, in its order: its envelope's, or the text that is kept where there is none."""
    rows: list[dict[str, Any]] = []
    for entry in entries:
        if entry.type == "answer":
            data = entry.data
            envelope: dict[str, Any] = data.get("envelope") or {}
            text = envelope.get("output")
            if text is None:
                text = graph.RunStore(root, entry.run).answer_of(data["role"], data.get("response_sha256", ""))
            rows.append({**data, "at": entry.at, "text": text or "", "reasons": envelope.get("fail_reasons", ())})
    return rows
