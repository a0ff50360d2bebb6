"""Console logs: JSON lines with a header, and no error among them (format: docs/evidence.md)."""

from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.shapes import TEXT, MalformedError, Shape, conform, decode, loads, one_of, whole
from interlock.gates.checks.subject import Subject, Subjects

SCHEMA: Final = "interlock.console/1"
KINDS: Final = ("console", "pageerror", "requestfailed", "response", "blocked")
_HEADER: Final[Shape] = {"schema": one_of(SCHEMA), "records": whole()}
_RECORD: Final[Shape] = {"kind": one_of(*KINDS), "level": TEXT, "text": TEXT, "status": whole(optional=True)}
ERROR_LEVELS: Final = frozenset({"error", "assert"})
SHOWN: Final = 5
"""So many errors are listed in full; the rest are counted."""


def check_console(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge every console log of a gate."""
    return [finding for subject in subjects for finding in _check(gate, subject, in_run=in_run)]


def _check(gate: str, subject: Subject, *, in_run: bool) -> list[Finding]:
    try:
        text = decode(subject.file.data)
    except MalformedError as error:
        return [_malformed(gate, subject, 0, str(error))]
    if not in_run and not text.lstrip().startswith("{"):
        return [
            subject.finding("EVD534", gate, f"{subject.shown} is plain text; no machine judged it.", found="plain text")
        ]
    lines = text.removesuffix("\n").split("\n") if text else []
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(_record(line, header=number == 1))
        except MalformedError as error:
            return [_malformed(gate, subject, number, str(error))]
    if not records:
        return [_malformed(gate, subject, 1, "there is no header record")]
    header, rest = records[0], records[1:]
    if header["records"] != len(rest):
        message = f"{subject.shown} announces {header['records']} records and holds {len(rest)}."
        return [subject.finding("EVD532", gate, message, found=f"{len(rest)} records")]
    return _errors(gate, subject, rest)


def _record(line: str, *, header: bool) -> dict[str, Any]:
    """Read one line."""
    record = loads(line)
    conform(record, _HEADER if header else _RECORD, "the line", more=True)
    if not header and record["kind"] == "response" and record.get("status") is None:
        raise MalformedError("a `response` has no `status`")
    return record


def _is_error(record: dict[str, Any]) -> bool:
    """Return whether a record fails the gate."""
    match record["kind"]:
        case "pageerror" | "requestfailed":
            return True
        case "response":
            return record["status"] >= 400
        case "console":
            return record["level"] in ERROR_LEVELS
        case _:
            return False


def _errors(gate: str, subject: Subject, records: list[dict[str, Any]]) -> list[Finding]:
    """Report the errors of a log together, and what the closed network kept away."""
    findings: list[Finding] = []
    errors = [record for record in records if _is_error(record)]
    if errors:
        message = f"the console log {subject.shown} has {len(errors)} error{'s'[: len(errors) != 1]}."
        expected = "no console error, page error, failed request or HTTP status from 400 up"
        findings.append(subject.finding("EVD533", gate, message, found=_listing(errors), expected=expected))
    blocked = [record for record in records if record["kind"] == "blocked"]
    if blocked:
        message = f"the page asked other origins for {len(blocked)} resource{'s'[: len(blocked) != 1]}."
        findings.append(subject.finding("EVD535", gate, message, found=_listing(blocked)))
    return findings


def _listing(records: list[dict[str, Any]]) -> str:
    """List the first records that differ in full and count the rest."""
    texts = list(dict.fromkeys(_line(record) for record in records))
    left = len(texts) - SHOWN
    return "; ".join(texts[:SHOWN]) + (f"; and {left} more" if left > 0 else "")


def _line(record: dict[str, Any]) -> str:
    status = f" {record['status']}" if record["kind"] == "response" else ""
    url = record.get("url")
    where = f" at {rules.quote(url)}" if isinstance(url, str) and url else ""
    return f"{record['kind']}{status} {rules.quote(record['text'])}{where}"


def _malformed(gate: str, subject: Subject, number: int, reason: str) -> Finding:
    where = f"line {number}: " if number else ""
    expected = f"JSON lines that begin with a header record of schema {SCHEMA}"
    message = f"{subject.shown} is no console log that can be judged."
    return subject.finding("EVD531", gate, message, found=f"{where}{reason}", expected=expected)
