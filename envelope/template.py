"""Envelopes made from the tables: a fillable template and valid examples for every role and outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from interlock.envelope.model import Envelope
from interlock.envelope.protocol import (
    ANYBODY,
    DEFAULT_PROTOCOL,
    EVIDENCE_KEYS,
    EvidenceKey,
    Protocol,
    Role,
    RoleKind,
    Status,
)
from interlock.envelope.render import render

OutcomeName: TypeAlias = Literal[
    "progress", "hand-over", "pass", "fail", "start-qa", "start-review", "approve", "blocked"
]
Passed: TypeAlias = Literal["any agent's", "own", "of QA", "all"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way in which a kind of role ends its turn.

    Args:
        name: What to ask `example` for.
        kind: The kind of role that may end its turn so.
        before: The status of the task before the answer.
        status: The value of STATUS: set, or echoed when it equals `before` for a QA or review role.
        passed: Which of the required gates the answer lists as passed.
        output: A sample OUTPUT; `{task_id}` and `{gate}` are filled in.
        actions: A sample of NEXT_ACTIONS; `{role}` and `{gate}` are filled in.
        reason: A sample FAIL_REASON after its gate; empty for NONE.
    """

    name: OutcomeName
    kind: RoleKind
    before: Status
    status: Status
    passed: Passed
    output: str
    actions: tuple[str, ...] = ()
    reason: str = ""


OUTCOMES: Final = (
    Outcome(
        "hand-over",
        "build",
        "IN_PROGRESS",
        "READY_FOR_QA",
        "any agent's",
        "The page is built and every input was followed.\n\n- index.html: landmarks, headings and the form\n"
        "- styles.css: one column to 767 px, two from 768 px",
        ("orchestrator to dispatch every QA role",),
    ),
    Outcome(
        "progress",
        "build",
        "IN_PROGRESS",
        "IN_PROGRESS",
        "any agent's",
        "The layout is decided: three sections under one heading, one form at the end.",
        ("{role} to finish the open part",),
    ),
    Outcome(
        "blocked",
        "build",
        "IN_PROGRESS",
        "BLOCKED",
        "any agent's",
        "Nothing was changed.",
        ("orchestrator to supply what the fail reasons name",),
        "an input that the task needs does not exist",
    ),
    Outcome(
        "pass",
        "qa",
        "QA_IN_PROGRESS",
        "QA_IN_PROGRESS",
        "own",
        "{gate} holds: every file under EVIDENCE was read and shows no fault.",
        ("orchestrator to collect the verdicts of the other QA roles",),
    ),
    Outcome(
        "fail",
        "qa",
        "QA_IN_PROGRESS",
        "BLOCKED",
        "any agent's",
        "{gate} does not hold; the fail reasons say where and what to change.",
        ("the build agent to mend what the fail reasons name",),
        "the form field for the e-mail address has no label",
    ),
    Outcome(
        "pass",
        "review",
        "READY_FOR_REVIEW",
        "READY_FOR_REVIEW",
        "own",
        "{gate} holds: the present files were read; no change is asked for.",
        ("orchestrator to verify all evidence again",),
    ),
    Outcome(
        "fail",
        "review",
        "READY_FOR_REVIEW",
        "BLOCKED",
        "any agent's",
        "{gate} does not hold; the fail reasons say where and what to change.",
        ("the build agent to mend what the fail reasons name",),
        "index.html repeats one block three times",
    ),
    Outcome(
        "start-qa",
        "orchestrator",
        "READY_FOR_QA",
        "QA_IN_PROGRESS",
        "any agent's",
        "The hand-over of {task_id} is valid; every QA role is dispatched.",
        ("every QA role to judge its gate",),
    ),
    Outcome(
        "start-review",
        "orchestrator",
        "QA_IN_PROGRESS",
        "READY_FOR_REVIEW",
        "of QA",
        "Every QA verdict on {task_id} is a pass.",
        ("the review role to read the present files",),
    ),
    Outcome(
        "approve",
        "orchestrator",
        "READY_FOR_REVIEW",
        "APPROVED",
        "all",
        "Every gate of {task_id} passed and all evidence was verified again.",
    ),
    Outcome(
        "blocked",
        "orchestrator",
        "QA_IN_PROGRESS",
        "BLOCKED",
        "any agent's",
        "{task_id} goes back to its build agent.",
        ("the build agent to mend what the fail reasons name",),
        "the gate did not hold",
    ),
)
"""How each kind of role ends its turn; the first row of a kind is its usual one."""

