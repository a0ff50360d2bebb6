"""A whole response judged: its layout and rules, and what the evidence files that it cites say."""
# The validate-envelope command starts cold for each response; pathlib would cost a tenth of that.
# ruff: noqa: PTH100, PTH118

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from interlock.envelope.protocol import EVIDENCE_KEYS

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope import Case, Envelope, Report
    from interlock.envelope.protocol import Protocol
    from interlock.gates.manifest import Binding, CollectedFile, Collection


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
    case: "Case",
    *,
    root: str,
    collected: "tuple[Collection, ...] | None" = None,
    binding: "Binding | None" = None,
    extract: bool = False,
    max_bytes: int | None = None,
    evidence: bool = True,
    shared_only: bool = False,
) -> Judged:
    """Judge a response and, unless `evidence` is false, the evidence that it cites.

    Args:
        text: The response.
        case: What it is held to; its inputs are looked for below the root.
        root: The project's root.
        collected: What the run's collectors made; None outside a run.
        binding: What the evidence must be evidence of; needed in a run.
        extract: Whether to find the one envelope inside a message that wraps it.
        max_bytes: The most that is read, by default the envelope's own limit.
        evidence: Whether the files under EVIDENCE are read.
        shared_only: Whether only shared files (`gates.shared`) exist for the answer.
    """
    from interlock.envelope import MAX_BYTES, validate  # noqa: PLC0415

    case = replace(case, input_exists=partial(input_exists, root, shared_only=shared_only))
    report = validate(text, case, extract=extract, max_bytes=MAX_BYTES if max_bytes is None else max_bytes)
    if not evidence:
        return Judged(report, report)
    cited = _cited(report, case.protocol)
    # In a run even an answer without evidence is judged, for what was collected and not cited counts.
    if binding is None and not any(cited.evidence.values()):
        return Judged(report, report)  # nothing more is imported when no file is cited
    from interlock.gates.judge import judge_evidence, places_of  # noqa: PLC0415

    # A response that is not well-formed has its evidence read as well, so that one turn can fix everything.
    judged = judge_evidence(
        cited,
        root=root,
        protocol=case.protocol,
        places=places_of(report.reading.fields),
        collected=collected,
        binding=binding,
        shared_only=shared_only,
    )
    # Where the envelope's own rules refuse an entry, the files say nothing more about it.
    refused = {row.line for row in report.findings if row.level == "error" and row.field.startswith("EVIDENCE.")}
    kept = tuple(row for row in judged.findings if not row.line or row.line not in refused)
    whole = report.with_findings(kept)
    if report.envelope is None:
        return Judged(whole, report, kept)
    return Judged(whole, report, kept, judged.files, judged.verified)


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


def distinct_gates(given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the gates that an assignment names, each once and without blanks; None when it names none at all."""
    return None if given is None else tuple(dict.fromkeys(gate.strip() for gate in given if gate.strip()))


def _cited(report: "Report", protocol: "Protocol") -> "Envelope":
    """Return the envelope, or what could be read of its gates and evidence."""
    if report.envelope is not None:
        return report.envelope
    from interlock.envelope import Envelope  # noqa: PLC0415

    read = {label: field.texts for label, field in report.reading.fields.items()}
    # What cannot be read as an envelope may claim any text as a gate.
    passed = tuple(gate for gate in read.get("GATES_PASSED", ()) if gate in protocol.gates)
    evidence = {key: read.get(f"EVIDENCE.{key}", ()) for key in EVIDENCE_KEYS}
    return Envelope("", "", "", "", "", (), (), passed, evidence, (), "", ())
