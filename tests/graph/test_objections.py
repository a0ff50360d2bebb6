"""An agent objects to a gate, a person answers, and a gate is waived for one tree: never without a person."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask
from interlock.envelope.protocol import DEFAULT_PROTOCOL, GateSpec, Protocol
from interlock.graph import (
    GraphError,
    RunDamagedError,
    RunView,
    abandon,
    answer_question,
    content_of,
    hand_overs,
    view_run,
)
from interlock.graph.errors import TaskError
from interlock.graph.task.machine import objections
from interlock.graph.verify import verify_journal
from interlock.journal import Journal
from tests.graph.conftest import Project, Scripted, build, envelope, make_project, reviewing
from tests.graph.test_runs import GOOD_PATH
from tests.table import each_row

WHY = "the check wants a word that the task forbids"


def objecting(*reasons: str, text: str = "hi\n") -> Callable[[Ask], str]:
    """Return a builder that writes a greeting which the tests refuse, and objects."""

    def answer(ask: Ask) -> str:
        (Path(ask.root) / "src" / "greeting.txt").write_text(text, encoding="utf-8")
        return envelope(ask, "BLOCKED", fail_reasons=reasons or (f"GATE-TESTS: OBJECTION: {WHY}",))

    return answer


@pytest.fixture
def objected(project: Project) -> tuple[Project, RunView]:
    """Return a run that waits for the answer to an objection; its builder hands over afterwards."""
    project.runners["builder"] = Scripted([objecting(), build("hi\n")])
    return project, project.run()


def answered(project: Project, view: RunView, kind: str, **named: str) -> RunView:
    """Answer a question as ada, and take the run on."""
    decide(project, view, kind, **{"reason": "I have read it", **named})
    return project.drive(view.run_id)


def decide(project: Project, view: RunView, kind: str, **named: Any) -> None:
    """Answer the question that a view shows, as ada."""
    number = 0 if view.question is None else view.question.number
    answer_question(project.root, view.run_id, kind, **{"by": "ada", "number": number, **named})  # type: ignore[arg-type]


def test_an_objection_waits_for_a_person_and_spends_no_round(objected: tuple[Project, RunView]) -> None:
    project, view = objected
    assert (view.phase, view.status, view.waiting) == ("waiting", "BLOCKED", ())
    assert view.question is not None
    assert (view.question.kind, dict(view.question.gates), view.question.role) == (
        "objection",
        {"GATE-TESTS": WHY},
        "builder",
    )
    assert project.path() == ["IN_PROGRESS", "BLOCKED"]
    assert project.drive(view.run_id).phase == "waiting", "nobody has answered"
    with pytest.raises(GraphError):
        project.drive(view.run_id, OBJECTION="{}")


def test_an_accepted_objection_and_a_waiver_lead_to_approved_without_the_gate(
    objected: tuple[Project, RunView],
) -> None:
    project, view = objected
    view = answered(project, view, "accept")
    assert view.question is not None
    assert (view.question.kind, list(view.question.gates), view.status) == (
        "waiver",
        ["GATE-TESTS"],
        "READY_FOR_REVIEW",
    )
    assert [ask.role for ask in project.asks("tester") + project.asks("reviewer")] == ["tester", "reviewer"]
    view = answered(project, view, "waive", gate="GATE-TESTS")
    assert view.status == "APPROVED"
    assert project.path() == ["IN_PROGRESS", "BLOCKED", *GOOD_PATH]
    last = project.entries("status")[-1].data
    assert last["waived"] == {"GATE-TESTS": "ada"}
    assert "GATE-TESTS" not in last["envelope"]["gates_required"]
    assert set(last["envelope"]["gates_passed"]) == {"GATE-MSG-STRICT", "GATE-LINT", "GATE-REVIEW"}
    assert "waived for it by ada: I have read it" in last["envelope"]["output"]
    line = project.entries("waiver")[0].data
    assert (line["gate"], line["tree"], line["by"]) == ("GATE-TESTS", last["tree"], "ada")
    assert verify_journal(project.root).verdict == "whole"


def test_the_files_at_an_objection_are_kept_for_who_answers_and_are_no_hand_over(
    objected: tuple[Project, RunView],
) -> None:
    project, view = objected
    base, found = hand_overs(project.root, view.run_id)
    assert (found.label, found.attempt) == ("1.objection-1", 1)
    assert "src/greeting.txt" not in base.files
    assert content_of(project.root, view.run_id, found.files["src/greeting.txt"]) == b"hi\n"
    assert view.values["tree"] == ""
    assert "READY_FOR_QA" not in project.path()
    answered(project, view, "accept")
    assert [row.label for row in hand_overs(project.root, view.run_id)] == ["base", "1.objection-1", "1"]


def test_a_refused_objection_gives_another_turn_and_a_second_one_is_an_ordinary_end(project: Project) -> None:
    project.runners["builder"] = Scripted([objecting()])
    view = answered(project, project.run(), "refuse", reason="the word is allowed")
    assert (view.phase, view.status, view.question) == ("done", "BLOCKED", None)
    asks = project.asks("builder")
    assert [(ask.attempt, ask.turn) for ask in asks] == [(1, 1), (1, 2)]
    assert "the objection is refused by ada: the word is allowed" in asks[1].prompt


def test_a_correction_is_a_new_attempt_and_no_round_of_rework(objected: tuple[Project, RunView]) -> None:
    project, view = objected
    gates = tuple(gate for gate in project.task.gates_required if gate != "GATE-TESTS")
    with pytest.raises(TaskError):  # the roster's tester would have nothing to certify
        decide(project, view, "correct", task=replace(project.task, gates_required=gates))
    decide(project, view, "correct", task=replace(project.task, task="Write hello", scope=("src/*",)))
    corrected = Scripted([lambda ask: build()(ask).replace("Write the greeting", "Write hello")])
    project.runners["builder"] = corrected
    view = project.drive(view.run_id)
    assert (view.task.task, view.task.scope) == ("Write hello", ("src/*",))
    assert "Write hello" in corrected.asks[0].prompt
    assert corrected.asks[0].attempt == 2
    line = project.entries("objection_answered")[0].data
    assert line["task"]["task"] == "Write hello"


@each_row(
    "reasons",
    [
        ("GATE-MSG-STRICT: OBJECTION: I do not like envelopes",),
        ("GATE-OTHER: OBJECTION: not required",),
        ("GATE-TESTS: OBJECTION:",),
        ("GATE-TESTS: I make an OBJECTION: too late",),
        ("GATE-TESTS: objection: in lower case",),
    ],
)
def test_what_is_no_objection_is_an_ordinary_blocked(reasons: tuple[str, ...], tmp_path: Path) -> None:
    protocol = Protocol(gates={**DEFAULT_PROTOCOL.gates, "GATE-TESTS": GateSpec("GATE-TESTS", "tests")})
    assert objections(protocol, ("GATE-MSG-STRICT", "GATE-TESTS"), reasons, ()) == {}


def test_the_refusal_of_a_second_answer_names_the_first(objected: tuple[Project, RunView]) -> None:
    project, view = objected
    decide(project, view, "accept")
    seen = view_run(view.run_id, root=project.root)
    assert (seen.phase, seen.question, verify_journal(project.root).problems) == ("running", None, ())
    for _ in ("before the run goes on", "when it asks the next question"):
        with pytest.raises(GraphError, match="ada answered `accept`") as refused:
            decide(project, view, "refuse", by="bob", reason="no")
        assert refused.value.code == "RUN641"
        assert project.drive(view.run_id).question is not None
    assert project.entries("objection_answered")[0].data["by"] == "ada"


@each_row(
    ("kind", "named", "code"),
    [
        ("waive", {"reason": "x", "gate": "GATE-TESTS"}, "RUN642"),
        ("refuse", {"reason": "  "}, "RUN642"),
        ("correct", {}, "RUN642"),
        ("accept", {"gate": "GATE-LINT"}, "RUN642"),
        ("accept", {"number": 7}, "RUN641"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_changes_nothing(
    kind: str, named: dict[str, str], code: str, objected: tuple[Project, RunView]
) -> None:
    project, view = objected
    with pytest.raises(GraphError) as refused:
        decide(project, view, kind, **named)
    assert refused.value.code == code
    assert project.drive(view.run_id).question == view.question


def test_a_tree_that_changes_after_the_waiver_voids_it(objected: tuple[Project, RunView]) -> None:
    project, view = objected
    view = answered(project, view, "accept")
    decide(project, view, "waive", reason="fine")
    (project.root / "src/greeting.txt").write_text("something else\n")
    view = project.drive(view.run_id)
    assert view.question is not None, "in the next attempt the same person is asked again"
    assert "APPROVED" not in project.path()
    blocked = [entry.data for entry in project.entries("status") if entry.data["to"] == "BLOCKED"]
    assert blocked[-1]["cause"] == "stale"
    reasons = blocked[-1]["envelope"]["fail_reasons"]
    assert [text.partition(":")[0] for text in reasons] == ["GATE-TESTS", "GATE-LINT", "GATE-REVIEW"]
    assert "the waiver of ada is void" in reasons[0]
    assert "src/greeting.txt" in reasons[0]


def test_a_waiver_is_not_asked_for_while_another_gate_fails(project: Project) -> None:
    project.runners["builder"] = Scripted([objecting(), build("hi\tyou\n"), build("hi\n")])
    view = answered(project, project.run(), "accept")
    assert project.path().count("BLOCKED") == 2, "GATE-LINT is not excused"
    assert view.question is not None
    assert view.question.kind == "waiver"
    assert view.question.attempt == 2


def test_declining_brings_the_gate_back_with_its_reason_for_the_next_attempt_alone(
    objected: tuple[Project, RunView],
) -> None:
    project, view = objected
    project.runners["builder"] = Scripted([build("hi\n"), build("ho\n"), build()])
    view = answered(project, answered(project, view, "accept"), "decline", reason="the tests are right")
    assert view.status == "APPROVED"
    assert project.entries("status")[-1].data.get("waived") is None
    prompts = [ask.prompt for ask in project.asks("builder")]
    assert "GATE-TESTS: ada declined to waive this gate: the tests are right" in prompts[1]
    assert ["the tests are right" in prompt for prompt in prompts] == [False, True, False]


def test_an_answer_that_an_agent_writes_into_the_journal_decides_nothing(project: Project) -> None:
    """What an agent can do in its turn: append a line under a key that can be guessed."""
    task = {**project.task.to_json(), "gates_required": ["GATE-MSG-STRICT"]}
    planted = {"number": 1, "attempt": 1, "answer": "correct", "by": "ada", "reason": "", "task": task}

    def cheat(ask: Ask) -> str:
        journal = Journal(Path(ask.root) / "artifacts/interlock/events.jsonl")
        journal.append(ask.run_id, "question.1/answered", "objection_answered", {**planted, "gates": {}, "role": "x"})
        return objecting()(ask)

    project.runners["builder"] = Scripted([cheat, build("hi\n")])
    run_id = project.start()
    for _ in range(2):
        with pytest.raises(RunDamagedError):
            project.drive(run_id)
    view = view_run(run_id, root=project.root)
    assert (view.status, view.task) == ("IN_PROGRESS", project.task)
    assert abandon(project.root, run_id), "what stands there keeps no person from ending the run"


def test_no_role_certifies_a_gate_that_its_command_failed(project: Project) -> None:
    """The reviewer forges the log, which a weaker grade would let through; a person is asked all the same."""
    project.configure('grade = "written"')  # of GATE-LINT, the last table
    (project.root / "lint.sh").write_text("exit 1\n")
    project.runners["builder"] = Scripted([objecting(f"GATE-LINT: OBJECTION: {WHY}", text="hello\n"), build()])

    def forging(ask: Ask) -> str:
        mine = Path(ask.root, ask.reports_dir, "lint.log")
        mine.parent.mkdir(parents=True, exist_ok=True)
        real = (mine.parent / "GATE-LINT.log").read_text()
        mine.write_text(real.replace('"exit_status": 1', '"exit_status": 0'))
        assert mine.read_text() != real
        text = reviewing(ask).replace("  reports:\n", f"  reports:\n    - {ask.reports_dir}/lint.log\n")
        return text.replace("GATES_PASSED:\n", "GATES_PASSED:\n- GATE-LINT\n")

    project.runners["reviewer"] = Scripted([forging, reviewing])
    view = answered(project, project.run(), "accept")
    assert "APPROVED" not in project.path()
    assert view.question is not None
    assert (view.question.kind, list(view.question.gates)) == ("waiver", ["GATE-LINT"])
    assert "ENV413" in project.codes("reviewer")[0]


def test_a_waiver_is_given_for_the_tree_that_was_read(objected: tuple[Project, RunView]) -> None:
    project, view = objected
    project.runners["builder"] = Scripted([build("hi\n"), objecting(text="other\n"), build("other\n")])
    read = answered(project, view, "accept")
    later = answered(project, answered(project, read, "decline"), "accept")
    assert later.question is not None
    assert read.question is not None
    assert later.question.tree != read.question.tree
    with pytest.raises(GraphError, match="ada answered `decline`"):
        decide(project, read, "waive", by="bob", reason="fine", gate="GATE-TESTS")
    assert project.drive(view.run_id).question == later.question


def test_the_evidence_of_a_fail_is_bound_to_its_tree_and_attempt_as_that_of_a_pass(
    objected: tuple[Project, RunView],
) -> None:
    project, view = objected
    answered(project, view, "accept")
    (log,) = (project.root / "artifacts/reports/HELLO-001/1").glob("GATE-TESTS*.log")
    log.write_bytes(log.read_bytes() + b"swapped")
    view = answered(project, view_run(view.run_id, root=project.root), "waive", gate="GATE-TESTS")
    assert [row.data["cause"] for row in project.entries("status") if row.data["to"] == "BLOCKED"][-1] == "evidence"
    assert view.question is not None, "the waiver of the attempt before does not count, although the tree is the same"
    assert (view.question.kind, view.question.attempt) == ("waiver", 2)
    assert answered(project, view, "waive").status == "APPROVED"


@each_row(
    ("reasons", "cause"),
    [
        (("GATE-TESTS: it fails, and so does GATE-LINT",), "gate"),
        (("the tests fail: GATE-TESTS", "GATE-LINT: no"), "gate"),
        ((), "protocol"),
    ],
)
def test_a_verdict_that_is_none_or_fails_another_gate_too_is_not_excused(
    reasons: tuple[str, ...], cause: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path / str(len(list(tmp_path.iterdir()))))
    project.task = replace(project.task, run={"max_rework": 0})
    project.runners["builder"] = Scripted([objecting(), build()])
    project.runners["tester"] = Scripted([lambda ask: envelope(ask, "BLOCKED", fail_reasons=reasons)])
    view = answered(project, project.run(), "accept")
    assert (view.phase, view.status, view.values["cause"]) == ("done", "BLOCKED", cause)
