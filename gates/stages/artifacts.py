"""What is handed over at the end: artifacts that name files exist, and a success without a change says so."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.errors import TreeError
from interlock.gates.shared import is_shared
from interlock.gates.stages.case import Case, fit_text, texts_at
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.stages.stage import Surroundings
from interlock.gates.tree import file_value

UNCHANGED: Final = "No file changed"
"""What the summary of a success says where acting changed nothing, in any case of its letters."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_LINES: Final = re.compile(r":[0-9]+(?:-[0-9]+)?$")
_EDGES: Final = "\"'`()[]{}<>,;.!?"
_ENDING: Final = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,9}$")
_CLOSED: Final = frozenset({".git", ".interlock"})


def artifacts_exist(case: Case) -> Iterator[Finding]:
    """Yield the artifacts that name no file or folder below the root."""
    for at, text in texts_at(case.payload, "artifacts"):
        for path, real in _files(case.surroundings, text):
            if real is None:
                expected = "a file or folder below the project's root, as a relative path"
                fix = f"Write the path of a file that exists, or take {copied(path)} out."
                message = f"The artifact {shown(path)} is no file or folder of the project."
                yield issue("STG702", f"artifacts[{at}]", message, shown(text), expected, fix)


def artifact_records(around: Surroundings, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what artifacts are, one record each that names a file, a folder or an address.

    Of a caller with a token, only shared files and folders are recorded.

    Shapes: `{"path", "sha256", "size_bytes"}` for a file, `{"path", "kind": "folder"}` for a folder, and
    `{"url", "verified": False}` for an address.
    """
    records: list[dict[str, Any]] = []
    for _, text in texts_at(payload, "artifacts"):
        records += [{"url": url[0], "verified": False} for url in [_URL.search(text)] if url]
        records += [_record(around.root, real) for _, real in _files(around, text) if real is not None]
    return records


def unchanged_said(case: Case) -> Iterator[Finding]:
    """Yield a success after acting that changed no file, where the summary does not say so."""
    summary = fit_text(case.payload.get("final_summary"))
    stated = UNCHANGED.casefold() in " ".join(summary.split()).casefold()
    if case.surroundings.unchanged and case.payload.get("outcome") == "success" and not stated:
        message = "The outcome says success, no file changed while acting, and the summary does not say so."
        expected = f"a summary with the words `{UNCHANGED}`, or another outcome"
        fix = f"Write `{UNCHANGED}` into `final_summary` and why that is a success; otherwise write `blocked`."
        yield issue("STG704", "final_summary", message, shown(summary), expected, fix)


def _files(around: Surroundings, text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the paths that an artifact names, each with where it lies below the root, or None.

    The whole text is one where it is there; else each word that has both a slash and a file's ending, or either if it
    stands alone.
    """
    rest = _URL.sub(" ", text).strip()
    if rest and (whole := _below(around, rest)) is not None:
        yield rest, whole
        return
    words = rest.split()
    for word in words:
        path = _LINES.sub("", word.strip(_EDGES) if len(words) > 1 else word.strip("`")).removeprefix("repo:")
        ends, steps = _ENDING.search(path) is not None, "/" in path
        if (ends and steps) or (len(words) == 1 and (ends or steps)):
            yield path, _below(around, path)


def _below(around: Surroundings, path: str) -> str | None:
    """Return where a path lies below the root; None for one that is nowhere, or that a link leads out of it.

    For a caller with a token only shared files are there.
    """
    # What is looked up is what was asked about: the system takes `link/..` for another folder than a text does.
    plain = normpath(path) if around.remote else path
    if around.remote and not is_shared(around.root, plain):
        return None
    top = os.path.realpath(around.root)
    try:
        real = os.path.realpath(f"{top}/{plain}" if not plain.startswith("/") else plain)
        mode = Path(real).stat().st_mode if os.path.commonpath([top, real]) == top else 0
    except (OSError, ValueError):
        return None
    below = os.path.relpath(real, top)
    fits = (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and below.split("/")[0] not in _CLOSED
    return below if fits else None


def _record(root: Path, path: str) -> dict[str, Any]:
    if (root / path).is_dir():
        return {"path": path, "kind": "folder"}
    try:
        digest = file_value(root, path).rpartition(" ")[2]
        return {"path": path, "sha256": digest, "size_bytes": (root / path).stat().st_size}
    except (TreeError, OSError) as error:
        return {"path": path, "unread": str(error)[:200]}
