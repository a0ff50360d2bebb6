"""Rendering: the canonical text of an envelope."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.envelope.protocol import EVIDENCE_KEYS

if TYPE_CHECKING:
    from interlock.envelope.model import Envelope


def render(envelope: "Envelope") -> str:
    """Return the canonical text of an envelope: what is valid stays valid, and reads back as the same envelope.

    Values are written as they are; nothing is escaped or quoted.

    Returns:
        Text with LF line ends and a final newline.
    """
    lines = [
        f"STATUS: {envelope.status}",
        f"TASK_ID: {envelope.task_id}",
        f"TASK: {envelope.task}",
        f"ASSIGNED_AGENT: {envelope.assigned_agent}",
        f"REPORTS_TO: {envelope.reports_to}",
        *_list("INPUTS_USED:", envelope.inputs_used),
        *_list("GATES_REQUIRED:", envelope.gates_required),
        *_list("GATES_PASSED:", envelope.gates_passed),
        "EVIDENCE:",
    ]
    for key in EVIDENCE_KEYS:
        lines += _list(f"  {key}:", envelope.evidence.get(key, ()), "    ")
    lines += _list("FAIL_REASONS:", envelope.fail_reasons) if envelope.fail_reasons else ["FAIL_REASONS: NONE"]
    lines += ["OUTPUT:", envelope.output]
    steps = [f"{number}. {step}" for number, step in enumerate(envelope.next_actions, 1)]
    lines += ["NEXT_ACTIONS:", *steps] if steps else ["NEXT_ACTIONS: NONE"]
    return "\n".join(lines) + "\n"


def _list(label: str, items: "Iterable[str]", indent: str = "") -> list[str]:
    bullets = [f"{indent}- {item}" for item in items]
    return [label, *bullets] if bullets else [f"{label} []"]
