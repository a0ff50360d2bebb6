"""The one judge of a response: `validate-envelope`, the tool of that name and a run find the same in the same text."""

from interlock.envelope import Inputs, Report
from interlock.envelope.protocol import Protocol
from interlock.gates.response import Expected, has_runs, judge_response


def judge(
    text: str | bytes,
    *,
    root: str,
    protocol: Protocol,
    inputs: Inputs,
    expected: Expected,
    extract: bool = False,
    max_bytes: int | None = None,
    evidence: bool = True,
    shared_only: bool = False,
) -> Report:
    """Judge a response as the open run of its task would; without one, by what the caller and the project say.

    Arguments as for `judge_response`. Without evidence, or with gates or a status in `expected`, no run is asked.
    """
    small = max_bytes is None or len(text) <= max_bytes
    if small and evidence and expected.gates is None and expected.current_status is None and has_runs(root):
        from pathlib import Path  # noqa: PLC0415 - a tenth of the cold start of `validate-envelope`

        from interlock.graph.task.open_run import judge_by_run  # noqa: PLC0415 - LangGraph takes a second to import

        report = judge_by_run(
            text, expected, root=Path(root), protocol=protocol, extract=extract, shared_only=shared_only
        )
        if report is not None:
            return report
    return judge_response(
        text,
        root=root,
        protocol=protocol,
        inputs=inputs,
        expected=expected,
        extract=extract,
        max_bytes=max_bytes,
        evidence=evidence,
        shared_only=shared_only,
    ).report
