"""The evidence manifest: which files one collector made, for which run, task, attempt and tree, and what it found.

Formats that collectors write and content checks read:

* console log, `*.jsonl`, UTF-8 JSON lines. First a header record
  `{"schema": "interlock.console/1", "target": str, "widths": [int, …], "records": N}`, then exactly N records
  `{"kind": "console"|"pageerror"|"requestfailed"|"response"|"blocked", "level": str, "text": str, "url": str,
  "status": int|null, "width": int, "motion": str}`. An error is: kind `console` with level `error` or `assert`, any
  `pageerror`, any `requestfailed`, a `response` with status 400 or more. `blocked` (another origin was asked for) is a
  warning.
* accessibility, `*.json`: `{"schema": "interlock.a11y/2", "target": str, "engines": [{"name": "axe-core",
  "version": str}, {"name": "accesslint", "version": str}], "frames": [{"url": str, …}], "violations": […],
  "passes": […], "incomplete": […], "inapplicable": […]}`. The four lists hold rule results (`id`, `engine`, `impact`,
  `help`, `nodes: [{"target": […]}]`), merged over all frames; a frame may repeat its own lists. A frame with a non-null
  `error` was not analysed and fails the gate.
* command log, `*.log`: a header line `{"schema": "interlock.command/1", "gate": str, "argv": [str, …],
  "exit_status": int|null, "timed_out": bool, "output_bytes": int, "left_out_bytes": int}`, then the output.

The manifest is written last, in one rename, into the folder of the first file: `<folder>/<GATE>.manifest.json`. So a
collection without one was never finished. It holds no clock and nothing of the host: the same files give the same
bytes. Files of one collection lie in `artifacts/<key>/<TASK_ID>/<attempt>/`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey
from interlock.gates.checks.subject import MalformedError, decode, loads
from interlock.gates.errors import ManifestError
from interlock.gates.evidence import EvidenceFile, path_finding, read_evidence, write_evidence

SCHEMA: Final = "interlock.evidence/1"
SUFFIX: Final = ".manifest.json"
MAX_MANIFEST_BYTES: Final = 4 * 1024 * 1024

_HEX: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEYS: Final = (
    "schema", "collector", "gate", "run_id", "task_id", "attempt", "tree", "target", "subject", "ok", "findings",
)  # fmt: skip
_FINDING_KEYS: Final = ("code", "level", "field", "message", "found", "expected", "fix", "source")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a piece of evidence is evidence of.

    Args:
        run_id: The run that collected it.
        task_id: The task under work.
        attempt: 1-based rework round.
        tree: Digest of the files in the task's scope, `sha256:…`.
    """

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
        gate: The gate that the evidence is for.
        collector: The program that made it.
        binding: Run, task, attempt and tree.
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


def manifest_path(files: tuple[CollectedFile, ...], gate: str) -> str:
    """Return where the manifest of a collection lies: in the folder of its first file."""
    folder = files[0].path.rpartition("/")[0]
    return f"{folder}/{gate}{SUFFIX}"


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


def from_json(value: object, *, path: str = "") -> Collection:
    """Read a manifest's JSON value strictly.

    Args:
        value: What `to_json` returns: these keys, these types, nothing else.
        path: Where it came from; becomes `manifest`.

    Raises:
        ManifestError: A key is missing, unknown or of the wrong type, or the parts contradict each other.
    """
    where = path or "manifest"
    top = _table(value, _KEYS, where, "")
    if top["schema"] != SCHEMA:
        raise _bad(where, "schema", f"the value is not {SCHEMA!r}")
    maker = _table(top["collector"], ("name", "version"), where, "collector")
    subjects = _list(top["subject"], where, "subject")
    if not subjects:
        raise _bad(where, "subject", "there is no file")
    files = tuple(_subject(item, where, f"subject[{i}]") for i, item in enumerate(subjects))
    findings = tuple(
        _finding(item, where, f"findings[{i}]") for i, item in enumerate(_list(top["findings"], where, "findings"))
    )
    ok = top["ok"]
    if not isinstance(ok, bool):
        raise _bad(where, "ok", "the value is neither true nor false")
    if ok and any(finding.level == "error" for finding in findings):
        raise _bad(where, "ok", "the value is true beside findings that are errors")
    attempt = _count(top["attempt"], where, "attempt", least=1)
    return Collection(
        gate=_text(top["gate"], where, "gate"),
        collector=Collector(
            _text(maker["name"], where, "collector.name"), _text(maker["version"], where, "collector.version")
        ),
        binding=Binding(
            _text(top["run_id"], where, "run_id"),
            _text(top["task_id"], where, "task_id"),
            attempt,
            _text(top["tree"], where, "tree"),
        ),
        target=_text(top["target"], where, "target"),
        files=files,
        ok=ok,
        findings=findings,
        manifest=path,
    )


