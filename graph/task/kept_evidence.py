"""Evidence files against the journal: whether each file that a verdict went by is still the one that was judged.

For each evidence file the journal holds a path and a digest. The newest line about a path says what must lie there. A
folder that a later run put aside is looked at under its new name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.core.database import database_of
from interlock.core.finding import Finding
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.graph.engine.folder import journal_of
from interlock.graph.errors import ALTERED
from interlock.journal import Entry, JournalError

OBJECTS: Final = "artifacts/interlock/objects"
"""Where a copy of each evidence file is kept, by its digest."""
_KEYS: Final = ("path", "line", "message", "found", "expected", "fix", "code")
_FOLDER: Final = re.compile(r"(artifacts/[a-z0-9]+/[^/]+)/(\d+)/(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """What a look at all evidence found. Each problem has the run, and the line within it, that name the file."""

    problems: tuple[Finding, ...]
    files: int

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "problems": [{"run": row.field, **{key: getattr(row, key) for key in _KEYS}} for row in self.problems],
            "files": self.files,
        }


def check_evidence(root: Path) -> EvidenceCheck:
    """Compare every evidence file with the journal."""
    newest: dict[str, tuple[Entry, str]] = {}
    try:
        for entry in journal_of(root).entries():
            for path, digest in _files(entry):
                # A later attempt writes the same names again, and only what it left can still lie there.
                newest[path] = (entry, digest)
    except JournalError:
        return EvidenceCheck((), 0)  # what the journal says is not known; `verify` reports the journal itself
    problems = [item for path, (entry, digest) in newest.items() for item in _file(root, path, entry, digest)]
    if database_of(root) is not None:
        # Runs of one task write to the same places, and here lies what was brought last: the copy of each counts.
        problems = [item for item in problems if kept_bytes(root, item.path, newest[item.path][1]) is None]
    return EvidenceCheck(tuple(problems), len(newest))


def present_path(root: Path, path: str, digest: str) -> str:
    """Return where an evidence file lies now: a later run may have renamed the folder of its attempt."""
    if _digest(root, path) != digest:
        return next((aside for aside in _put_aside(root, path) if _digest(root, aside) == digest), path)
    return path


def kept_bytes(root: Path, path: str, digest: str) -> bytes | None:
    """Return the bytes of an evidence file as they were judged; None when nothing has that digest any more."""
    # The kept copy first: the file itself may have been written again since.
    for place in (lambda: f"{OBJECTS}/{digest[:2]}/{digest}", lambda: present_path(root, path, digest)):
        found = read_evidence(root, place())
        if isinstance(found, EvidenceFile) and found.sha256 == digest:
            return found.data
    return None


def _files(entry: Entry) -> Iterator[tuple[str, str]]:
    names = {"evidence": "files", "answer": "evidence"}
    rows: list[Any] = entry.data.get(names.get(entry.type, ""), [])
    for row in rows:
        if not isinstance(row, str):  # a list that was too long ends with a text that says how many are left out
            yield row["path"], row["sha256"]


def _file(root: Path, path: str, entry: Entry, digest: str) -> Iterator[Finding]:
    read = read_evidence(root, present_path(root, path, digest))
    if isinstance(read, EvidenceFile) and read.sha256 == digest:
        return
    found = f"sha256 {read.sha256}" if isinstance(read, EvidenceFile) else read.message
    message, expected = "an evidence file is not the one that was judged", f"sha256 {digest}"
    yield Finding(ALTERED.code, "error", entry.run, message, found, expected, ALTERED.remedy, entry.seq, path=path)


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
