"""Reports and command logs: text that a person or a command left behind."""

from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.sealed import check_sealed
from interlock.gates.checks.subject import MalformedError, Subject, Subjects, decode, loads

COMMAND_SCHEMA: Final = "interlock.command/1"
_HEADER_BYTES: Final = 512 * 1024
SHOWN: Final = 5


def check_report(gate: str, subjects: Subjects, *, in_run: bool, tree: str | None) -> list[Finding]:
    """Judge review reports: text with content; in a run at least one names the reviewed tree."""
    findings: list[Finding] = []
    named = False
    for subject in subjects:
        try:
            text = decode(subject.file.data)
            if not text.strip():
                raise MalformedError("nothing but white space")  # noqa: TRY301 - told below with the other reasons
        except MalformedError as error:
            findings.append(
                subject.finding(
                    "EVD551",
                    gate,
                    f"{subject.shown} is no report that can be read.",
                    found=str(error),
                    expected="UTF-8 text with content",
                    fix="Write the report as plain text or Markdown and cite it.",
                )
            )
            continue
        named = named or (tree is not None and tree in text)
    if in_run and tree is not None and subjects and not named and not findings:
        findings.append(
            subjects[-1].finding(
                "EVD552",
                gate,
                "no report names the tree that was reviewed.",
                found=f"no `{tree}` in {subjects[-1].shown}",
                expected=f"the digest `{tree}` somewhere in the report",
                fix=f"Review the present files, write `Reviewed tree: {tree}` into the report, and cite it.",
            )
        )
    if not in_run:
        findings.extend(
            subject.finding(
                "EVD553",
                gate,
                f"{subject.shown} is there and has content; no machine judged what it says.",
                found="a report in prose",
                expected="a person's reading, where it matters",
                fix="Read the report.",
            )
            for subject in subjects
        )
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
        code, what = (
            ("EVD554", "was written by the gate's command") if in_run else ("EVD557", "can be judged by a machine")
        )
        findings.append(
            subjects[-1].finding(
                code,
                gate,
                f"no report {what}.",
                found="; ".join(reasons[:SHOWN]),
                expected=f"a log that begins with a JSON line of schema {COMMAND_SCHEMA} for {gate}",
                fix="Have the run execute the gate's command and cite the log that it writes.",
            )
        )
    return findings


def _judge_log(gate: str, subject: Subject, header: dict[str, Any]) -> list[Finding]:
    """Judge one log by its header."""
    shown = rules.quote(" ".join(header["argv"]))
    if header["timed_out"]:
        return [
            subject.finding(
                "EVD556",
                gate,
                f"the command {shown} did not end in time and was stopped.",
                found="timed_out is true",
                expected="a command that ends by itself",
                fix="Find out what it waits for, or give the gate more `timeout_seconds`.",
            )
        ]
    if (sealed := header.get("sealed")) is not None:
        return list(check_sealed(gate, subject, sealed))
    if header["exit_status"] != 0:
        return [
            subject.finding(
                "EVD555",
                gate,
                f"the command {shown} ended with status {header['exit_status']}.",
                found=f"exit status {header['exit_status']}; {_last_line(subject.file.data)}",
                expected="exit status 0",
                fix=f"Fix what the command reports in {subject.shown}, then have it run again.",
            )
        ]
    return []


def _header(line: bytes, gate: str) -> dict[str, Any]:
    """Read the header of a command log.

    Raises:
        MalformedError: It is none, or another gate's.
    """
    value: object = loads(decode(line))
    if not isinstance(value, dict):
        raise MalformedError("the first line is no JSON object")
    header = cast("dict[str, Any]", value)
    argv: object = header.get("argv")
    status = header.get("exit_status")
    if header.get("schema") != COMMAND_SCHEMA:
        raise MalformedError(f'"schema" is not "{COMMAND_SCHEMA}"')
    if header.get("gate") != gate:
        raise MalformedError(f"the log is of the gate {rules.quote(str(header.get('gate')))}")
    if not isinstance(argv, list) or not all(isinstance(part, str) for part in cast("list[object]", argv)):
        raise MalformedError('"argv" is no list of texts')
    if not isinstance(header.get("sealed"), dict | None):
        raise MalformedError('"sealed" is no table')
    if not isinstance(header.get("timed_out"), bool):
        raise MalformedError('"timed_out" is neither true nor false')
    if isinstance(status, bool) or not isinstance(status, int | None):
        raise MalformedError('"exit_status" is no number')
    return header


def _last_line(data: bytes) -> str:
    """Quote the last line of output, which mostly says what went wrong."""
    lines = [line for line in data[-4096:].decode("utf-8", "replace").split("\n")[1:] if line.strip()]
    return f"last line {rules.quote(lines[-1].strip())}" if lines else "no output"
