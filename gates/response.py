"""A whole response judged: its layout and rules, and what the evidence files that it cites say."""
# The validate-envelope command starts cold for each response; pathlib would cost a tenth of that.
# ruff: noqa: PTH118

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.envelope.protocol import EVIDENCE_KEYS

if TYPE_CHECKING:
    from interlock.envelope.case import Inputs
    from interlock.envelope.model import Envelope
    from interlock.envelope.protocol import Protocol, Status
    from interlock.envelope.validate import Report


@dataclass(frozen=True, slots=True)
class Expected:
    """What the caller knows about a response beside its text.

    Args:
        agent: The agent that the task was assigned to.
        task_id: The task id of the assignment.
        gates: The gates that the assignment requires.
        current_status: The task's status before the response.
    """

    agent: str | None = None
    task_id: str | None = None
    gates: tuple[str, ...] | None = None
    current_status: "Status | None" = None


def judge_response(
    text: str | bytes,
    *,
    root: str,
    protocol: "Protocol",
    inputs: "Inputs",
    expected: Expected,
    extract: bool = False,
    max_bytes: int,
    evidence: bool = True,
) -> "Report":
    """Return the report on a response and, unless told otherwise, on the evidence that it cites.

    Args:
        text: The response.
        root: The folder that paths are relative to.
        protocol: The tables in force.
        inputs: How strictly missing inputs are judged.
        expected: What the assignment says.
        extract: Find the one envelope inside a message that wraps it.
        max_bytes: The largest response that is read.
        evidence: Whether the evidence files are read.
    """
    from interlock.envelope.validate import validate  # noqa: PLC0415

    report = validate(
        text,
        agent=expected.agent,
        task_id=expected.task_id,
        gates=expected.gates,
        current_status=expected.current_status,
        protocol=protocol,
        input_exists=lambda name: os.path.lexists(os.path.join(root, name)),
        inputs=inputs,
        extract=extract,
        max_bytes=max_bytes,
    )
    return _with_evidence(report, root, protocol) if evidence else report


def distinct_gates(given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the gates that an assignment names, each once and without blanks; None when it names none at all."""
    return None if given is None else tuple(dict.fromkeys(gate.strip() for gate in given if gate.strip()))


def _with_evidence(report: "Report", root: str, protocol: "Protocol") -> "Report":
    """Return the report with what the evidence files say; nothing is imported when none is cited.

    A response that is not well-formed has its evidence read as well, so that one turn can mend everything. Where the
    envelope's own rules refuse an entry, the files say nothing more about it.
    """
    cited = _cited(report, protocol)
    if not any(cited.evidence.values()):
        return report
    from interlock.gates.judge import judge_evidence, places_of  # noqa: PLC0415

    judged = judge_evidence(cited, root=root, protocol=protocol, places=places_of(report.reading.fields))
    refused = {row.line for row in report.findings if row.level == "error" and row.field.startswith("EVIDENCE.")}
    return report.with_findings(row for row in judged.findings if not row.line or row.line not in refused)


def _cited(report: "Report", protocol: "Protocol") -> "Envelope":
    """Return the envelope, or what could be read of its gates and evidence."""
    if report.envelope is not None:
        return report.envelope
    from interlock.envelope.model import Envelope  # noqa: PLC0415

    read = {label: field.texts for label, field in report.reading.fields.items()}
    passed = tuple(gate for gate in read.get("GATES_PASSED", ()) if gate in protocol.gates)
    evidence = {key: read.get(f"EVIDENCE.{key}", ()) for key in EVIDENCE_KEYS}
    return Envelope("", "", "", "", "", (), (), passed, evidence, (), "", ())
