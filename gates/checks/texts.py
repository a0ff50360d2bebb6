"""Reports and command logs: text that a person or a command left behind."""

from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.sealed import check_sealed
from interlock.gates.checks.shapes import FLAG, TEXT, Leaf, MalformedError, Shape, conform, decode, loads, one_of, whole
from interlock.gates.checks.subject import Subject, Subjects

COMMAND_SCHEMA: Final = "interlock.command/1"
_HEADER_BYTES: Final = 512 * 1024
_HEADER: Final[Shape] = {
    "schema": one_of(COMMAND_SCHEMA), "gate": TEXT, "argv": [TEXT], "timed_out": FLAG,
    "exit_status": whole(optional=True), "sealed": Leaf(lambda value: isinstance(value, dict | None), "is no object"),
}  # fmt: skip
SHOWN: Final = 5


def check_report(gate: str, subjects: Subjects, *, in_run: bool, tree: str | None) -> list[Finding]:
    """Judge review reports: text with content; in a run at least one names the reviewed tree."""
    findings: list[Finding] = []
    named = False
    for subject in subjects:
        try:
            text = decode(subject.file.data)
            if not text.strip():
                raise MalformedError("nothing but white space")  # noqa: TRY301 - reported below with the other reasons
        except MalformedError as error:
            message = f"{subject.shown} is no report that can be read."
            findings.append(subject.finding("EVD551", gate, message, found=str(error)))
            continue
        named = named or (tree is not None and tree in text)
    if in_run and tree is not None and subjects and not named and not findings:
        message, found = "no report names the tree that was reviewed.", f"no `{tree}` in {subjects[-1].shown}"
        fix = f"Review the present files, write `Reviewed tree: {tree}` into the report, and cite it."
        findings.append(subjects[-1].finding("EVD552", gate, message, found=found, fix=fix))
    for subject in () if in_run else subjects:
        message = f"{subject.shown} is there and has content; no machine judged what it says."
        findings.append(subject.finding("EVD553", gate, message, found="a report in prose"))
    return findings


def check_command(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge the logs of a command gate by the exit status in their header; other reports are left aside."""
    findings: list[Finding] = []
    headers: list[tuple[Subject, dict[str, Any]]] = []
    reasons: list[str] = []
    for subject in subjects:
        try:
            headers.append((subject, _header(subject.file.data[:_HEADER_BYTES].partition(b"\n")[0], gate)))
        except MalformedError as error:
            reasons.append(f"{subject.shown}: {error}")
    for subject, header in headers:
        try:
            findings.extend(_judge_log(gate, subject, header))
        except MalformedError as error:
            reasons.append(f"{subject.shown}: {error}")
            headers = []
    if subjects and not headers:
        code, what = "EVD557", "can be judged by a machine"
        if in_run:
            code, what = "EVD554", "was written by the gate's command"
        expected = f"a log that begins with a JSON line of schema {COMMAND_SCHEMA} for {gate}"
        found = "; ".join(reasons[:SHOWN])
        findings.append(subjects[-1].finding(code, gate, f"no report {what}.", found=found, expected=expected))
    return findings


def _judge_log(gate: str, subject: Subject, header: dict[str, Any]) -> list[Finding]:
    shown = rules.quote(" ".join(header["argv"]))
    if header["timed_out"]:
        message = f"the command {shown} did not end in time and was stopped."
        return [subject.finding("EVD556", gate, message, found="timed_out is true")]
    if (sealed := header.get("sealed")) is not None:
        return list(check_sealed(gate, subject, sealed))
    if (status := header.get("exit_status")) != 0:
        found = f"exit status {status}; {_last_line(subject.file.data)}"
        message = f"the command {shown} ended with status {status}."
        fix = f"Fix what the command reports in {subject.shown}, then have it run again."
        return [subject.finding("EVD555", gate, message, found=found, fix=fix)]
    return []


def _header(line: bytes, gate: str) -> dict[str, Any]:
    """Read the header of a command log."""
    header = loads(line)
    conform(header, _HEADER, "the first line", more=True)
    if header["gate"] != gate:
        raise MalformedError(f"the log is of the gate {rules.quote(header['gate'])}")
    return header


def _last_line(data: bytes) -> str:
    """Quote the last line of output, which mostly says what went wrong."""
    lines = [line for line in data[-4096:].decode("utf-8", "replace").split("\n")[1:] if line.strip()]
    return f"last line {rules.quote(lines[-1].strip())}" if lines else "no output"
