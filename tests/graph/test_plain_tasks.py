"""Tasks that a command decides: one build role and nothing else, and what a new run makes of work in the tree."""

from dataclasses import replace
from pathlib import Path

from interlock.agents import Ask
from interlock.graph.verify import verify_journal
from tests.graph.conftest import Project, Scripted, build, envelope, reviewing

COMMANDED = ("GATE-MSG-STRICT", "GATE-LINT")


def commanded(project: Project) -> None:
    """Let a project have a build role alone, and one gate whose command decides."""

    def answer(ask: Ask) -> str:
        text = "hello\n" if ask.attempt > 1 else "\thello\n"
        (Path(ask.root) / "src" / "greeting.txt").write_text(text, encoding="utf-8")
        return envelope(ask, "READY_FOR_QA", gates_required=COMMANDED)

    project.task = replace(project.task, gates_required=COMMANDED)
    project.runners = {"builder": Scripted([answer])}


def test_a_build_role_and_a_command_are_enough_and_every_status_is_passed(project: Project) -> None:
    commanded(project)
    view = project.run()
    way = ["IN_PROGRESS", "READY_FOR_QA", "QA_IN_PROGRESS"]
    assert project.path() == [*way, "BLOCKED", *way, "READY_FOR_REVIEW", "APPROVED"]
    assert view.status == "APPROVED"
    review, approved = project.entries("status")[-2:]
    assert (review.data["review_required"], approved.data["review_required"]) == (False, False)
    assert review.data["dispatched"] == []
    for entry in (review, approved):
        assert "No review was required" in entry.data["envelope"]["output"]
    assert approved.data["envelope"]["gates_passed"] == list(COMMANDED)
    assert verify_journal(project.root).problems == ()


def handing(ask: Ask) -> str:
    """Answer as a builder that finds the work done."""
    return envelope(ask, "READY_FOR_QA")


def test_a_new_run_delivers_the_work_that_an_earlier_one_left(project: Project) -> None:
    project.runners["reviewer"] = Scripted(["no"])
    assert project.run().status == "BLOCKED"
    project.runners |= {"reviewer": Scripted(["no"]), "builder": Scripted([handing])}
    assert project.run().status == "BLOCKED", "the reviewer is at fault, not the builder"
    project.runners["reviewer"] = Scripted([reviewing])
    assert project.run().status == "APPROVED"
    assert len(project.asks("builder")) == 2
    project.runners["builder"] = Scripted([handing])
    view = project.run()
    assert (view.status, len(project.asks("builder"))) == ("BLOCKED", 3), "what was approved is delivered"


def test_work_that_was_taken_back_is_not_delivered(project: Project) -> None:
    project.runners["reviewer"] = Scripted(["no"])
    project.run()
    (project.root / "src/greeting.txt").unlink()
    project.runners["builder"] = Scripted([handing])
    view = project.run()
    assert (view.status, view.values["cause"]) == ("BLOCKED", "protocol")
    assert any("RUN610" in reason for reason in view.values["fail_reasons"])


def test_work_that_failed_a_gate_is_changed_before_it_is_handed_over_again(project: Project) -> None:
    project.task = replace(project.task, run={"max_rework": 0})
    project.runners["builder"] = Scripted([build("wrong\n")])
    project.run()
    project.task = replace(project.task, run={"max_rework": 1})
    project.runners["builder"] = Scripted([handing])
    view = project.run()
    assert project.path()[-2:] == ["IN_PROGRESS", "BLOCKED"]
    assert (view.values["attempt"], view.values["cause"]) == (2, "protocol")
