"""The JSON form, `interlock.findings/1`: what other programs rely on."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from interlock.envelope.protocol import LABELS

if TYPE_CHECKING:
    from interlock.envelope.model import Envelope
    from interlock.envelope.renderers.result import FileResult

SCHEMA: Final = "interlock.findings/1"


def render_json(results: "Sequence[FileResult]") -> str:
    """Return one JSON object, pure ASCII, with one row for each file (`files[0]` is the first of the call)."""
    return json.dumps({"schema": SCHEMA, "files": [_file(result) for result in results]}, indent=2) + "\n"


def envelope_object(envelope: "Envelope") -> dict[str, Any]:
    """Return an envelope as an object: the twelve labels in snake case, lists as arrays."""
    return {label.lower(): _plain(getattr(envelope, label.lower())) for label in LABELS}


def _file(result: "FileResult") -> dict[str, Any]:
    return {
        "path": result.path,
        "ok": result.ok,
        "status": result.status,
        "effective_status": result.effective_status,
        "envelope": None if result.envelope is None else envelope_object(result.envelope),
        "normalised": list(result.normalised),
        "findings": [finding.to_json() for finding in result.findings],
    }


def _plain(value: str | tuple[str, ...] | Mapping[str, tuple[str, ...]]) -> str | list[str] | dict[str, list[str]]:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: list(entries) for key, entries in value.items()}
    return list(value)
