"""The orchestrator's own status changes, written as envelopes and held to the same rules as everybody's."""

from collections.abc import Iterable, Sequence

from interlock.envelope import Envelope, render, validate
from interlock.envelope.protocol import EVIDENCE_KEYS, Protocol, Status
from interlock.graph.errors import GraphError
from interlock.graph.machine import CitedFile
from interlock.graph.task import Task

ORCHESTRATOR = "orchestrator"
MSG_STRICT = "GATE-MSG-STRICT"
"""The gate that stands for the protocol itself in a FAIL_REASON of the orchestrator."""


class StatementError(GraphError):
    """The orchestrator's own envelope did not validate: a defect of Interlock, never of an agent."""

    code = "RUN690"


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
) -> str:
    """Render and check the envelope with which the orchestrator sets a status.

    Args:
        status: The status to set.
        task: The task.
        protocol: The roster and gates of the task.
        previous: The status before.
        gates_passed: The gates that hold, any order.
        evidence: The files that stand for them.
        fail_reasons: Reasons that each begin with a gate id.
        output: What happened, in a sentence.
        next_actions: What comes next; empty only for APPROVED.

    Returns:
        The envelope's text.

    Raises:
        StatementError: The text breaks a rule; nothing was written.
    """
    passed = set(gates_passed)
    name = orchestrator_name(protocol)
    text = render(
        Envelope(
            status=status,
            task_id=task.task_id,
            task=task.task,
            assigned_agent=name,
            reports_to=ORCHESTRATOR,
            inputs_used=task.inputs,
            gates_required=task.gates_required,
            gates_passed=tuple(gate for gate in task.gates_required if gate in passed),
            evidence=_by_key(evidence),
            fail_reasons=tuple(fail_reasons),
            output=output,
            next_actions=tuple(next_actions),
        )
    )
    report = validate(
        text,
        agent=name,
        task_id=task.task_id,
        gates=task.gates_required,
        current_status=previous,
        protocol=protocol,
        certified=frozenset(passed),
    )
    if not report.ok:
        raise StatementError(
            f"the orchestrator's own envelope is invalid: {report.as_reask()}", "Report this as a defect of Interlock."
        )
    return text


def _by_key(evidence: Sequence[CitedFile]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(dict.fromkeys(item["path"] for item in evidence if item["key"] == key)) for key in EVIDENCE_KEYS}


def reason(gate: str, text: str, *, limit: int = 300) -> str:
    """Return one FAIL_REASONS item: a gate id and one bounded line."""
    line = " ".join(text.split())
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    return line if line.startswith(gate) else f"{gate}: {line}"
