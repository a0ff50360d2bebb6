"""Accessibility reports: what both engines found, in every frame (format: docs/evidence.md).

Outside of a run a plain result of axe is read too.
"""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, Field, ValidationError

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.subject import Subject, Subjects, why

SCHEMA: Final = "interlock.a11y/2"
MILD_IMPACTS: Final = frozenset({"minor", "moderate"})
"""What does not fail a gate; an impact that is not known weighs like a serious one."""

WITHHELD: Final = 0.5
"""So much of what people see in a document may be `inert` or `aria-hidden`."""

SHOWN: Final = 5
"""So many violations are listed in full; the rest are counted."""

_Engine: TypeAlias = Literal["axe-core", "accesslint"]


class _Node(BaseModel):
    target: list[str | list[str]] = []
    impact: str | None = "minor"


class _Rule(BaseModel):
    id: str
    engine: _Engine = "axe-core"
    impact: str | None = None
    tags: list[str] = []
    help: str = ""
    frame: int = 0
    nodes: list[_Node] = []

    @property
    def is_practice(self) -> bool:
        """Whether the rule is about good practice alone, and no part of WCAG."""
        return "best-practice" in self.tags and not any(tag.startswith("wcag") for tag in self.tags)

    @property
    def is_serious(self) -> bool:
        """Whether it fails the gate; one rule can weigh differently by element."""
        return not {self.impact, *(node.impact for node in self.nodes)} <= MILD_IMPACTS

    def __str__(self) -> str:
        """Say engine, rule, impact, element, and what to do about it."""
        where = "an unnamed element"
        if self.nodes:
            steps = [step if isinstance(step, str) else " ".join(step) for step in self.nodes[0].target]
            where = rules.quote(f"frame {self.frame}: {' '.join(steps)}" if self.frame else " ".join(steps))
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        name, impact, about = (rules.quote(text).strip("`") for text in (self.id, str(self.impact), self.help))
        return f"{self.engine} {name} ({impact}) at {where}{more}{': ' if about else ''}{about}"


class _Frame(BaseModel):
    url: str
    withheld: Annotated[float, Field(ge=0, le=1)]


class _Tool(BaseModel):
    name: _Engine
    version: str


class _Lists(BaseModel):
    violations: list[_Rule]
    incomplete: list[_Rule]
    passes: list[_Rule]
    inapplicable: list[_Rule]


class _Plain(_Lists):
    """What axe returns."""

    frames: list[_Frame] = []


class _Made(_Lists):
    """What the collector writes."""

    format: Literal["interlock.a11y/2"] = Field(alias="schema")
    engines: tuple[_Tool, _Tool]
    frames: Annotated[list[_Frame], Field(min_length=1)]


def check_a11y(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge every accessibility report of a gate, each by itself."""
    findings: list[Finding] = []
    for subject in subjects:
        try:
            # A file that says the word anywhere is held to the strict form, so that no damaged report passes as one
            # of axe.
            is_made = in_run or SCHEMA.encode() in subject.file.data
            report = (_Made if is_made else _Plain).model_validate_json(subject.file.data)
        except ValidationError as error:
            findings.append(subject.unjudged(gate, why(error), in_run=in_run))
        else:
            findings += _judge(gate, subject, report)
    return findings


def _judge(gate: str, subject: Subject, report: _Plain | _Made) -> list[Finding]:
    findings: list[Finding] = []
    withheld = [frame for frame in report.frames if frame.withheld > WITHHELD]
    if withheld:
        message = "most of what people see is kept from assistive technology, and from the engines."
        found = "; ".join(f"{rules.quote(frame.url)}: {frame.withheld:.0%}" for frame in withheld[:SHOWN])
        expected = f"at most {WITHHELD:.0%} of a document, where no dialog is open"
        findings.append(subject.finding("EVD549", gate, message, found=found, expected=expected))
    practice = [rule for rule in report.violations if rule.is_practice]
    serious = [rule for rule in report.violations if rule.is_serious and not rule.is_practice]
    for code, found, what in (
        ("EVD543", serious, "serious or critical"),
        ("EVD548", practice, "of good practice alone"),
    ):
        if found:
            message = f"the engines found {len(found)} violation{'s'[: len(found) != 1]} {what}."
            listed = rules.listed(list(map(str, found)), SHOWN, "; ")
            findings.append(subject.finding(code, gate, message, found=listed, expected="no such violation"))
    undecided = sorted({f"{rule.engine} {rule.id}" for rule in report.incomplete})
    if undecided:
        message = f"the engines could not decide {len(undecided)} rule{'s'[: len(undecided) != 1]}."
        listed = ", ".join(rules.quote(rule, 60) for rule in undecided[:SHOWN])
        findings.append(subject.finding("EVD546", gate, message, found=listed))
    return findings
