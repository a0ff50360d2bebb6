"""Reports and command logs: text that a person or a command left behind."""

from typing import Final, Literal

from pydantic import BaseModel, Field, ValidationError

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.sealed import Sealed, check_sealed
from interlock.gates.checks.subject import Subject, Subjects, why

COMMAND_SCHEMA: Final = "interlock.command/1"


class _Header(BaseModel, strict=True):
    format: Literal["interlock.command/1"] = Field(alias="schema")
    gate: str
    argv: list[str]
    timed_out: bool
    exit_status: int | None = None
    sealed: Sealed | None = None


def check_report(gate: str, subjects: Subjects, *, in_run: bool, tree: str | None) -> list[Finding]:
    """Judge review reports: in a run at least one names the reviewed tree; elsewhere nobody judges them."""
    if not in_run:
        return [subject.prose(gate) for subject in subjects]
    if tree is None or not subjects or any(tree.encode() in subject.file.data for subject in subjects):
        return []
    message, found = "no report names the tree that was reviewed.", f"no `{tree}` in {subjects[-1].shown}"
    fix = f"Review the present files, write `Reviewed tree: {tree}` into the report, and cite it."
    return [subjects[-1].finding("EVD552", gate, message, found=found, fix=fix)]


def check_command(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge the logs of a command gate by the exit status in their header; other reports are left aside."""
    findings: list[Finding] = []
    others: list[Finding] = []
    for subject in subjects:
        try:
            # Behind the first line stands the output of the command, which may claim anything.
            header = _Header.model_validate_json(subject.file.data.partition(b"\n")[0])
        except ValidationError as error:
            others.append(subject.unjudged(gate, why(error), in_run=in_run))
            continue
        if header.gate == gate:
            findings += _judge_log(gate, subject, header)
        else:
            others.append(subject.unjudged(gate, f"a log of {rules.quote(header.gate)}", in_run=in_run))
    return others if len(others) == len(subjects) else findings


def _judge_log(gate: str, subject: Subject, header: _Header) -> list[Finding]:
    shown = rules.quote(" ".join(header.argv))
    if header.timed_out:
        message = f"the command {shown} did not end in time and was stopped."
        return [subject.finding("EVD556", gate, message, found="timed_out is true")]
    if header.sealed is not None:
        return list(check_sealed(gate, subject, header.sealed))
    if header.exit_status != 0:
        found = f"exit status {header.exit_status}; {_last_line(subject.file.data)}"
        message = f"the command {shown} ended with status {header.exit_status}."
        fix = f"Fix what the command reports in {subject.shown}, then have it run again."
        return [subject.finding("EVD555", gate, message, found=found, fix=fix)]
    return []


def _last_line(data: bytes) -> str:
    """Quote the last line of output, which mostly says what went wrong."""
    lines = [line for line in data[-4096:].decode("utf-8", "replace").split("\n")[1:] if line.strip()]
    return f"last line {rules.quote(lines[-1].strip())}" if lines else "no output"
