"""Content checks: pure functions from the bytes of evidence to findings. Each is loaded when it is needed."""

from collections.abc import Sequence
from typing import assert_never

from interlock.core.finding import Finding
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey, GateSpec
from interlock.gates import rules
from interlock.gates.checks.subject import Subject, Subjects

__all__ = ["Subject", "check_collected", "check_gate"]


def check_gate(gate: GateSpec, subjects: Sequence[Subject], *, in_run: bool, tree: str | None = None) -> list[Finding]:
    """Judge the evidence of one gate; it is passed when no finding is an error.

    Files under keys that the gate does not use are left aside. In a graph run, a machine must be able to judge
    everything, and a report must name the tree by its digest, where that is known. A key of the check has its files in
    `gate.evidence` (`registry.build_protocol` sees to it).
    """
    keys = EVIDENCE_KEYS if gate.any_evidence else gate.evidence
    by_key: dict[EvidenceKey, Subjects] = {key: [s for s in subjects if s.key == key] for key in keys}
    if gate.any_evidence and not any(by_key.values()):
        return [_nothing(gate.id, "EVIDENCE", "under any key")]
    if not gate.any_evidence:
        missing = [_nothing(gate.id, f"EVIDENCE.{key}", f"under `{key}`") for key in keys if not by_key[key]]
        if missing:
            return missing
    match gate.check:
        case "visual":
            shots = check_collected(gate.id, "screenshots", by_key["screenshots"], in_run=in_run)
            return shots + check_collected(gate.id, "console", by_key["console"], in_run=in_run)
        case "a11y":
            return check_collected(gate.id, "a11y", by_key["a11y"], in_run=in_run)
        case "report":
            from interlock.gates.checks.texts import check_report  # noqa: PLC0415

            return check_report(gate.id, by_key.get("reports", ()), in_run=in_run, tree=tree)
        case "command":
            from interlock.gates.checks.texts import check_command  # noqa: PLC0415

            return check_command(gate.id, by_key.get("reports", ()), in_run=in_run)
        case "validator" | "not-empty":
            return []  # what was checked already: files that exist and are not empty, or the envelope itself
        case _:
            assert_never(gate.check)


def check_collected(gate_id: str, key: EvidenceKey, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge the files under one key that Interlock's browser collects."""
    match key:
        case "screenshots":
            from interlock.gates.checks.images import check_visual  # noqa: PLC0415

            return check_visual(gate_id, subjects)
        case "console":
            from interlock.gates.checks.console import check_console  # noqa: PLC0415

            return check_console(gate_id, subjects, in_run=in_run)
        case "a11y":
            from interlock.gates.checks.a11y import check_a11y  # noqa: PLC0415

            return check_a11y(gate_id, subjects, in_run=in_run)
        case "reports":
            return []
        case _:
            assert_never(key)


def _nothing(gate_id: str, field: str, where: str) -> Finding:
    message, found = f"{gate_id} has no usable file {where}.", "no file that could be read"
    fix = f"Cite a file {where} that was made and has content; without one, take {gate_id} out of GATES_PASSED."
    return rules.finding("EVD520", message, found=found, expected=f"at least one file {where}", fix=fix, field=field)
