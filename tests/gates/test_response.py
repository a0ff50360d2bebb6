"""A response is judged with the evidence files that it cites, or without them."""

from pathlib import Path

import pytest

from interlock.envelope import Case, render
from interlock.envelope.template import example, template
from interlock.gates.response import distinct_gates, judge_response

PASSED = render(example("a11y-auditor", task_id="HOME-UI-001"))
WAITING = Case(current_status="QA_IN_PROGRESS", inputs="warn")


@pytest.mark.parametrize("evidence", [True, False])
def test_a_file_that_is_not_there_is_found_when_evidence_is_read(tmp_path: Path, *, evidence: bool) -> None:
    report = judge_response(PASSED, WAITING, root=str(tmp_path), evidence=evidence).report
    assert report.ok is not evidence
    assert report.verdict == (None if evidence else "PASS")


def test_an_input_is_looked_for_below_the_root(tmp_path: Path) -> None:
    form = template("frontend-implementer", task_id="HOME-UI-001", outcome="blocked")
    text = form.replace("<path of each file that was used>", "brief.md")

    def codes() -> set[str]:
        report = judge_response(text, Case(), root=str(tmp_path)).report
        return {finding.code for finding in report.findings if finding.field == "INPUTS_USED"}

    missing = codes()
    (tmp_path / "brief.md").write_text("")
    assert missing
    assert not codes()


def test_gates_are_named_once_and_without_blanks() -> None:
    assert distinct_gates([" GATE-A", "GATE-B ", "GATE-A", " "]) == ("GATE-A", "GATE-B")
    assert distinct_gates([]) == ()
    assert distinct_gates(None) is None
