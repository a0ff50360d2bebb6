"""The evidence manifest: which files one collector made, for which run, task, attempt and tree, and what it found.

The formats that collectors write are described in docs/evidence.md, and each content check has its shape.

The manifest is written last, in one rename, into the folder of the first file: `<folder>/<GATE>.manifest.json`. So a
collection without one was never finished. It holds no clock and nothing of the host: the same files give the same
bytes. Files of one collection lie in `artifacts/<key>/<TASK_ID>/<attempt>/`.

What is no manifest raises `GateError`.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.envelope.protocol import EvidenceKey
from interlock.gates.errors import GateError
from interlock.gates.evidence import EvidenceFile, read_evidence, write_evidence

SCHEMA: Final = "interlock.evidence/1"
SUFFIX: Final = ".manifest.json"

_FINDING_KEYS: Final = ("code", "level", "field", "message", "found", "expected", "fix", "source")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a piece of evidence is evidence of: a rework round from 1 of a task in a run, and the digest of its tree."""

    run_id: str
    task_id: str
    attempt: int
    tree: str

    def folder(self, key: EvidenceKey) -> str:
        """Return the folder of this attempt's evidence under one key, relative to the root."""
        return f"artifacts/{key}/{self.task_id}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Collector:
    """Which program made the evidence: a name and a version."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """One file of a collection: path from the root, EVIDENCE key, hex digest and size."""

    path: str
    key: EvidenceKey
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Collection:
    """What one collector made for one gate.

    Args:
        target: The page or command under test, as the task names it.
        files: At least one file, in the order of the manifest.
        ok: Whether the collector's own content check passed; derived from `findings`, never looser.
        findings: What that check found.
        manifest: Path of the manifest; empty until it is written.
    """

    gate: str
    collector: Collector
    binding: Binding
    target: str
    files: tuple[CollectedFile, ...]
    ok: bool
    findings: tuple[Finding, ...] = ()
    manifest: str = ""


def collected_file(file: EvidenceFile, key: EvidenceKey) -> CollectedFile:
    """Return the manifest's row of a file that was read or written."""
    return CollectedFile(file.path, key, file.sha256, file.size_bytes)


def to_json(collection: Collection) -> dict[str, Any]:
    """Return the manifest as JSON values, keys in their fixed order; the inverse of `from_json`."""
    binding = collection.binding
    return {
        "schema": SCHEMA,
        "collector": asdict(collection.collector),
        "gate": collection.gate,
        "run_id": binding.run_id,
        "task_id": binding.task_id,
        "attempt": binding.attempt,
        "tree": binding.tree,
        "target": collection.target,
        "subject": [asdict(file) for file in collection.files],
        "ok": collection.ok,
        "findings": [{key: getattr(f, key) for key in _FINDING_KEYS} for f in collection.findings],
    }


def from_json(value: Any, *, path: str = "") -> Collection:
    """Return the collection that `to_json` wrote; `path` is where it came from.

    Raises:
        GateError: `MAN102` the value is no manifest.
    """
    try:
        known = value["schema"] == SCHEMA
        binding = Binding(value["run_id"], value["task_id"], value["attempt"], value["tree"])
        files = tuple(CollectedFile(**row) for row in value["subject"])
        findings = tuple(Finding(**row) for row in value["findings"])
        maker = Collector(**value["collector"])
        made = Collection(value["gate"], maker, binding, value["target"], files, value["ok"], findings, path)
    except (KeyError, TypeError) as error:
        raise _unreadable(path, f"no manifest: {error}") from error
    if not known:
        raise _unreadable(path, f"no manifest of schema {SCHEMA}")
    return made


def _unreadable(path: str, what: str) -> GateError:
    return GateError("MAN102", f"{path or 'The value'} is {what}.", "Collect the evidence again.")


def write_manifest(root: str | Path, collection: Collection) -> Collection:
    """Write a collection's manifest beside its files, last and in one rename; return the collection with its path."""
    if not collection.files:
        raise ValueError("a collection without files has no manifest")
    path = f"{collection.files[0].path.rpartition('/')[0]}/{collection.gate}{SUFFIX}"
    # ASCII alone: names of tests and pages may hold characters that turn the direction of a text.
    data = json.dumps(to_json(collection), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    write_evidence(root, path, data.encode("ascii"))
    return replace(collection, manifest=path)


def read_manifest(root: str | Path, path: str) -> Collection:
    """Read a manifest as evidence is read.

    What it says is a claim: whoever can write the folder can write a manifest. Only a run's journal proves it.
    """
    file = read_evidence(root, path)
    if isinstance(file, Finding):
        raise GateError("MAN101", f"{path}: {file.message}", file.fix)
    try:
        value = json.loads(file.data)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"no JSON: {error}") from error
    return from_json(value, path=path)
