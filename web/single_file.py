"""A run as one file: everything that its pages show, pictures inside, readable from the disk and without a script."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from interlock import graph
from interlock.gates import image_type
from interlock.journal import Entry
from interlock.web import evidence
from interlock.web.pages import STATIC, render
from interlock.web.projects import Project, Site, reading
from interlock.web.views.changes import changes_values
from interlock.web.views.evidence import evidence_values
from interlock.web.views.run import log_of, run_values

MAX_PICTURE_BYTES: Final = 24 * 1024 * 1024
"""So much of pictures is put into one report; those that come after are named."""


def report(root: Path, run_id: str) -> str:
    """Return the report of a task run as HTML.

    Raises:
        PageError: WEB404, the journal has no such run; WEB409, see `reading`.
        UnknownRunError, RunDamagedError: Neither has the checkout; or it has, and its lines are not in the journal.
    """
    site = Site([root])
    project = next(iter(site.projects.values()))
    project.refresh()
    if run_id not in project.feed.rows:
        graph.RunStore(root, run_id).lines(graph.view_run(run_id, root=root).head)
    with reading(run_id):
        return _report(root, project, run_id)


def _report(root: Path, project: Project, run_id: str) -> str:
    entries = project.feed.entries(project.row(run_id).run)
    files = evidence.cited(entries)
    left = MAX_PICTURE_BYTES

    def picture(sha256: str) -> str:
        """Return a picture as an address that holds it; empty for what is none, is gone, or is too much."""
        # Counted in the order of the page, so that those at its head are shown.
        nonlocal left
        data = evidence.read(root, files[sha256]) or b""
        kind = image_type(data)
        if kind is None or len(data) > left:
            return ""
        left -= len(data)
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    values = {
        **run_values(project, run_id),
        **changes_values(project, run_id),
        "evidence": evidence_values(project, run_id),
        "log": log_of(entries),
        "picture": picture,
        # Inline, as a single file has nothing beside it; the report's own policy allows styles and no scripts.
        "style": Markup((STATIC / "interlock.css").read_text("utf-8")),  # noqa: S704 - no text of a run
        "archive": True,
        "texts": _texts(root, entries),
        "remarks": graph.comments(root, run_id),
    }
    return render("report.html", values)


def _texts(root: Path, entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return what each answer says, in its order: its envelope's, or the text that is kept where there is none."""
    rows: list[dict[str, Any]] = []
    for entry in entries:
        if entry.type == "answer":
            data = entry.data
            envelope: dict[str, Any] = data.get("envelope") or {}
            text = envelope.get("output")
            # An answer that was no envelope is kept as it came, for as long as the run's folder is there.
            if text is None:
                text = graph.RunStore(root, entry.run).answer_of(data["role"], data.get("response_sha256", ""))
            rows.append({**data, "at": entry.at, "text": text or "", "reasons": envelope.get("fail_reasons", ())})
    return rows
