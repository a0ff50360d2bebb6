"""Grades: who made an evidence file, and for which work.

In a run the journal's collections prove it. Outside a run a manifest beside the file is a claim, no more.
"""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding
from interlock.envelope.protocol import EVIDENCE_KEYS, Grade
from interlock.gates.checks.subject import Subject
from interlock.gates.errors import ManifestError
from interlock.gates.evidence import EvidenceFile
from interlock.gates.manifest import SUFFIX, Binding, Collection, read_manifest

_MAX_MANIFESTS: Final = 32


def run_grade(subject: Subject, history: Sequence[Collection], binding: Binding) -> tuple[Grade, Finding | None]:
    """Return the grade of one file in a run, and a finding (`EVD561` to `EVD564`) where it is not this work's evidence.

    The digest decides: a file with the bytes of a row collected for this binding is the runner's, wherever it lies.
    A path of this binding with other bytes was swapped; bytes or a path of another binding are stale; anything else
    was written by an agent and must lie in the folder of this task and attempt.
    """
    file = subject.file
    current = [row for c in history if c.binding == binding for row in c.files]
    if any(row.sha256 == file.sha256 for row in current):
        return "runner", None
    for row in current:
        if row.path == file.path:
            message, found = f"{subject.shown} is not the file that was collected.", f"sha256 {file.sha256}"
            expected = f"sha256 {row.sha256}, as the collector recorded it"
            return "written", subject.finding("EVD561", "", message, found=found, expected=expected)
    for collection in reversed(history):
        if collection.binding != binding and any(
            row.sha256 == file.sha256 or row.path == file.path for row in collection.files
        ):
            return "written", _stale(subject, collection.binding, binding)
    parts = file.path.split("/")
    if len(parts) < 5 or parts[2] != binding.task_id:
        return "written", _misplaced(subject, "EVD563", f"the folder of task {binding.task_id}", binding)
    if parts[3] != str(binding.attempt):
        return "written", _misplaced(subject, "EVD562", f"the folder of attempt {binding.attempt}", binding)
    return "written", None


def claimed_grades(root: Path, files: Iterable[EvidenceFile]) -> dict[str, Grade]:
    """Return the grade that manifests on disk claim for each file; `written` where none vouches for it.

    A manifest may lie in the folder of the file or in the same folder under another key.
    """
    listed = cache(partial(_subjects, root))
    grades: dict[str, Grade] = {}
    for file in files:
        vouched = any((file.path, file.sha256) in listed(folder) for folder in _sibling_folders(file.path))
        grades[file.path] = "runner" if vouched else "written"
    return grades


def _sibling_folders(path: str) -> list[str]:
    """Return the folders in which a manifest of this file could lie."""
    folder = path.rpartition("/")[0]
    parts = folder.split("/")
    if len(parts) < 2 or parts[1] not in EVIDENCE_KEYS:
        return [folder]
    return ["/".join([parts[0], key, *parts[2:]]) for key in EVIDENCE_KEYS]


def _subjects(root: Path, folder: str) -> set[tuple[str, str]]:
    """Return path and digest of every file that a readable manifest in one folder names."""
    try:
        names = sorted(entry.name for entry in (root / folder).iterdir() if entry.name.endswith(SUFFIX))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return set()
    rows: set[tuple[str, str]] = set()
    for name in names[:_MAX_MANIFESTS]:
        try:
            manifest = read_manifest(root, f"{folder}/{name}")
        except ManifestError:
            continue
        rows.update((row.path, row.sha256) for row in manifest.files)
    return rows


def _stale(subject: Subject, made_for: Binding, now: Binding) -> Finding:
    """Name the other work of which a file is the evidence."""
    rows = (
        ("EVD563", *(f"task {each.task_id} of run {each.run_id}" for each in (made_for, now))),
        ("EVD562", *(f"attempt {each.attempt}" for each in (made_for, now))),
        ("EVD564", *(f"tree {each.tree}" for each in (made_for, now))),
    )
    code, found, expected = next(row for row in rows if row[1] != row[2])
    message = f"{subject.shown} is stale: it was collected from {found}."
    fix = "Cite what was collected for the present attempt and files; have it collected if it was not."
    return subject.finding(code, "", message, found=found, expected=expected, fix=fix)


def _misplaced(subject: Subject, code: str, wanted: str, binding: Binding) -> Finding:
    folder = binding.folder(subject.key)
    message, expected = f"{subject.shown} does not lie in {wanted}.", f"a file below `{folder}/`"
    fix = f"Write the file to `{folder}/` in this attempt and cite it there."
    return subject.finding(code, "", message, found=subject.shown, expected=expected, fix=fix)
