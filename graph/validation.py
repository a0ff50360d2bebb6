"""The one judge of a response: `validate-envelope`, the tool of that name and a run find the same in the same text."""

from dataclasses import dataclass

from interlock.envelope import Inputs, Report
from interlock.envelope.protocol import Protocol
from interlock.gates.response import Expected, has_runs, judge_response


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What a response is held to.

    Args:
        root: The project's root.
        protocol: The project's tables.
        inputs: How strictly missing inputs are judged.
        expected: What the caller says of the assignment. With gates or a status in it, no run is asked.
        extract: Find the one envelope inside a message that wraps it.
        max_bytes: The largest response that is read; default: the envelope's own limit.
        evidence: Whether the evidence files are read; without, no run is asked.
        shared_only: As for `judge_response`.
    """

    root: str
    protocol: Protocol
    inputs: Inputs
    expected: Expected
    extract: bool = False
    max_bytes: int | None = None
    evidence: bool = True
    shared_only: bool = False


def judge(text: str | bytes, context: JudgeContext) -> Report:
    """Judge a response as the open run of its task would; without one, by what the caller and the project say."""
    given, root, protocol = context.expected, context.root, context.protocol
    small = context.max_bytes is None or len(text) <= context.max_bytes
    if small and context.evidence and given.gates is None and given.current_status is None and has_runs(root):
        from pathlib import Path  # noqa: PLC0415 - a tenth of the cold start of `validate-envelope`

        from interlock.graph.task.open_run import judge_by_run  # noqa: PLC0415 - LangGraph takes a second to import

        report = judge_by_run(
            text, given, root=Path(root), protocol=protocol, extract=context.extract, shared_only=context.shared_only
        )
        if report is not None:
            return report
    return judge_response(
        text,
        root=root,
        protocol=protocol,
        inputs=context.inputs,
        expected=given,
        extract=context.extract,
        max_bytes=context.max_bytes,
        evidence=context.evidence,
        shared_only=context.shared_only,
    ).report
