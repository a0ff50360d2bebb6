"""Reading a response, and validation: the rules, and the report that an orchestrator acts on.

The grammar alone reads what it accepts. The scanner reads what the grammar refused, to explain it, and nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from interlock.envelope.case import GATE_IN_TEXT, Case
from interlock.envelope.characters import MAX_BYTES, Line, Text, read_text
from interlock.envelope.draft import Draft
from interlock.envelope.fixes import to_findings
from interlock.envelope.parser import Tree, read_tree, to_envelope, to_fields
from interlock.envelope.protocol import ECHO, STATUSES, Role, Status
from interlock.envelope.reask import reask
from interlock.envelope.rules import RULES, RULES_BY_CODE
from interlock.envelope.scanner import Layout, scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.core.finding import Finding
    from interlock.envelope.extract import Extract
    from interlock.envelope.model import Envelope, FieldText
    from interlock.envelope.scanner import Scan

_NOTHING: Final = Text("")
_NO_ASSIGNMENT: Final = Case()


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

    @cached_property
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
        return self.scan.fields if self.scan else {}

    @cached_property
    def findings(self) -> "tuple[Finding, ...]":
        """What keeps the text from being an envelope; empty when it is well-formed."""
        return _findings(self, self.drafts, replace(_NO_ASSIGNMENT, fields=self.fields))

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """What is wrong with characters and layout."""
        if self.envelope is not None:
            return ()
        drafts = [] if self.source.draft is None else [self.source.draft]
        drafts += self.cut.drafts if self.cut else ()
        drafts += self.scan.drafts if self.scan else ()
        if not drafts:
            message = "The grammar refuses this text, and no rule says why."
            drafts = [Draft("ENV299", "", 1, 1, message, "a text that is refused", "an envelope")]
        return tuple(drafts)


def parse(text: str | bytes, *, extract: bool = False, max_bytes: int = MAX_BYTES) -> Reading:
    """Read a response without judging what it says. Arguments as for `validate`.

    Returns:
        The reading. It never raises for what the text contains.
    """
    source = read_text(text, max_bytes)
    tree = read_tree(source.text) if source.draft is None else None
    cut = None
    if tree is None and extract and source.lines:
        from interlock.envelope.extract import extract as extract_lines  # noqa: PLC0415 - slow to compile

        # Only what the grammar refuses is cut: a well-formed answer is read as it is.
        cut = extract_lines(source.lines)
        # Where nothing was left out, the grammar would refuse the same text again.
        if source.draft is None and cut.normalised:
            tree = read_tree("\n".join(line.text for line in cut.lines))
    envelope = None if tree is None else to_envelope(tree)
    return Reading(source.text, envelope, cut.normalised if cut else (), source, cut, tree)


Verdict: TypeAlias = Literal["PASS", "FAIL"]

MAX_PER_RULE: Final = 25
"""The most findings that one rule reports for one response; others follow once these are fixed."""


@dataclass(frozen=True)
class Report:
    """What a response amounts to."""

    reading: Reading
    findings: "tuple[Finding, ...]"
    role: Role | None = None
    current_status: Status | None = None
    failed: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.level == "error" for finding in self.findings)

    @property
    def envelope(self) -> "Envelope | None":
        """The envelope when the text is well-formed; it may still break rules."""
        return self.reading.envelope

    @property
    def normalised(self) -> tuple[str, ...]:
        """What extraction left out."""
        return self.reading.normalised

    @property
    def status(self) -> str | None:
        """The status as written, or None when there is none."""
        if self.envelope is not None:
            return self.envelope.status
        field = self.reading.fields.get("STATUS")
        return field.items[0].text if field and field.items else None

    @property
    def effective_status(self) -> Status:
        """The status that counts: BLOCKED for every response with an error (Strict Envelope §4)."""
        # The loop, in place of `in`, tells the type checker that the text is one of the six.
        for status in STATUSES:
            if self.ok and status == self.status:
                return status
        return "BLOCKED"

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of a QA or review agent, derived; None for other roles and for a response with an error."""
        envelope, role = self.envelope, self.role
        if envelope is None or role is None or role.kind not in ECHO or role.certifies is None or not self.ok:
            return None
        if self.effective_status == "BLOCKED":
            # BLOCKED for another reason, such as a missing input, judges nothing.
            named = any(role.certifies in GATE_IN_TEXT.findall(reason) for reason in envelope.fail_reasons)
            return "FAIL" if named else None
        # An echo counts only against the status that the task really has.
        echoes = envelope.status == ECHO[role.kind] == self.current_status
        return "PASS" if echoes and role.certifies in envelope.gates_passed else None

    def as_reask(self) -> str:
        """Return the exact text that asks the agent again; empty when the response is valid."""
        return reask(self.findings)

    def with_findings(self, more: "Iterable[Finding]") -> "Report":
        """Return this report with the findings of other checks added, in the order of the text."""
        # The sort is stable: at one place, the envelope's own findings stay first.
        merged = sorted((*self.findings, *more), key=lambda finding: (finding.line, finding.column))
        return replace(self, findings=tuple(dict.fromkeys(merged)))


def validate(
    text: str | bytes, case: Case = _NO_ASSIGNMENT, *, extract: bool = False, max_bytes: int = MAX_BYTES
) -> Report:
    """Read a response and check it against every rule.

    Args:
        text: The response; bytes are decoded as UTF-8.
        case: What the response is held to; by default the shipped protocol and nothing of an assignment.
        extract: Find the one envelope inside a message that wraps it.
        max_bytes: The largest response that is read, in bytes.

    Returns:
        The report, with all findings at once. It never raises for what the text contains.
    """
    reading = parse(text, extract=extract, max_bytes=max_bytes)
    case = replace(case, fields=reading.fields)
    drafts = [*reading.drafts, *(_judge(case) if reading.fields else ())]
    findings = _findings(reading, drafts, case)
    return Report(reading, findings, case.role, case.current_status, frozenset(case.failed))


def _findings(reading: Reading, drafts: Iterable[Draft], case: Case) -> "tuple[Finding, ...]":
    drafts = list(_bounded(drafts))
    if not drafts:
        return ()
    # Whoever sends a plain report is shown a whole envelope, in which a judge may have to state BLOCKED.
    drafts = [draft._replace(advice=case.way_to_pass) if draft.code == "ENV223" else draft for draft in drafts]
    layout = reading.scan.layout if reading.scan else Layout()
    return to_findings(drafts, reading.text, case, _judge, RULES_BY_CODE, layout)


def _judge(case: Case) -> Iterator[Draft]:
    for rule in RULES:
        # Rows without a check are what reading finds; they were reported before.
        if rule.check is not None:
            yield from islice(rule.check(case), MAX_PER_RULE)


def _bounded(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """Yield at most so many drafts of each rule."""
    counts: Counter[str] = Counter()
    for draft in drafts:
        counts[draft.code] += 1
        if counts[draft.code] <= MAX_PER_RULE:
            yield draft