SAMPLE_FILES: Final[dict[EvidenceKey, tuple[str, ...]]] = {
    "screenshots": ("page-375.png", "page-768.png", "page-1280.png"),
    "a11y": ("axe.json",),
    "console": ("console.jsonl",),
    "reports": ("report.md",),
}
SAMPLE_TASK_ID: Final = "HOME-UI-001"
SAMPLE_TASK: Final = "Build the landing page"


def outcomes(role: Role) -> tuple[Outcome, ...]:
    """Return the ways in which a role may end its turn, the usual one first."""
    return tuple(row for row in OUTCOMES if row.kind == role.kind and (row.name != "hand-over" or role.hands_over))


def example(
    role: str,
    protocol: Protocol = DEFAULT_PROTOCOL,
    *,
    outcome: OutcomeName | None = None,
    task_id: str = SAMPLE_TASK_ID,
    task: str = SAMPLE_TASK,
    gates: Sequence[str] | None = None,
    inputs: Sequence[str] = (),
    evidence: Mapping[str, Sequence[str]] | None = None,
) -> Envelope:
    """Return a valid envelope of a role, as it would be when the turn ended in this outcome.

    Args:
        role: Name of the role.
        protocol: The tables.
        outcome: How the turn ends; the role's usual way when not given.
        task_id: The value of TASK_ID.
        task: The value of TASK.
        gates: GATES_REQUIRED; the gates of every QA and review role when not given.
        inputs: INPUTS_USED.
        evidence: The entries of EVIDENCE by key, when the files are known; sample paths stand in otherwise.

    Raises:
        KeyError: The protocol has no such role, or the role has no such outcome.
    """
    who = protocol.roles[role]
    row = _outcome(who, outcome)
    required = required_gates(protocol) if gates is None else tuple(gates)
    failed = _failed(row, who, required)
    passed = tuple(gate for gate in _passed(row, who, required, protocol) if gate != failed)
    role_gate = who.certifies or failed
    words = {"role": who.name, "task_id": task_id, "gate": role_gate}
    return Envelope(
        status=row.status,
        task_id=task_id,
        task=task,
        assigned_agent=who.name,
        reports_to="orchestrator",
        inputs_used=tuple(inputs),
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
    inputs: Sequence[str] | None = None,
    current_status: Status | None = None,
    evidence: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return a canonical envelope in which `<…>` marks what only the agent knows.

    Args:
        role: Name of the role.
        protocol: The tables.
        outcome: How the turn ends; by default what follows from `current_status`, else the role's usual way.
        task_id: The value of TASK_ID, when the assignment names it.
        task: The value of TASK, when the assignment names it.
        gates: GATES_REQUIRED, when the assignment names them.
        inputs: INPUTS_USED, when known.
        current_status: The status of the task.
        evidence: The entries of EVIDENCE by key, when the files are known.

    Raises:
        KeyError: The protocol has no such role, or the role has no such outcome.
    """
    who = protocol.roles[role]
    if outcome is None:
        outcome = next((row.name for row in outcomes(who) if row.before == current_status), None)
    full = example(role, protocol, outcome=outcome, gates=gates, evidence=evidence)
    shown = {key: tuple(f"artifacts/{key}/<file>" for _ in paths[:1]) for key, paths in full.evidence.items()}
    holes = replace(
        full,
        task_id=task_id or "<TASK_ID of the assignment>",
        task=task or "<what was attempted, in one line>",
        inputs_used=tuple(inputs) if inputs is not None else ("<path of each file that was used>",),
        evidence=shown if evidence is None else full.evidence,
        fail_reasons=tuple(f"{reason.split(':')[0]}: <what failed, and where>" for reason in full.fail_reasons),
        output="<the deliverable: what was done, found or decided>",
        next_actions=tuple("<who does what next>" for _ in full.next_actions),
    )
    return render(holes)


def required_gates(protocol: Protocol = DEFAULT_PROTOCOL) -> tuple[str, ...]:
    """Return the gates that a task needs at least, and those that anybody may pass, in the order of the registry."""
    certified = {role.certifies for role in protocol.roles.values()}
    return tuple(gate.id for gate in protocol.gates.values() if gate.id in certified or gate.certifier == ANYBODY)


def _outcome(role: Role, name: OutcomeName | None) -> Outcome:
    rows = {row.name: row for row in outcomes(role)}
    return rows[name] if name is not None else next(iter(rows.values()))


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


def _failed(row: Outcome, role: Role, required: Sequence[str]) -> str:
    """Return the gate that a sample fail reason names: the role's own, else the last one of the task."""
    if not row.reason:
        return ""
    return role.certifies or required[-1]


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
