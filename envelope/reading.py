"""Reading a response: characters, the one envelope in it, the grammar, and the tolerant scanner behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from interlock.envelope.case import Case
from interlock.envelope.characters import MAX_BYTES, Line, Text, read_text
from interlock.envelope.extract import extract as extract_lines
from interlock.envelope.mend import Draft, finish
from interlock.envelope.parser import read_envelope
from interlock.envelope.protocol import DEFAULT_PROTOCOL, EVIDENCE_KEYS
from interlock.envelope.repair import fill
from interlock.envelope.rules import RULES_BY_CODE
from interlock.envelope.scanner import scan

if TYPE_CHECKING:
    from interlock.envelope.blocks import Scan
    from interlock.envelope.extract import Extract
    from interlock.envelope.finding import Finding
    from interlock.envelope.model import Envelope, FieldText

_NO_FIELDS: Final[Mapping[str, "FieldText"]] = {}
_NOTHING: Final = Text("")


@dataclass(frozen=True, eq=False)
class Reading:
    """What a text says, before any rule judges it.

    Args:
        text: The text as given, decoded; empty when it could not be decoded.
        envelope: The envelope when the text is well-formed, else None.
        normalised: What extraction left out, one sentence each.
        source: The characters behind the text.
        cut: What extraction kept, where it was asked for and needed.
    """

    text: str
    envelope: "Envelope | None"
    normalised: tuple[str, ...] = ()
    source: Text = field(default=_NOTHING, repr=False)
    cut: "Extract | None" = field(default=None, repr=False)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines that were read; extraction keeps some of those given."""
        return self.source.lines if self.cut is None else self.cut.lines

    @cached_property
    def scan(self) -> "Scan | None":
        """The tolerant reading; None when there is nothing to read."""
        return scan(self.lines) if self.lines else None

    @cached_property
    def fields(self) -> "Mapping[str, FieldText]":
        """Every field that could be read and its place, by label and by `EVIDENCE.key`."""
        return self.scan.fields if self.scan else _NO_FIELDS

    @cached_property
    def findings(self) -> "tuple[Finding, ...]":
        """What keeps the text from being an envelope; empty when it is well-formed."""
        drafts = self.drafts(Case(self.fields, DEFAULT_PROTOCOL)) if self.envelope is None else ()
        return finish(drafts, self.source_lines(), RULES_BY_CODE)

    def drafts(self, case: Case) -> tuple[Draft, ...]:
        """Return what is wrong with characters and layout, mended as the case would have it.

        Args:
            case: The response before the rules; what is missing is filled in for its agent and its task.
        """
        found = (*self.source.drafts, *(self.cut.drafts if self.cut else ()))
        if self.scan:
            found = (*found, *self.scan.drafts, *(fill(case, gap) for gap in self.scan.gaps))
        agree = (self.envelope is None) == bool(found)
        if agree and self.envelope is not None:
            agree = _says_the_same(self.envelope, self.fields)
        if not agree:
            message = "The grammar and the tolerant reading do not agree on this text."
            found = (*found, Draft("ENV299", "", 1, 1, message, "two readings", "one reading"))
        return found

    def source_lines(self) -> list[str]:
        """Return the lines of the text as given, without their ends."""
        *ended, last = self.text.split("\n")
        return [*(line.removesuffix("\r") for line in ended), last]


def parse(text: str | bytes, *, extract: bool = False, max_bytes: int = MAX_BYTES) -> Reading:
    """Read a response without judging what it says.

    Args:
        text: The response; bytes are decoded as UTF-8.
        extract: Find the one envelope inside a message that wraps it.
        max_bytes: The largest response that is read, in bytes.

    Returns:
        The reading. It never raises for what the text contains.
    """
    source = read_text(text, max_bytes)
    envelope = read_envelope(source.text) if source.clean else None
    if envelope is not None or not extract or not source.lines:
        return Reading(source.text, envelope, (), source)
    cut = extract_lines(source.lines)
    if source.clean and cut.normalised:
        envelope = read_envelope("\n".join(line.text for line in cut.lines))
    return Reading(source.text, envelope, cut.normalised, source, cut)


def _says_the_same(envelope: "Envelope", fields: "Mapping[str, FieldText]") -> bool:
    """Say whether the two readings of one text hold the same values."""

    def texts(label: str) -> tuple[str, ...]:
        field = fields.get(label)
        return field.texts if field else ("",)

    def unless_none(label: str) -> tuple[str, ...]:
        found = fields[label].items if label in fields else ()
        return () if len(found) == 1 and found[0].text == "NONE" and found[0].marker in {"", "-"} else texts(label)

    single = (envelope.status, envelope.task_id, envelope.task, envelope.assigned_agent, envelope.reports_to)
    scanned = tuple(texts(label)[0] for label in ("STATUS", "TASK_ID", "TASK", "ASSIGNED_AGENT", "REPORTS_TO"))
    return (
        single == scanned
        and envelope.inputs_used == texts("INPUTS_USED")
        and envelope.gates_required == texts("GATES_REQUIRED")
        and envelope.gates_passed == texts("GATES_PASSED")
        and all(tuple(envelope.evidence[key]) == texts(f"EVIDENCE.{key}") for key in EVIDENCE_KEYS)
        and envelope.fail_reasons == unless_none("FAIL_REASONS")
        and envelope.output == "\n".join(texts("OUTPUT")).rstrip(" \t\n")
        and envelope.next_actions == unless_none("NEXT_ACTIONS")
    )
