"""The strict envelope: text in, findings out. No files, no clock, no framework."""

from typing import Final

from interlock.envelope.case import GATE, GATE_IN_TEXT, Case, Inputs
from interlock.envelope.characters import MAX_BYTES
from interlock.envelope.model import Envelope, FieldText, Item, render
from interlock.envelope.reask import skeleton
from interlock.envelope.rules import RULES, RULES_BY_CODE
from interlock.envelope.rules.values import input_path
from interlock.envelope.validation import Reading, Report, Verdict, parse, validate

__all__ = [
    "GATE",
    "GATE_IN_TEXT",
    "MAX_BYTES",
    "RULES",
    "RULES_BY_CODE",
    "Case",
    "Envelope",
    "FieldText",
    "Inputs",
    "Item",
    "Reading",
    "Report",
    "Verdict",
    "input_path",
    "parse",
    "render",
    "skeleton",
    "validate",
]

PUBLIC_MODULES: Final = ("export", "outcomes", "protocol", "renderers", "rules", "template")
"""What others import besides the names above."""
