"""Envelopes made from the tables: a fillable template and valid examples for every role and outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from interlock.envelope.model import Envelope, render
from interlock.envelope.outcomes import Outcome, OutcomeName, outcomes
from interlock.envelope.protocol import (
    ANYBODY,
    DEFAULT_PROTOCOL,
    EVIDENCE_KEYS,
    ROLES,
    EvidenceKey,
    Protocol,
    Role,
    Status,
)

SAMPLE_FILES: Final[dict[EvidenceKey, tuple[str, ...]]] = {
    "screenshots": ("page-375.png", "page-768.png", "page-1280.png"),
    "a11y": ("axe.json",),
    "console": ("console.jsonl",),
    "reports": ("report.md",),
}
SAMPLE_TASK_ID: Final = "HOME-UI-001"
SAMPLE_TASK: Final = "Build the landing page"


def example(
    role: str,
    protocol: Protocol = DEFAULT_PROTOCOL,
    *,
    outcome: OutcomeName | None = None,
    task_id: str = SAMPLE_TASK_ID,
    gates: Sequence[str] | None = None,
    evidence: Mapping[str, Sequence[str]] | None = None,
) -> Envelope:
    """Return a valid envelope of a role, as it would be when the turn ended in this outcome.

    What is not given is a sample; `evidence` has the entries by key, when the files are known.

    Raises:
        KeyError: The protocol has no such role, or the role has no such outcome.
    """
    who = protocol.roles[role]
    rows = {row.name: row for row in outcomes(who)}
    row = rows[outcome] if outcome is not None else next(iter(rows.values()))
    required = required_gates(protocol, who) if gates is None else tuple(gates)
    # A builder certifies no gate; its reason names the last one that is required.
    failed = who.certifies or required[-1] if row.reason else ""
    passed = tuple(gate for gate in _passed(row, who, required, protocol) if gate != failed)
    role_gate = who.certifies or failed
    words = {"role": who.name, "task_id": task_id, "gate": role_gate}
    return Envelope(
        status=row.status,
        task_id=task_id,
        task=SAMPLE_TASK,
        assigned_agent=who.name,
        reports_to="orchestrator",
        inputs_used=(),
        gates_required=required,
        gates_passed=passed,
        evidence=_sample_evidence(passed, protocol, task_id) if evidence is None else _all_keys(evidence),
        fail_reasons=(f"{failed}: {row.reason}",) if row.reason else (),
        output=row.output.format(**words),
        next_actions=tuple(action.format(**words) for action in row.actions),
    )


def template(
    role: str,
    protocol: Protocol = DEFAULT_PROTOCOL,
    *,
    outcome: OutcomeName | None = None,
    task_id: str | None = None,
    task: str | None = None,
    gates: Sequence[str] | None = None,
    current_status: Status | None = None,
    evidence: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return a canonical envelope in which `<…>` marks what only the agent knows.

    What is not given stays to be filled in; without an outcome, it is what follows from `current_status`, else the
    role's usual way.

    Raises:
        KeyError: The protocol has no such role, or the role has no such outcome.
    """
    who = protocol.roles[role]
    if outcome is None:
        # The first way out of the present status is the usual one.
        outcome = next((row.name for row in outcomes(who) if row.before == current_status), None)
    full = example(role, protocol, outcome=outcome, gates=gates, evidence=evidence)
    shown = {key: tuple(f"artifacts/{key}/<file>" for _ in paths[:1]) for key, paths in full.evidence.items()}
    holes = replace(
        full,
        task_id=task_id or "<TASK_ID of the assignment>",
        task=task or "<what was attempted, in one line>",
        inputs_used=("<path of each file that was used>",),
        evidence=shown if evidence is None else full.evidence,
        fail_reasons=tuple(f"{reason.split(':')[0]}: <what failed, and where>" for reason in full.fail_reasons),
        output="<the deliverable: what was done, found or decided>",
        next_actions=tuple("<who does what next>" for _ in full.next_actions),
    )
    return render(holes)


def required_gates(protocol: Protocol = DEFAULT_PROTOCOL, role: Role | None = None) -> tuple[str, ...]:
    """Return the gates that a task needs at least, and those that anybody may pass, in the order of the registry.

    Where commands decide gates of the project, these are needed; of the others, those of the project's own roles and
    that of the role that is asked.
    """
    # A project that judges by its own commands need not have the shipped QA roles at work.
    commanded = any(gate.by_command for gate in protocol.gates.values())
    certified = {
        each.certifies for each in protocol.roles.values() if not (commanded and each in ROLES) or each == role
    }
    return tuple(
        gate.id
        for gate in protocol.gates.values()
        if gate.id in certified or gate.certifier == ANYBODY or gate.by_command
    )


def _passed(row: Outcome, role: Role, required: Sequence[str], protocol: Protocol) -> tuple[str, ...]:
    qa_gates = {each.certifies for each in protocol.of_kind("qa")}

    def is_passed(gate: str) -> bool:
        if protocol.gate(gate).certifier == ANYBODY:
            return True
        match row.passed:
            case "any agent's":
                return False
            case "own":
                return gate == role.certifies
            case "of QA":
                return gate in qa_gates
            case "all":
                return True

    return tuple(gate for gate in required if is_passed(gate))


def _sample_evidence(passed: Sequence[str], protocol: Protocol, task_id: str) -> dict[str, tuple[str, ...]]:
    keys: set[str] = set()
    for gate in passed:
        spec = protocol.gate(gate)
        keys |= set(spec.evidence) | ({"reports"} if spec.any_evidence else set())
    return {
        key: tuple(f"artifacts/{key}/{task_id}/1/{name}" for name in SAMPLE_FILES[key]) if key in keys else ()
        for key in EVIDENCE_KEYS
    }


def _all_keys(evidence: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(evidence.get(key, ())) for key in EVIDENCE_KEYS}
