"""What runners report while they work reaches whoever drives the run at once, also from agents side by side."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

from interlock.agents import Ask
from interlock.graph.task.runs import drive, start_run
from tests.graph.conftest import CONFIG, Answer, Project, envelope, judge_log

TWO_QA = CONFIG.replace('title = "no tabs"', 'title = "no tabs"\ncertifier = "linter"').replace(
    "[gates.GATE-TESTS]", '[roles.linter]\nkind = "qa"\ncertifies = "GATE-LINT"\n[gates.GATE-TESTS]'
)
WAIT_SECONDS = 20


def passing(gate: str) -> Answer:
    def answer(ask: Ask) -> str:
        evidence = {"screenshots": (), "a11y": (), "console": (), "reports": ask.evidence["reports"]}
        return envelope(ask, "QA_IN_PROGRESS", gates_passed=("GATE-MSG-STRICT", gate), evidence=evidence)

    return answer


def test_two_agents_side_by_side_are_seen_at_work_before_either_has_answered(project: Project) -> None:
    (project.root / "interlock.toml").write_text(TWO_QA)
    seen = {"tester": Event(), "linter": Event()}
    steps: list[tuple[str, str]] = []

    def at_work(answer: Answer) -> Any:
        """Report that the work began, and end it only when both were seen at it."""

        def runner(ask: Ask) -> str:
            step = {"kind": "working", "role": ask.role, "tool": "read_file a", "calls": 1, "tokens": 7}
            thread = Thread(target=ask.notice, args=(step,))  # a model's client may report from a thread of its own
            thread.start()
            thread.join()
            assert all(event.wait(WAIT_SECONDS) for event in seen.values()), "a notice came only after the work"
            return answer(ask)

        return runner

    def notice(step: Mapping[str, Any]) -> None:
        steps.append((step["kind"], step.get("role", "")))
        if step["kind"] == "working":
            seen[step["role"]].set()

    runners = cast("dict[str, Any]", project.runners)
    runners["tester"], runners["linter"] = at_work(judge_log), at_work(passing("GATE-LINT"))
    run_id = start_run(project.root, project.task, roles=tuple(runners))
    view = drive(run_id, root=Path(project.root), runners=runners, notice=notice)
    assert view.status == "APPROVED"
    both = {("working", "tester"), ("working", "linter")}
    first_answer = min(steps.index(("answered", name)) for name in seen)
    assert both <= set(steps[:first_answer])


def test_what_a_role_spent_is_reported_with_its_answer(project: Project) -> None:
    steps: list[Mapping[str, Any]] = []
    run_id = project.start()
    drive(run_id, root=project.root, runners=project.runners, notice=steps.append)
    answers = [step for step in steps if step["kind"] == "answered"]
    assert [step["role"] for step in answers] == ["builder", "tester", "reviewer"]
    for step in answers:
        assert step["seconds"] >= 0
        assert (step["usage"], step["model"]) == (None, ""), "a bare text reports nothing but how long it took"
