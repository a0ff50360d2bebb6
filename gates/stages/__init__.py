"""The stages of a ticket: what each asks for, and when its payload holds.

The names below are imported on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.gates.stages.acting import Allowed
    from interlock.gates.stages.artifacts import artifact_records
    from interlock.gates.stages.case import MAX_TEXT_CHARS
    from interlock.gates.stages.judge import MAX_PAYLOAD_BYTES, judge_stage
    from interlock.gates.stages.references import requirement_ids
    from interlock.gates.stages.shape import payload_schema
    from interlock.gates.stages.sources import Source, Sources, parse_locator
    from interlock.gates.stages.stage import Field, Issue, Observed, Stage, Surroundings, issue_record

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "MAX_TEXT_CHARS",
    "Allowed",
    "Field",
    "Issue",
    "Observed",
    "Source",
    "Sources",
    "Stage",
    "Surroundings",
    "artifact_records",
    "issue_record",
    "judge_stage",
    "parse_locator",
    "payload_schema",
    "requirement_ids",
]

__getattr__ = lazy_exports(__name__, __file__)
