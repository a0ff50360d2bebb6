"""Content checks: pure functions from the bytes of evidence to findings.

One row a check name; `check_gate` applies the row of a gate to the files that stand under its keys.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from interlock.core.finding import Finding
from interlock.envelope.protocol import EVIDENCE_KEYS, ContentCheck, EvidenceKey, GateSpec
from interlock.gates import rules
from interlock.gates.checks.subject import Subject, Subjects

__all__ = ["Circumstances", "Subject", "check_gate"]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Where a check happens.

    Args:
        in_run: Inside a graph run, where a machine must be able to judge everything.
        tree: Digest of the files in scope, `sha256:…`; None when it is not known.
    """

    in_run: bool = False
    tree: str | None = None


_Check: TypeAlias = Callable[[str, Mapping[EvidenceKey, Subjects], Circumstances], list[Finding]]


def check_gate(
    gate: GateSpec,
    subjects: Sequence[Subject],
    *,
    in_run: bool,
    tree: str | None = None,
) -> list[Finding]:
    """Judge the evidence of one gate.

    Args:
        gate: The gate's row; its id opens each message.
        subjects: The files; those under keys that the gate does not use are left aside.
        in_run: Whether this is a graph run.
        tree: The tree that a report must name, in a run.

    Returns:
        Findings; the gate is passed when none of them is an error.
    """
    keys = EVIDENCE_KEYS if gate.any_evidence else gate.evidence
    by_key: dict[EvidenceKey, Subjects] = {key: [s for s in subjects if s.key == key] for key in keys}
    if gate.any_evidence and not any(by_key.values()):
        return [_nothing(gate.id, "EVIDENCE", "under any key")]
    if not gate.any_evidence:
        missing = [_nothing(gate.id, f"EVIDENCE.{key}", f"under `{key}`") for key in keys if not by_key[key]]
        if missing:
            return missing
    return _CHECKS[gate.check](gate.id, by_key, Circumstances(in_run, tree))


def _nothing(gate_id: str, field: str, where: str) -> Finding:
    return rules.finding(
        "EVD520",
        f"{gate_id} has no usable file {where}.",
        found="no file that could be read",
        expected=f"at least one file {where}",
        fix=f"Cite a file {where} that was made and has content; without one, take {gate_id} out of GATES_PASSED.",
        field=field,
    )


def _visual(gate_id: str, by_key: Mapping[EvidenceKey, Subjects], at: Circumstances) -> list[Finding]:
    from interlock.gates.checks.console import check_console  # noqa: PLC0415 - each check is loaded when it is needed
    from interlock.gates.checks.images import check_visual  # noqa: PLC0415

    findings = check_visual(gate_id, by_key.get("screenshots", ()), in_run=at.in_run)
    return findings + check_console(gate_id, by_key.get("console", ()), in_run=at.in_run)


def _a11y(gate_id: str, by_key: Mapping[EvidenceKey, Subjects], at: Circumstances) -> list[Finding]:
    from interlock.gates.checks.a11y import check_a11y  # noqa: PLC0415

    return check_a11y(gate_id, by_key.get("a11y", ()), in_run=at.in_run)


def _report(gate_id: str, by_key: Mapping[EvidenceKey, Subjects], at: Circumstances) -> list[Finding]:
    from interlock.gates.checks.texts import check_report  # noqa: PLC0415

    return check_report(gate_id, by_key.get("reports", ()), in_run=at.in_run, tree=at.tree)


def _command(gate_id: str, by_key: Mapping[EvidenceKey, Subjects], at: Circumstances) -> list[Finding]:
    from interlock.gates.checks.texts import check_command  # noqa: PLC0415

    return check_command(gate_id, by_key.get("reports", ()), in_run=at.in_run)


def _nothing_more(_gate_id: str, _by_key: Mapping[EvidenceKey, Subjects], _at: Circumstances) -> list[Finding]:
    """Ask for no more than what was checked already: files that exist and are not empty, or the envelope itself."""
    return []


_CHECKS: Final[dict[ContentCheck, _Check]] = {
    "validator": _nothing_more,
    "visual": _visual,
    "a11y": _a11y,
    "report": _report,
    "not-empty": _nothing_more,
    "command": _command,
}
