"""Console logs: JSON lines with a header, and no error among them (format: docs/evidence.md)."""

from typing import Final, Literal

from pydantic import BaseModel, Field, ValidationError

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.subject import Subject, Subjects, why

SCHEMA: Final = "interlock.console/1"
ERROR_LEVELS: Final = frozenset({"error", "assert"})
SHOWN: Final = 5
"""So many errors are listed in full; the rest are counted."""


class _Header(BaseModel, strict=True):
    format: Literal["interlock.console/1"] = Field(alias="schema")
    records: int


class _Record(BaseModel, strict=True):
    kind: Literal["console", "pageerror", "requestfailed", "response", "blocked"]
    level: str
    text: str
    url: str = ""
    status: int | None = None

    @property
    def is_error(self) -> bool:
        """Whether the record fails the gate."""
        match self.kind:
            case "pageerror" | "requestfailed":
                return True
            case "response":
                return self.status is None or self.status >= 400
            case "console":
                return self.level in ERROR_LEVELS
            case "blocked":
                return False

    def __str__(self) -> str:
        status = f" {self.status}" if self.kind == "response" else ""
        where = f" at {rules.quote(self.url)}" if self.url else ""
        return f"{self.kind}{status} {rules.quote(self.text)}{where}"


def check_console(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge every console log of a gate."""
    return [finding for subject in subjects for finding in _check(gate, subject, in_run=in_run)]


def _check(gate: str, subject: Subject, *, in_run: bool) -> list[Finding]:
    first, *lines = subject.file.data.removesuffix(b"\n").split(b"\n")
    try:
        header = _Header.model_validate_json(first)
    except ValidationError as error:
        return [subject.unjudged(gate, f"line 1: {why(error)}", in_run=in_run)]
    records: list[_Record] = []
    for number, line in enumerate(lines, 2):
        try:
            records.append(_Record.model_validate_json(line))
        except ValidationError as error:
            return [subject.unjudged(gate, f"line {number}: {why(error)}", in_run=in_run)]
    if header.records != len(records):
        reason = f"it announces {header.records} records, and {len(records)} follow"
        return [subject.unjudged(gate, reason, in_run=in_run)]
    return _errors(gate, subject, records)


def _errors(gate: str, subject: Subject, records: list[_Record]) -> list[Finding]:
    """Report the errors of a log together, and what the closed network kept away."""
    findings: list[Finding] = []
    errors = [record for record in records if record.is_error]
    if errors:
        message = f"the console log {subject.shown} has {len(errors)} error{'s'[: len(errors) != 1]}."
        expected = "no console error, page error, failed request or HTTP status from 400 up"
        findings.append(subject.finding("EVD533", gate, message, found=_listing(errors), expected=expected))
    blocked = [record for record in records if record.kind == "blocked"]
    if blocked:
        message = f"the page asked other origins for {len(blocked)} resource{'s'[: len(blocked) != 1]}."
        findings.append(subject.finding("EVD535", gate, message, found=_listing(blocked)))
    return findings


def _listing(records: list[_Record]) -> str:
    """List the first records that differ in full and count the rest."""
    return rules.listed(list(dict.fromkeys(map(str, records))), SHOWN, "; ")
