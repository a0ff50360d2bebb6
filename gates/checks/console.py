"""Console logs: JSON lines with a header, and no error among them (format in `gates.manifest`)."""

from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.subject import MalformedError, Subject, Subjects, decode, loads

SCHEMA: Final = "interlock.console/1"
KINDS: Final = ("console", "pageerror", "requestfailed", "response", "blocked")
ERROR_LEVELS: Final = frozenset({"error", "assert"})
SHOWN: Final = 5
"""So many errors are told in full; the rest are counted."""


def check_console(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge every console log of a gate."""
    return [finding for subject in subjects for finding in _check(gate, subject, in_run=in_run)]


def _check(gate: str, subject: Subject, *, in_run: bool) -> list[Finding]:
    """Judge one console log."""
    try:
        text = decode(subject.file.data)
    except MalformedError as error:
        return [_malformed(gate, subject, 0, str(error))]
    if not in_run and not text.lstrip().startswith("{"):
        return [
            subject.finding(
                "EVD534",
                gate,
                f"{subject.shown} is plain text; no machine judged it.",
                found="plain text",
                expected="JSON lines from the console collector, where a machine is to judge",
                fix="Run `interlock evidence console PAGE` and cite the log that it writes.",
            )
        ]
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
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
        return [
            subject.finding(
                "EVD532",
                gate,
                f"{subject.shown} announces {header['records']} records and holds {len(rest)}.",
                found=f"{len(rest)} records",
                expected=f"{header['records']} records, as the header says",
                fix="Collect the console log again; it was cut short or edited.",
            )
        ]
    return _errors(gate, subject, rest)


def _record(line: str, *, header: bool) -> dict[str, Any]:
    """Read one line.

    Raises:
        MalformedError: The line is not a header, or not a record.
    """
    value: object = loads(line)
    if not isinstance(value, dict):
        raise MalformedError("the line is no JSON object")
    record = cast("dict[str, Any]", value)
    if header:
        count = record.get("records")
        if record.get("schema") != SCHEMA or not isinstance(count, int) or isinstance(count, bool):
            raise MalformedError(f'it is no header with "schema": "{SCHEMA}" and a number of "records"')
        return record
    status = record.get("status")
    if record.get("kind") not in KINDS:
        raise MalformedError(f"`kind` is not one of {', '.join(KINDS)}")
    if not isinstance(record.get("level"), str) or not isinstance(record.get("text"), str):
        raise MalformedError("`level` or `text` is missing or no text")
    if status is not None and (not isinstance(status, int) or isinstance(status, bool)):
        raise MalformedError("`status` is no number")
    if record["kind"] == "response" and status is None:
        raise MalformedError("a `response` has no `status`")
    return record


def _is_error(record: dict[str, Any]) -> bool:
    """Say whether a record fails the gate."""
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
        findings.append(
            subject.finding(
                "EVD533",
                gate,
                f"the console log {subject.shown} has {len(errors)} error{'s'[: len(errors) != 1]}.",
                found=_listing(errors),
                expected="no console error, page error, failed request or HTTP status from 400 up",
                fix="Fix what the page reports, then have the console collected again.",
            )
        )
    blocked = [record for record in records if record["kind"] == "blocked"]
    if blocked:
        findings.append(
            subject.finding(
                "EVD535",
                gate,
                f"the page asked other origins for {len(blocked)} resource{'s'[: len(blocked) != 1]}.",
                found=_listing(blocked),
                expected="a page that loads everything from its own origin",
                fix="Serve these resources with the page; the collector keeps the network closed.",
            )
        )
    return findings


def _listing(records: list[dict[str, Any]]) -> str:
    """Tell the first records that differ in full and count the rest."""
    texts = list(dict.fromkeys(_line(record) for record in records))
    left = len(texts) - SHOWN
    return "; ".join(texts[:SHOWN]) + (f"; and {left} more" if left > 0 else "")


def _line(record: dict[str, Any]) -> str:
    """Tell one record in one line."""
    status = f" {record['status']}" if record["kind"] == "response" else ""
    url = record.get("url")
    where = f" at {rules.quote(url)}" if isinstance(url, str) and url else ""
    return f"{record['kind']}{status} {rules.quote(record['text'])}{where}"


def _malformed(gate: str, subject: Subject, number: int, reason: str) -> Finding:
    """Refuse a log that cannot be read."""
    where = f"line {number}: " if number else ""
    return subject.finding(
        "EVD531",
        gate,
        f"{subject.shown} is no console log that can be judged.",
        found=f"{where}{reason}",
        expected=f"JSON lines that begin with a header record of schema {SCHEMA}",
        fix="Run `interlock evidence console PAGE` and cite the log that it writes.",
    )
