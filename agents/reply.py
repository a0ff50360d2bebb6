"""An envelope for an agent that is a program: what its ask says already is filled in."""

from collections.abc import Mapping, Sequence
from typing import Final

from interlock.agents.ask import Ask
from interlock.envelope import Envelope, render
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey

MSG_STRICT: Final = "GATE-MSG-STRICT"
"""The gate of the envelope itself, which everybody may list."""


def reply(
    ask: Ask,
    status: str,
    gate: str = "",
    *,
    evidence: Mapping[EvidenceKey, Sequence[str]] | None = None,
    fail_reasons: Sequence[str] = (),
    inputs_used: Sequence[str] = (),
    output: str = "Done.",
    next_actions: Sequence[str] = ("orchestrator to go on",),
) -> str:
    """Return the text of an answer to an ask. It is judged like any other.

    Args:
        ask: What is answered.
        status: STATUS.
        gate: The gate that is passed beside that of the envelope; empty for none.
        evidence: Paths by key; a key that is not given has none.
        fail_reasons: FAIL_REASONS, each with its gate first.
        inputs_used: INPUTS_USED.
        output: OUTPUT.
        next_actions: NEXT_ACTIONS, without their numbers.
    """
    given = evidence or {}
    return render(
        Envelope(
            status=status,
            task_id=ask.task_id,
            task=ask.task,
            assigned_agent=ask.role,
            reports_to="orchestrator",
            inputs_used=tuple(inputs_used),
            gates_required=ask.required,
            gates_passed=tuple(filter(None, (MSG_STRICT if MSG_STRICT in ask.required else "", gate))),
            evidence={key: tuple(given.get(key, ())) for key in EVIDENCE_KEYS},
            fail_reasons=tuple(fail_reasons),
            output=output,
            next_actions=tuple(next_actions),
        )
    )
