"""The stages of a ticket: what each asks for, and when its payload holds.

The names below are imported on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.gates.stages.acting import Allowed
    from interlock.gates.stages.artifacts import artifact_records
    from interlock.gates.stages.case import MAX_TEXT_CHARS
    from interlock.gates.stages.judge import MAX_PAYLOAD_BYTES, judge_stage
    from interlock.gates.stages.references import requirement_ids
    from interlock.gates.stages.schema import payload_schema
    from interlock.gates.stages.stage import Field, Issue, Observed, Stage, Surroundings, issue_record
    from interlock.gates.stages.tree import ignored_in, ignored_paths, is_tracked, list_tree, revealed

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "MAX_TEXT_CHARS",
    "Allowed",
    "Field",
    "Issue",
    "Observed",
    "Stage",
    "Surroundings",
    "artifact_records",
    "ignored_in",
    "ignored_paths",
    "is_tracked",
    "issue_record",
    "judge_stage",
    "list_tree",
    "payload_schema",
    "requirement_ids",
    "revealed",
]

_HOME: Final = {
    "MAX_PAYLOAD_BYTES": "judge",
    "MAX_TEXT_CHARS": "case",
    "Allowed": "acting",
    "ignored_in": "tree",
    "ignored_paths": "tree",
    "is_tracked": "tree",
    "Field": "stage",
    "Issue": "stage",
    "Observed": "stage",
    "Stage": "stage",
    "Surroundings": "stage",
    "artifact_records": "artifacts",
    "issue_record": "stage",
    "judge_stage": "judge",
    "list_tree": "tree",
    "payload_schema": "schema",
    "requirement_ids": "references",
    "revealed": "tree",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
