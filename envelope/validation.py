"""Reading a response, and validation: the rules, and the report that an orchestrator acts on.

The grammar alone reads what it accepts. The scanner reads what the grammar refused, to explain it, and nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from interlock.envelope.case import GATE_IN_TEXT, Case, Inputs
from interlock.envelope.characters import MAX_BYTES, Line, Text, read_text, report_unseen
from interlock.envelope.draft import Draft
from interlock.envelope.edits import to_findings
from interlock.envelope.parser import Tree, read_tree, to_envelope, to_fields
from interlock.envelope.protocol import DEFAULT_PROTOCOL, ECHO, STATUSES, Protocol, Role, Status
from interlock.envelope.reask import reask
from interlock.envelope.repair import fill
from interlock.envelope.rules import RULES, RULES_BY_CODE
from interlock.envelope.scanner import scan

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope.blocks import Scan
    from interlock.envelope.extract import Extract
    from interlock.envelope.model import Envelope, FieldText

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
        return self.scan.fields if self.scan else {}

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
        from interlock.envelope.extract import extract as extract_lines  # noqa: PLC0415 - slow to compile

        cut = extract_lines(source.lines)
        if source.clean and cut.normalised:
            tree = read_tree("\n".join(line.text for line in cut.lines))
    envelope = None if tree is None else to_envelope(tree)
    return Reading(source.text, envelope, cut.normalised if cut else (), source, cut, tree)


Verdict: TypeAlias = Literal["PASS", "FAIL"]

MAX_PER_RULE: Final = 25
"""The most findings that one rule reports for one response; the last one says that there are more."""


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
            named = any(role.certifies in GATE_IN_TEXT.findall(reason) for reason in envelope.fail_reasons)
            return "FAIL" if named else None
        echoes = envelope.status == ECHO[role.kind] == self.current_status
        return "PASS" if echoes and role.certifies in envelope.gates_passed else None

    def as_reask(self) -> str:
        """Return the exact text that asks the agent again; empty when the response is valid."""
        return reask(self.findings)

    def with_findings(self, more: "Iterable[Finding]") -> "Report":
        """Return this report with the findings of other checks added, in the order of the text."""
        merged = sorted((*self.findings, *more), key=lambda finding: (finding.line, finding.column))
        return replace(self, findings=tuple(dict.fromkeys(merged)))


def validate(
    text: str | bytes,
    *,
    agent: str | None = None,
    task_id: str | None = None,
    gates: Iterable[str] | None = None,
    current_status: Status | None = None,
    protocol: Protocol = DEFAULT_PROTOCOL,
    certified: Iterable[str] = frozenset(),
    failed: Iterable[str] = frozenset(),
    excused: Iterable[str] = frozenset(),
    input_exists: Callable[[str], bool] | None = None,
    inputs: Inputs = "must-exist",
    extract: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Report:
    """Read a response and check it against every rule.

    Args:
        text: The response; bytes are decoded as UTF-8.
        agent: The agent that the task was assigned to.
        task_id: The task id of the assignment.
        gates: The gates that the assignment requires.
        current_status: The task's status before this response. Without it no status may be repeated, and transitions
            are not judged.
        protocol: The tables in force.
        certified: Gates that the journal holds as passed for the present tree; any agent may list these.
        failed: Gates that the journal shows failed; each needs its reason.
        excused: Gates of QA that may be missing at READY_FOR_REVIEW: a person accepted an objection to them.
        input_exists: Returns whether a path of INPUTS_USED exists; None leaves that unchecked.
        inputs: Whether a missing input is a warning or an error.
        extract: Find the one envelope inside a message that wraps it.
        max_bytes: The largest response that is read, in bytes.

    Returns:
        The report, with all findings at once. It never raises for what the text contains.
    """
    reading = parse(text, extract=extract, max_bytes=max_bytes)
    case = Case(
        fields=reading.fields,
        protocol=protocol,
        agent=agent,
        task_id=task_id,
        gates=None if gates is None else tuple(dict.fromkeys(gates)),
        current_status=current_status,
        certified=frozenset(certified),
        failed=frozenset(failed),
        excused=frozenset(excused),
        input_exists=input_exists,
        inputs=inputs,
    )
    drafts = [*reading.drafts(case), *report_unseen(reading.text), *(_judge(case) if reading.fields else ())]
    findings = to_findings(_bounded(drafts), reading.text, RULES_BY_CODE)
    return Report(reading, findings, case.role, current_status, case.failed)


def _judge(case: Case) -> Iterator[Draft]:
    for rule in RULES:
        if rule.check is not None:
            for count, draft in enumerate(rule.check(case)):
                yield draft
                if count > MAX_PER_RULE:
                    break


def _bounded(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """Yield at most so many drafts of each rule; the last one says that there are more."""
    counts: dict[str, int] = {}
    held: dict[str, Draft] = {}
    for draft in drafts:
        counts[draft.code] = count = counts.get(draft.code, 0) + 1
        if count < MAX_PER_RULE:
            yield draft
        elif count == MAX_PER_RULE:
            held[draft.code] = draft
    for code, draft in held.items():
        more = counts[code] > MAX_PER_RULE
        yield draft._replace(message=f"{draft.message} More of the same follow.") if more else draft
