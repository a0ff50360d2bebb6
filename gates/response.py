"""A whole response judged: its layout and rules, and what the evidence files that it cites say."""
# The validate-envelope command starts cold for each response; pathlib would cost a tenth of that.
# ruff: noqa: PTH100, PTH118

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.envelope.protocol import EVIDENCE_KEYS

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope import Envelope, Inputs, Report
    from interlock.envelope.protocol import Protocol, Status
    from interlock.gates.manifest import Binding, CollectedFile, Collection


@dataclass(frozen=True, slots=True)
class Expected:
    """What the caller knows about a response beside its text.

    Args:
        agent: The agent that the task was assigned to.
        task_id: The task id of the assignment.
        gates: The gates that the assignment requires.
        current_status: The task's status before the response.
        certified: Gates that the run holds as passed for the present tree.
        failed: Gates that failed; each needs its reason.
        collected: What the run's collectors made; None outside a run.
        binding: What the evidence must be evidence of; needed in a run.
    """

    agent: str | None = None
    task_id: str | None = None
    gates: tuple[str, ...] | None = None
    current_status: "Status | None" = None
    certified: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    collected: "tuple[Collection, ...] | None" = None
    binding: "Binding | None" = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A response with everything that was found of it, of its text alone, and of its evidence files.

    The files are those that were read, none where the text is not well-formed; the gates those whose evidence passed.
    """

    report: "Report"
    text: "Report"
    evidence: "tuple[Finding, ...]" = ()
    files: "tuple[CollectedFile, ...]" = ()
    verified: tuple[str, ...] = ()


def judge_response(
    text: str | bytes,
    *,
    root: str,
    protocol: "Protocol",
    inputs: "Inputs",
    expected: Expected,
    extract: bool = False,
    max_bytes: int | None = None,
    evidence: bool = True,
    shared_only: bool = False,
) -> Judged:
    """Judge a response and, unless `evidence` is false, the evidence that it cites.

    `inputs` is how strictly missing inputs are judged; `extract` finds the one envelope inside a message that wraps it;
    `max_bytes` is by default the envelope's own limit; with `shared_only`, only shared files (`gates.shared`) exist for
    the answer.
    """
    from interlock.envelope import MAX_BYTES, validate  # noqa: PLC0415

    report = validate(
        text,
        agent=expected.agent,
        task_id=expected.task_id,
        gates=expected.gates,
        current_status=expected.current_status,
        protocol=protocol,
        certified=expected.certified,
        failed=expected.failed,
        input_exists=lambda name: input_exists(root, name, shared_only=shared_only),
        inputs=inputs,
        extract=extract,
        max_bytes=MAX_BYTES if max_bytes is None else max_bytes,
    )
    if not evidence:
        return Judged(report, report)
    return _with_evidence(report, root, protocol, expected, shared_only=shared_only)


def input_exists(root: str, path: str, *, shared_only: bool = False) -> bool:
    """Return whether a path of INPUTS_USED names something below the root; what leads out of it is not looked up."""
    below = relative(root, path)
    if not below:
        return False
    if shared_only:
        from interlock.gates.shared import is_shared  # noqa: PLC0415

        if not is_shared(root, below):
            return False
    try:
        return os.path.exists(os.path.join(root, below))  # noqa: PTH110
    except (OSError, ValueError):
        return False


def relative(root: str, name: str) -> str:
    """Return a path relative to the root, `.` for that itself; nothing for one that leads out of it."""
    top = os.path.abspath(root)
    path = os.path.normpath(os.path.join(top, name))
    inside = path == top or path.startswith(os.path.join(top, ""))
    return os.path.relpath(path, top) if inside else ""


def has_runs(root: str) -> bool:
    """Return whether any run was ever made below a root, without loading what runs are made of."""
    try:
        with os.scandir(os.path.join(root, ".interlock", "runs")) as found:
            return next(found, None) is not None
    except OSError:
        return False


def distinct_gates(given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the gates that an assignment names, each once and without blanks; None when it names none at all."""
    return None if given is None else tuple(dict.fromkeys(gate.strip() for gate in given if gate.strip()))


def _with_evidence(
    report: "Report", root: str, protocol: "Protocol", expected: Expected, *, shared_only: bool
) -> Judged:
    """Return the report with what the evidence files say; nothing is imported when none is cited.

    A response that is not well-formed has its evidence read as well, so that one turn can fix everything. Where the
    envelope's own rules refuse an entry, the files say nothing more about it.
    """
    cited = _cited(report, protocol)
    if expected.binding is None and not any(cited.evidence.values()):
        return Judged(report, report)
    from interlock.gates.judge import judge_evidence, places_of  # noqa: PLC0415

    judged = judge_evidence(
        cited,
        root=root,
        protocol=protocol,
        places=places_of(report.reading.fields),
        collected=expected.collected,
        binding=expected.binding,
        known=report.findings,
        shared_only=shared_only,
    )
    refused = {row.line for row in report.findings if row.level == "error" and row.field.startswith("EVIDENCE.")}
    kept = tuple(row for row in judged.findings if not row.line or row.line not in refused)
    whole = report.with_findings(kept)
    if report.envelope is None:
        return Judged(whole, report, kept)
    return Judged(whole, report, kept, judged.files, judged.verified)


def _cited(report: "Report", protocol: "Protocol") -> "Envelope":
    """Return the envelope, or what could be read of its gates and evidence."""
    if report.envelope is not None:
        return report.envelope
    from interlock.envelope import Envelope  # noqa: PLC0415

    read = {label: field.texts for label, field in report.reading.fields.items()}
    passed = tuple(gate for gate in read.get("GATES_PASSED", ()) if gate in protocol.gates)
    evidence = {key: read.get(f"EVIDENCE.{key}", ()) for key in EVIDENCE_KEYS}
    return Envelope("", "", "", "", "", (), (), passed, evidence, (), "", ())
