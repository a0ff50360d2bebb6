"""What agents spend is counted once and for all, and who has nothing left is not asked."""

from dataclasses import replace
from typing import Any

import pytest

from interlock.agents import Answer, Ask, RunnerError
from interlock.agents.usage import Limits, Usage
from interlock.gates.config import load_config
from interlock.graph import TaskError
from interlock.graph.task.policy import make_policy
from interlock.graph.task.runs import view_run
from interlock.graph.task.task import task_from_mapping
from interlock.graph.verify import verify_journal
from tests.graph.conftest import GATES, Project, build

FEE = Usage(calls=2, input_tokens=1000, output_tokens=50, seconds=1.5, usd=0.25)


def paid(answer: Any, usage: Usage = FEE) -> Any:
    """Make an agent say what its answer cost."""

    def answering(ask: Ask) -> Answer:
        return Answer(answer(ask), usage, "model-x", 3)

    return answering


def never(ask: Ask) -> str:
    pytest.fail(f"{ask.role} was asked")


def with_budget(project: Project, **limits: float) -> None:
    rows = "".join(f"{name} = {value}\n" for name, value in limits.items())
    project.configure(f"[budget]\n{rows}")


def test_what_an_answer_cost_is_in_the_journal_and_adds_up_by_role(project: Project) -> None:
    project.use("builder", paid(build()))
    view = project.run()
    assert view.status == "APPROVED"
    answers = {entry.data["role"]: entry.data for entry in project.entries("answer")}
    assert answers["builder"]["usage"] == FEE.to_json()
    assert (answers["builder"]["model"], answers["builder"]["tool_calls"]) == ("model-x", 3)
    assert "usage" not in answers["tester"]
    assert view.values["spent"]["builder"] == FEE.to_json()
    assert view.values["spent"]["tester"]["calls"] == 1


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"calls": 3}, "3 of 3 calls are spent"),
        ({"tokens": 1050}, "1050 of 1050 tokens are spent"),
        ({"seconds": 1.5}, "1.5 of 1.5 seconds are spent"),
        ({"usd": 0.2}, "0.25 of 0.2 usd are spent"),
    ],
)
def test_who_has_nothing_left_is_not_asked_and_the_task_is_blocked_with_the_figure(
    project: Project, limits: dict[str, float], words: str
) -> None:
    with_budget(project, **limits)
    project.use("builder", paid(build(), replace(FEE, calls=3)))
    project.use("tester", never)
    view = project.run()
    assert view.status == "BLOCKED"
    assert view.values["cause"] == "budget"
    assert view.values["attempt"] == 1
    (reason,) = view.values["fail_reasons"]
    assert reason == f"GATE-TESTS: tester was not asked: the budget of the task is used up: {words}"


def test_without_a_budget_there_are_two_hours_and_200_calls_and_0_is_no_limit(project: Project) -> None:
    def limits() -> Limits:
        return make_policy(project.task, load_config(project.root), project.root).limits

    assert limits() == Limits(calls=200, seconds=7200)
    with_budget(project, calls=0, usd=1.5)
    assert limits() == Limits(seconds=7200, usd=1.5)
    project.task = replace(project.task, budget={"calls": 5, "seconds": 0})
    assert limits() == Limits(calls=5, usd=1.5)


def test_the_budget_of_a_role_is_its_own(project: Project) -> None:
    project.configure("[agents.builder]\nrunner = 'remote'\n[agents.builder.budget]\ncalls = 2\n")
    texts = ["hello", "world"]

    def next_one(ask: Ask) -> str:
        return build(f"{texts.pop(0)}\n")(ask)

    project.use("builder", paid(next_one))
    (project.root / "check.sh").write_text("grep -qx world src/greeting.txt\n")
    view = project.run()
    assert view.status == "BLOCKED"
    assert view.values["fail_reasons"] == [
        "GATE-MSG-STRICT: builder was not asked: the budget of builder is used up: 2 of 2 calls are spent"
    ]
    assert texts == ["world"]


def test_an_answer_that_was_stored_is_not_paid_again_and_counts_once(project: Project) -> None:
    asked: list[str] = []

    def once(ask: Ask) -> Answer:
        asked.append(ask.ask_id)
        return Answer(build()(ask), FEE)

    def gone(_ask: Ask) -> str:
        raise RunnerError("the tester is gone", "Come back.")

    project.use("builder", once)
    tester = project.runners["tester"]
    project.use("tester", gone)
    run_id = project.start()
    with pytest.raises(RunnerError):
        project.drive(run_id)
    assert view_run(run_id, root=project.root).phase == "running"
    project.use("tester", tester)
    view = project.drive(run_id)
    assert view.status == "APPROVED"
    assert len(asked) == 1
    assert view.values["spent"]["builder"] == FEE.to_json()


@pytest.mark.parametrize(
    "budget", [{"calls": -1}, {"tokens": 1.5}, {"usd": "much"}, {"money": 1}, {"seconds": float("inf")}]
)
def test_a_budget_of_a_task_file_that_cannot_be_used_is_refused(project: Project, budget: dict[str, Any]) -> None:
    with pytest.raises(TaskError) as caught:
        task_from_mapping(
            {"task_id": "A-1", "task": "x", "gates_required": list(GATES), "scope": ["src/**"], "budget": budget}
        )
    assert next(iter(budget)) in str(caught.value.problems)


def test_what_was_spent_before_a_runner_failed_is_written_down_and_counts(project: Project) -> None:
    project.configure("[agents.builder]\nrunner = 'remote'\n[agents.builder.budget]\ncalls = 5\n")
    left: list[int | None] = []

    def failing(ask: Ask) -> Answer:
        left.append(ask.limits.calls)
        if len(left) < 3:
            raise RunnerError("gone", "Come back.", FEE)
        return Answer(build()(ask), FEE)

    project.use("builder", failing)
    run_id = project.start()
    for number in (1, 2):
        with pytest.raises(RunnerError):
            project.drive(run_id)
        lines = project.entries("runner_failed")
        assert [line.data["usage"] for line in lines] == [FEE.to_json()] * number
    view = project.drive(run_id)
    assert left == [5, 3, 1]
    assert view.status == "APPROVED"
    assert view.values["spent"]["builder"] == (FEE + FEE + FEE).to_json()
    assert verify_journal(project.root).problems == ()


def test_a_budget_that_failures_used_up_ends_the_run(project: Project) -> None:
    project.configure("[agents.builder]\nrunner = 'remote'\n[agents.builder.budget]\ncalls = 2\n")

    def failing(_ask: Ask) -> str:
        raise RunnerError("gone", "Come back.", FEE)

    project.use("builder", failing)
    run_id = project.start()
    with pytest.raises(RunnerError):
        project.drive(run_id)
    view = project.drive(run_id)
    assert (view.status, view.values["cause"]) == ("BLOCKED", "budget")
    assert view.values["spent"]["builder"] == FEE.to_json()
