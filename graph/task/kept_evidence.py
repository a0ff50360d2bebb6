"""Evidence files against the journal: whether each file that a verdict went by is still the one that was judged.

For each evidence file the journal holds a path and a digest. The newest line about a path says what must lie there; the
copy below `artifacts/interlock/objects` of what a collector made has to be there for every line. A folder that a later
run put aside is looked at under its new name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.rules import ALTERED
from interlock.journal import Entry, Journal, JournalDamaged

_KEYS: Final = ("path", "line", "message", "found", "expected", "fix", "code")
_FOLDER: Final = re.compile(r"(artifacts/[a-z0-9]+/[^/]+)/(\d+)/(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """What a look at all evidence found. Each problem has the run, and the line within it, that name the file."""

    problems: tuple[Finding, ...]
    files: int
    objects: int

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "problems": [{"run": row.field, **{key: getattr(row, key) for key in _KEYS}} for row in self.problems],
            "files": self.files,
            "objects": self.objects,
        }


def check_evidence(root: Path) -> EvidenceCheck:
    """Compare every evidence file and every kept copy with the journal."""
    newest: dict[str, tuple[Entry, str, int]] = {}
    copies: dict[str, tuple[Entry, str]] = {}
    number = 0
    try:
        for entry in Journal(journal_path(root)).entries():
            for path, digest in _files(entry):
                number += 1
                newest[path] = (entry, digest, number)
                if entry.type == "evidence":
                    copies.setdefault(digest, (entry, path))
    except JournalDamaged:
        return EvidenceCheck((), 0, 0)  # what the journal says is not known; `verify` reports the journal itself
    problems = [
        *(item for path, (entry, digest, _) in newest.items() for item in _file(root, path, entry, digest)),
        *(item for digest, (entry, _) in copies.items() for item in _copy(root, entry, digest)),
    ]
    return EvidenceCheck(tuple(problems), len(newest), len(copies))


def present_path(root: Path, path: str, digest: str) -> str:
    """Return where an evidence file lies now: a later run may have renamed the folder of its attempt."""
    if _digest(root, path) != digest:
        return next((aside for aside in _put_aside(root, path) if _digest(root, aside) == digest), path)
    return path


def _files(entry: Entry) -> Iterator[tuple[str, str]]:
    rows: Any = entry.data.get("files") if entry.type == "evidence" else entry.data.get("evidence")
    if entry.type not in ("evidence", "answer") or not isinstance(rows, list):
        return
    for row in rows:  # pyright: ignore[reportUnknownVariableType]
        if isinstance(row, dict) and isinstance(row.get("path"), str) and isinstance(row.get("sha256"), str):  # pyright: ignore[reportUnknownMemberType]
            yield str(row["path"]), str(row["sha256"])  # pyright: ignore[reportUnknownArgumentType]


def _file(root: Path, path: str, entry: Entry, digest: str) -> Iterator[Finding]:
    read = read_evidence(root, present_path(root, path, digest))
    if isinstance(read, EvidenceFile) and read.sha256 == digest:
        return
    found = f"sha256 {read.sha256}" if isinstance(read, EvidenceFile) else read.message
    yield _altered(entry, path, "an evidence file is not the one that was judged", found, digest)


def _copy(root: Path, entry: Entry, digest: str) -> Iterator[Finding]:
    path = f"artifacts/interlock/objects/{digest[:2]}/{digest}"
    found = _digest(root, path)
    if found != digest:
        what = "the copy of an evidence file is not what was collected"
        yield _altered(entry, path, what, f"sha256 {found}" if found else "no such file", digest)


def _altered(entry: Entry, path: str, message: str, found: str, digest: str) -> Finding:
    return Finding(
        ALTERED.code, "error", entry.run, message, found, f"sha256 {digest}", ALTERED.remedy, entry.seq, path=path
    )


def _put_aside(root: Path, path: str) -> Iterator[str]:
    """Yield where a file lies when a later run put the folder of its attempt aside."""
    parts = _FOLDER.fullmatch(path)
    if parts is None:
        return
    for folder in sorted(root.glob(f"{parts[1]}/{parts[2]}.before-*")):
        yield f"{folder.relative_to(root).as_posix()}/{parts[3]}"


def _digest(root: Path, path: str) -> str:
    read = read_evidence(root, path)
    return read.sha256 if isinstance(read, EvidenceFile) else ""
