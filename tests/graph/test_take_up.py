"""Judges that deny what Interlock itself found."""

from dataclasses import replace

import pytest

from interlock.agents import Ask
from tests.graph.conftest import Project, Scripted, build, judge_log
from tests.graph.test_progress_stream import passing
from tests.graph.test_runs import FENCED

believing = passing("GATE-TESTS")
"""Answers as a tester that passes whatever it is shown."""


def test_a_judge_that_denies_interlocks_own_evidence_counts_as_a_fail_and_the_work_goes_back(project: Project) -> None:
    project.runners["builder"] = Scripted([build("wrong\n"), build()])
    project.runners["tester"] = Scripted([believing])
    assert project.run().status == "APPROVED"
    assert [ask.reask for ask in project.asks("tester")] == [0, 1, 2, 0]
    *_, first, second = [entry.data for entry in project.entries("answer") if entry.data["role"] == "tester"]
    assert (first["outcome"], first["verdict_by"]) == ("fail", "orchestrator")
    assert "verdict_by" not in second
    (reason,) = project.entries("status")[3].data["envelope"]["fail_reasons"]
    assert reason.startswith("GATE-TESTS: ")
    assert "status 1" in reason


@pytest.mark.parametrize("last", ["looks good to me", FENCED], ids=["no envelope", "fenced"])
def test_a_judge_that_says_nothing_readable_about_a_failed_gate_does_not_end_the_run(
    project: Project, last: str
) -> None:
    project.runners["builder"] = Scripted([build("wrong\n"), build()])
    project.runners["tester"] = Scripted([last, last, last, judge_log])
    assert project.run().status == "APPROVED"
    assert [ask.reask for ask in project.asks("tester")] == [0, 1, 2, 0]


def test_the_fixes_for_a_judge_that_denies_the_evidence_end_in_one_turn(project: Project) -> None:
    """Its answer has another fault too, so that it is asked again."""

    def nearly(ask: Ask) -> str:
        return believing(ask).replace("REPORTS_TO: orchestrator", "REPORTS_TO: builder")

    project.runners["builder"] = Scripted([build("wrong\n")])
    project.runners["tester"] = Scripted([nearly, nearly])
    project.task = replace(project.task, run={"max_rework": 0})
    project.run()
    text = project.asks("tester")[1].prompt
    assert "ENV419" in text
    assert "BLOCKED" in text
    assert "not of your answer" in text
