"""The strict envelope: text in, findings out. No files, no clock, no framework."""

from typing import Final

from interlock.core.finding import Edit, Finding, Level
from interlock.core.rule import Rule
from interlock.envelope.characters import MAX_BYTES
from interlock.envelope.model import Envelope, FieldText, Item
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
from interlock.envelope.reading import Reading, parse
from interlock.envelope.render import render
from interlock.envelope.rules import RULES, RULES_BY_CODE
from interlock.envelope.validate import Report, Verdict, validate

__all__ = [
    "DEFAULT_PROTOCOL",
    "EVIDENCE_KEYS",
    "LABELS",
    "MAX_BYTES",
    "RULES",
    "RULES_BY_CODE",
    "STATUSES",
    "Edit",
    "Envelope",
    "FieldText",
    "Finding",
    "GateSpec",
    "Item",
    "Level",
    "Protocol",
    "Reading",
    "Report",
    "Role",
    "Rule",
    "Status",
    "Verdict",
    "parse",
    "render",
    "validate",
]

PUBLIC_MODULES: Final = ("explain", "finding", "protocol", "rule", "rules")
"""What others import besides the names above."""
