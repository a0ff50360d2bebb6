"""The orchestrator's own status changes, written as envelopes and held to the same rules as everybody's."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from interlock.agents.quoting import visible
from interlock.core.errors import Exit
from interlock.envelope import GATE_IN_TEXT, Case, Envelope, render, validate
from interlock.envelope.protocol import EVIDENCE_KEYS, Protocol, Status
from interlock.graph.errors import DEFECT, GraphError
from interlock.graph.task.machine import CitedFile
from interlock.graph.task.task import Task

ORCHESTRATOR = "orchestrator"
MSG_STRICT = "GATE-MSG-STRICT"
"""The gate that a FAIL_REASON of the orchestrator names when the protocol itself was broken."""

MAX_REASON_CHARS: Final = 300
MAX_REASONS: Final = 20
"""So much of the reasons of one agent is repeated; its answer is kept whole."""


def orchestrator_name(protocol: Protocol) -> str:
    """Return the name of the role that aggregates."""
    return protocol.of_kind("orchestrator")[0].name


def statement(
    status: Status,
    task: Task,
    protocol: Protocol,
    *,
    previous: Status | None,
    gates_passed: Iterable[str] = (),
    evidence: Sequence[CitedFile] = (),
    fail_reasons: Sequence[str] = (),
    output: str,
    next_actions: Sequence[str] = (),
    waived: Collection[str] = (),
    excused: Collection[str] = (),
) -> str:
    """Render and check the envelope with which the orchestrator sets a status.

    `next_actions` may be empty only for APPROVED. Gates that are `waived` are not required in this envelope;
    those that are `excused` are required, and may be missing until a person waives them.

    Returns:
        The envelope's text.

    Raises:
        GraphError: The text breaks a rule, which is a defect of Interlock; nothing was written.
    """
    passed = set(gates_passed)
    required = tuple(gate for gate in task.gates_required if gate not in waived)
    name = orchestrator_name(protocol)
    text = render(
        Envelope(
            status=status,
            task_id=task.task_id,
            task=task.task,
            assigned_agent=name,
            reports_to=ORCHESTRATOR,
            inputs_used=task.inputs,
            gates_required=required,
            gates_passed=tuple(gate for gate in required if gate in passed),
            evidence=_by_key(evidence),
            fail_reasons=tuple(fail_reasons),
            output=output,
            next_actions=tuple(next_actions),
        )
    )
    case = Case(
        agent=name,
        task_id=task.task_id,
        gates=required,
        current_status=previous,
        protocol=protocol,
        certified=frozenset(passed),
        excused=excused,
    )
    # The limit on a response is for agents: a statement names the evidence of all of them.
    report = validate(text, case, max_bytes=len(text.encode()))
    if report.ok:
        return text
    wrong = "; ".join(f"{item.code} {item.message}" for item in report.findings if item.level == "error")
    error = GraphError(f"the orchestrator's own envelope is invalid: {wrong}", "Report this as a defect of Interlock.")
    error.code, error.exit_code = DEFECT, Exit.INTERNAL
    raise error


def _by_key(evidence: Sequence[CitedFile]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(dict.fromkeys(item["path"] for item in evidence if item["key"] == key)) for key in EVIDENCE_KEYS}


def reason(gate: str, text: str) -> str:
    """Return one FAIL_REASONS item: a gate id and one bounded line without hidden characters."""
    line = visible(" ".join(text.split()))
    return _cut(line if line.startswith(f"{gate}:") else f"{gate}: {line}")


def repeated(reasons: Iterable[str]) -> list[str]:
    """Return reasons of an agent as the orchestrator repeats them: bounded, each still naming its gate first."""
    lines: list[str] = []
    for text in reasons:
        line = " ".join(text.split())
        gate = GATE_IN_TEXT.search(line)
        if gate is None or gate.end() < MAX_REASON_CHARS:
            lines.append(_cut(line if gate else f"{MSG_STRICT}: {line}"))
        else:
            lines.append(_cut(f"{gate.group()}: {line}"))
    unique = list(dict.fromkeys(lines))
    left = len(unique) - MAX_REASONS
    return unique if left <= 0 else [*unique[:MAX_REASONS], f"{MSG_STRICT}: {left} more reasons are left out"]


def _cut(line: str) -> str:
    return line if len(line) <= MAX_REASON_CHARS else line[: MAX_REASON_CHARS - 1] + "…"
