"""Why a run is where it is, as people and agents read it."""

from interlock.graph.task.explain import explain_run
from interlock.graph.task.runs import drive
from tests.graph.conftest import Project


def test_no_gate_is_passed_before_an_envelope_came(project: Project) -> None:
    view = project.waiting("builder")
    assert {row["passed"] for row in explain_run(view, project.root)["gates"]} == {False}


def test_the_refusal_of_a_qa_role_that_is_asked_again_is_shown_at_once(project: Project) -> None:
    """Its line is in the journal only when every role of the phase has answered."""
    view = project.waiting("tester")
    view = drive(view.run_id, root=project.root, runners=project.runners, answers={"tester": "looks good to me"})
    refusal = explain_run(view, project.root)["last_refusal"]
    assert (refusal["role"], refusal["reask"]) == ("tester", 0)
    assert refusal["findings"][0]["fix"]