def write_manifest(root: str | Path, collection: Collection) -> Collection:
    """Write a collection's manifest beside its files, last and in one rename.

    Returns:
        The collection with `manifest` set.

    Raises:
        ValueError: The collection has no file.
        OSError: The file system refuses.
    """
    if not collection.files:
        raise ValueError("a collection without files has no manifest")
    path = manifest_path(collection.files, collection.gate)
    data = json.dumps(to_json(collection), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    write_evidence(root, path, data.encode("ascii"))
    return replace(collection, manifest=path)


def read_manifest(root: str | Path, path: str) -> Collection:
    """Read a manifest through the same door as evidence.

    What it says is a claim: whoever can write the folder can write a manifest. Only a run's journal proves it.

    Raises:
        ManifestError: The file is refused, or is no manifest.
    """
    file = read_evidence(root, path, max_bytes=MAX_MANIFEST_BYTES)
    if isinstance(file, Finding):
        raise ManifestError("MAN101", f"{path}: {file.message}", file.fix)
    try:
        value = loads(decode(file.data))
    except MalformedError as error:
        raise ManifestError("MAN102", f"{path}: {error}.", "Collect the evidence again.") from error
    return from_json(value, path=path)


def _subject(value: object, where: str, key: str) -> CollectedFile:
    """Read one row of `subject`."""
    row = _table(value, ("path", "key", "sha256", "size_bytes"), where, key)
    path = _text(row["path"], where, f"{key}.path")
    refused = path_finding(path)
    if refused is not None:
        raise _bad(where, f"{key}.path", refused.message)
    if row["key"] not in EVIDENCE_KEYS:
        raise _bad(where, f"{key}.key", "the value is no EVIDENCE key")
    digest = row["sha256"]
    if not isinstance(digest, str) or _HEX.fullmatch(digest) is None:
        raise _bad(where, f"{key}.sha256", "the value is no SHA-256 in lower-case hex")
    size = _count(row["size_bytes"], where, f"{key}.size_bytes", least=1)
    return CollectedFile(path, row["key"], digest, size)


def _finding(value: object, where: str, key: str) -> Finding:
    """Read one row of `findings`."""
    row = _table(value, _FINDING_KEYS, where, key)
    texts = {name: row[name] for name in _FINDING_KEYS}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise _bad(where, f"{key}.{name}", "the value is no text")
    if texts["level"] not in ("error", "warning", "note"):
        raise _bad(where, f"{key}.level", "the value is no level")
    return Finding(**cast("dict[str, Any]", texts))


def _table(value: object, keys: tuple[str, ...], where: str, key: str) -> Mapping[str, object]:
    """Return an object that has exactly these keys."""
    if not isinstance(value, dict):
        raise _bad(where, key or "file", "the value is no object")
    table = cast("dict[str, object]", value)
    for name in keys:
        if name not in table:
            raise _bad(where, f"{key}.{name}".lstrip("."), "the key is missing")
    for name in table:
        if name not in keys:
            raise _bad(where, f"{key}.{name}".lstrip("."), "the key is unknown")
    return table


def _list(value: object, where: str, key: str) -> list[object]:
    """Return a list."""
    if not isinstance(value, list):
        raise _bad(where, key, "the value is no list")
    return cast("list[object]", value)


def _text(value: object, where: str, key: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise _bad(where, key, "the value is no text, or is empty")
    return value


def _count(value: object, where: str, key: str, *, least: int) -> int:
    """Return a whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _bad(where, key, f"the value is no whole number from {least} up")
    return value


def _bad(where: str, key: str, message: str) -> ManifestError:
    """Make the error of one key."""
    return ManifestError("MAN103", f"{where}: {key}: {message}.", "Collect the evidence again.")
