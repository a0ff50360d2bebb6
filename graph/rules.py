"""The rules that only a run can check: rows like those of the envelope and the gates, code RUN6xx."""

from collections.abc import Sequence
from typing import Literal

from interlock.envelope import Report
from interlock.envelope.finding import Finding


def unchanged_tree(report: Report, mode: Literal["error", "warn"], scope: Sequence[str]) -> Finding:
    """Return the finding for a hand-over that changed no file in scope.

    Source: field notes, orchestration: an agent that claims work without having changed anything.
    """
    status = report.reading.fields["STATUS"]
    return Finding(
        code="RUN610",
        level="error" if mode == "error" else "warning",
        field="STATUS",
        line=status.line,
        column=status.value_column,
        message="The answer hands work over, but no file in scope has changed since it was assigned.",
        found="READY_FOR_QA with an unchanged tree",
        expected=f"a change in {', '.join(scope)}",
        fix="Do the work in the files in scope and hand over then, or set STATUS to `BLOCKED` and say why under "
        "FAIL_REASONS.",
        source="ours: a claim of work needs work",
    )


def unreadable_tree(report: Report, why: str) -> Finding:
    """Return the finding for a hand-over of files that cannot be read, and so cannot be bound to any verdict."""
    status = report.reading.fields["STATUS"]
    return Finding(
        code="RUN611",
        level="error",
        field="STATUS",
        line=status.line,
        column=status.value_column,
        message="The answer hands work over, but the files in scope cannot be read.",
        found=why,
        expected="files in scope that can be read, with UTF-8 names",
        fix="Make every file in scope readable or take it away, then hand over.",
        source="ours: evidence is of one task, one attempt and one tree",
    )
