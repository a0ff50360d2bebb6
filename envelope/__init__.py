"""The strict envelope: text in, findings out. No files, no clock, no framework."""

from typing import Final

from interlock.core.finding import Edit, Finding, Level
from interlock.core.rule import Rule
from interlock.envelope.case import GATE, GATE_IN_TEXT, Inputs
from interlock.envelope.characters import MAX_BYTES
from interlock.envelope.edits import apply_edits
from interlock.envelope.model import Envelope, FieldText, Item, render
from interlock.envelope.protocol import (
    DEFAULT_PROTOCOL,
    EVIDENCE_KEYS,
    LABELS,
    STATUSES,
    GateSpec,
    Protocol,
    Role,
    Status,
)
from interlock.envelope.reask import skeleton
from interlock.envelope.rules import RULES, RULES_BY_CODE
from interlock.envelope.rules.items import input_path
from interlock.envelope.validation import Reading, Report, Verdict, parse, validate

__all__ = [
    "DEFAULT_PROTOCOL", "EVIDENCE_KEYS", "GATE", "GATE_IN_TEXT", "LABELS", "MAX_BYTES", "RULES", "RULES_BY_CODE",
    "STATUSES", "Edit", "Envelope", "FieldText", "Finding", "GateSpec", "Inputs", "Item", "Level", "Protocol",
    "Reading", "Report", "Role", "Rule", "Status", "Verdict", "apply_edits", "input_path", "parse", "render",
    "skeleton", "validate",
]  # fmt: skip

PUBLIC_MODULES: Final = (
    "export", "export.language", "export.notation", "outcomes", "protocol", "renderers",
    "rules", "template",
)  # fmt: skip
"""What others import besides the names above."""
