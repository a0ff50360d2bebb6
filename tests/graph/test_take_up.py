"""Runs that ended BLOCKED for a reason outside the work, and judges that deny what Interlock itself found."""

from dataclasses import replace

import pytest

from interlock.agents import Ask, RunnerError
from interlock.graph.task.runs import view_run
from interlock.graph.verify import verify_journal
from tests.graph.conftest import Project, Scripted, build, judge_log, reviewing, without_linter
from tests.graph.test_progress_stream import passing
from tests.graph.test_runs import FENCED


def test_a_run_whose_evidence_could_not_be_made_goes_on_at_that_step_each_time_it_is_taken_up(project: Project) -> None:
    linter = without_linter(project)
    view = project.run()
    assert (view.status, view.values["cause"], view.failed) == ("BLOCKED", "collector", ("command-gates",))
    assert project.drive(view.run_id).status == "BLOCKED", "nothing goes on by itself"
    view = project.drive(view.run_id, take_up=True)
    assert (view.status, view.failed) == ("BLOCKED", ("command-gates",))
    linter.with_name("gone").rename(linter)
    view = project.drive(view.run_id, take_up=True)
    assert (view.status, view.values["attempt"]) == ("APPROVED", 1)
    assert [len(project.asks(role)) for role in ("builder", "tester", "reviewer")] == [1, 1, 1], "nothing is paid twice"
    lines = project.entries("resumed")
    assert [line.key for line in lines] == ["1/resumed/1", "1/resumed/2"]
    assert (lines[0].data["roles"], lines[0].data["to"]) == (["command-gates"], "QA_IN_PROGRESS")
    assert verify_journal(project.root).problems == ()
    assert view_run(view.run_id, root=project.root).head == view.head


def test_a_judge_without_a_valid_answer_is_asked_anew_and_the_work_is_not_done_twice(project: Project) -> None:
    project.runners["reviewer"] = Scripted(["no"] * 5 + [reviewing])
    view = project.run()
    assert (view.status, view.values["cause"], view.failed) == ("BLOCKED", "protocol", ("reviewer",))
    view = project.drive(view.run_id, take_up=True)
    assert (view.status, view.values["attempt"]) == ("APPROVED", 1)
    assert [ask.reask for ask in project.asks("reviewer")] == [0, 1, 2, 3, 4, 5], "each ask has a name of its own"
    assert [len(project.asks(role)) for role in ("builder", "tester")] == [1, 1]


def test_a_taken_up_step_judges_the_work_that_was_handed_over(project: Project) -> None:
    linter = without_linter(project)
    view = project.run()
    linter.with_name("gone").rename(linter)
    (project.root / "src/greeting.txt").write_text("hello there\n")
    project.runners["builder"] = Scripted([build()])
    view = project.drive(view.run_id, take_up=True)
    assert (view.status, view.values["attempt"]) == ("APPROVED", 2), "a change makes every verdict stale"


def test_a_run_that_ended_for_the_works_sake_is_not_taken_up(project: Project) -> None:
    project.task = replace(project.task, run={"max_rework": 0})
    (project.root / "check.sh").write_text("exit 1\n")
    view = project.run()
    lines = len(project.entries())
    assert view.failed == ()
    assert project.drive(view.run_id, take_up=True).status == "BLOCKED"
    assert len(project.entries()) == lines


def test_a_kill_after_a_run_was_taken_up_loses_nothing(project: Project) -> None:
    linter = without_linter(project)
    view = project.run()
    linter.with_name("gone").rename(linter)
    good = project.runners["reviewer"]
    project.runners["reviewer"] = Scripted([_gone])
    with pytest.raises(RunnerError):
        project.drive(view.run_id, take_up=True)
    project.runners["reviewer"] = good
    assert project.drive(view.run_id).status == "APPROVED"
    assert len(project.entries("resumed")) == 1


def _gone(_ask: Ask) -> str:
    raise RunnerError("gone", "Come back.")


believing = passing("GATE-TESTS")
"""Answers as a tester that passes whatever it is shown."""


def test_a_judge_that_denies_interlocks_own_evidence_counts_as_a_fail_and_the_work_goes_back(project: Project) -> None:
    project.runners["builder"] = Scripted([build("wrong\n"), build()])
    project.runners["tester"] = Scripted([believing])
    assert project.run().status == "APPROVED"
    assert [ask.reask for ask in project.asks("tester")] == [0, 0], "asking again could change nothing"
    first, second = [entry.data for entry in project.entries("answer") if entry.data["role"] == "tester"]
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
