"""Reading a response: characters, the one envelope in it, and the grammar.

The grammar alone reads what it accepts. The scanner reads what the grammar refused, to explain it, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from interlock.envelope.case import Case
from interlock.envelope.characters import MAX_BYTES, Line, Text, read_text
from interlock.envelope.draft import Draft
from interlock.envelope.edits import to_findings
from interlock.envelope.extract import extract as extract_lines
from interlock.envelope.parser import Tree, read_tree, to_envelope, to_fields
from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.envelope.repair import fill
from interlock.envelope.rules import RULES_BY_CODE
from interlock.envelope.scanner import scan

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope.blocks import Scan
    from interlock.envelope.extract import Extract
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
        tree: What the grammar read, for a well-formed text.
    """

    text: str
    envelope: "Envelope | None"
    normalised: tuple[str, ...] = ()
    source: Text = field(default=_NOTHING, repr=False)
    cut: "Extract | None" = field(default=None, repr=False)
    tree: Tree | None = field(default=None, repr=False)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines that were read; extraction keeps some of those given."""
        return self.source.lines if self.cut is None else self.cut.lines

    @cached_property
    def scan(self) -> "Scan | None":
        """The tolerant reading of a text that is not well-formed; None when there is nothing to read."""
        return scan(self.lines) if self.envelope is None and self.lines else None

    @cached_property
    def fields(self) -> "Mapping[str, FieldText]":
        """Every field that could be read and its place, by label and by `EVIDENCE.key`."""
        if self.tree is not None:
            return to_fields(self.tree, [line.number for line in self.cut.lines] if self.cut else None)
        return self.scan.fields if self.scan else _NO_FIELDS

    @cached_property
    def findings(self) -> "tuple[Finding, ...]":
        """What keeps the text from being an envelope; empty when it is well-formed."""
        drafts = self.drafts(Case(self.fields, DEFAULT_PROTOCOL))
        return to_findings(drafts, self.text, RULES_BY_CODE)

    def drafts(self, case: Case) -> tuple[Draft, ...]:
        """Return what is wrong with characters and layout, with the fixes that the case asks for."""
        if self.envelope is not None:
            return ()
        found = (*self.source.drafts, *(self.cut.drafts if self.cut else ()))
        if self.scan:
            found = (*found, *self.scan.drafts, *(fill(case, gap) for gap in self.scan.gaps))
        if not found:
            message = "The grammar refuses this text, and no rule says why."
            found = (Draft("ENV299", "", 1, 1, message, "a text that is refused", "an envelope"),)
        return found


def parse(text: str | bytes, *, extract: bool = False, max_bytes: int = MAX_BYTES) -> Reading:
    """Read a response without judging what it says. Arguments as for `validate`.

    Returns:
        The reading. It never raises for what the text contains.
    """
    source = read_text(text, max_bytes)
    tree = read_tree(source.text) if source.clean else None
    cut = None
    if tree is None and extract and source.lines:
        cut = extract_lines(source.lines)
        if source.clean and cut.normalised:
            tree = read_tree("\n".join(line.text for line in cut.lines))
    envelope = None if tree is None else to_envelope(tree)
    return Reading(source.text, envelope, cut.normalised if cut else (), source, cut, tree)
