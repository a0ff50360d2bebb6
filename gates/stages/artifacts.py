"""What is handed over at the end: artifacts that name files exist, and a success without a change says so."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
_NAMED: Final = re.compile(r"`([^`\n]+)`|(\S+)")
_EDGES: Final = "\"'()[]{}<>,;.!?"
_ENDING: Final = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,9}$")
_GONE: Final = "does not exist"
_CLOSED: Final = frozenset({".git", ".interlock"})


@dataclass(frozen=True, slots=True)
class _File:
    """A file or folder that an artifact names, without quotes and line numbers; `real`: where, `why` if nowhere."""

    path: str
    real: str | None
    why: str = ""


def artifacts_exist(case: Case) -> Iterator[Finding]:
    """Yield the artifacts that name no file below the root, and the addresses that nobody looked at."""
    for at, text in texts_at(case.payload, "artifacts"):
        place = f"artifacts[{at}]"
        if url := _URL.search(text):
            yield issue("STG703", place, f"The address {shown(url[0])} was not looked at.", shown(text))
        for file in _files(case.surroundings, text):
            if file.real is None:
                expected = "a file or folder below the project's root, as a relative path"
                fix = f"Write the path of a file that exists, or take {copied(file.path)} out."
                message = f"The artifact {shown(file.path)} {file.why}."
                yield issue("STG702", place, message, shown(text), expected, fix)


def artifact_records(around: Surroundings, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what artifacts are, one record each that names a file, a folder or an address.

    Of a caller with a token, only shared files and folders are recorded.

    Shapes: `{"path", "sha256", "size_bytes"}` for a file, `{"path", "kind": "folder"}` for a folder, and
    `{"url", "verified": False}` for an address.
    """
    records: list[dict[str, Any]] = []
    for _, text in texts_at(payload, "artifacts"):
        records += [{"url": url[0], "verified": False} for url in [_URL.search(text)] if url]
        records += [_record(around.root, file.real) for file in _files(around, text) if file.real is not None]
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


def _files(around: Surroundings, text: str) -> Iterator[_File]:
    """Yield the files that an artifact names: the whole text where it is one word, else the paths in it."""
    rest = _URL.sub(" ", text).strip()
    alone = len(rest.split()) == 1
    if rest and "\n" not in rest and (whole := _below(around, rest)).real is not None:
        yield whole
        return
    for found in _NAMED.finditer(rest):
        name = (found[1] or found[2].strip(_EDGES)).removeprefix("repo:")
        path = _LINES.sub("", name)
        ends, steps = _ENDING.search(path) is not None, "/" in path
        if path and (ends or steps if alone or found[1] else ends and steps):
            yield _below(around, path)


def _below(around: Surroundings, path: str) -> _File:
    """Find a path below the root; one that a link leads out of it is outside.

    For a caller with a token only shared files are there.
    """
    # What is looked up is what was asked about: the system takes `link/..` for another folder than a text does.
    plain = normpath(path) if around.remote else path
    if around.remote and not is_shared(around.root, plain):
        return _File(path, None, _GONE)
    top = os.path.realpath(around.root)
    try:
        real = os.path.realpath(f"{top}/{plain}" if not plain.startswith("/") else plain)
        inside = os.path.commonpath([top, real]) == top
        mode = Path(real).stat().st_mode if inside else 0
    except (OSError, ValueError):
        return _File(path, None, _GONE)
    below = os.path.relpath(real, top)
    if not inside:
        return _File(path, None, "is outside the project")
    if below.split("/")[0] in _CLOSED:
        return _File(path, None, "is a record of Interlock or git, and no work")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return _File(path, None, "is no regular file")
    return _File(path, below)


def _record(root: Path, path: str) -> dict[str, Any]:
    if (root / path).is_dir():
        return {"path": path, "kind": "folder"}
    try:
        return {
            "path": path,
            "sha256": file_value(root, path).rpartition(" ")[2],
            "size_bytes": (root / path).stat().st_size,
        }
    except (TreeError, OSError) as error:
        return {"path": path, "unread": str(error)[:200]}
