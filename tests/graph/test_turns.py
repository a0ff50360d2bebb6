"""What a run hands into a turn, what a turn that was cut off means, and a hand-over of an agent that did nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Answer, Ask
from interlock.agents.usage import Limits, Usage
from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError
from interlock.graph import TaskError
from interlock.graph.task.task import task_from_mapping
from tests.graph.conftest import GATES, Project, build, envelope

FEE = Usage(calls=1, input_tokens=10, output_tokens=5, seconds=0.5, usd=0.01)


def claiming(calls: list[int | None]) -> Any:
    """Return a builder that hands over without a change, each time with the next number of tool calls."""
    left = list(calls)

    def answer(ask: Ask) -> Answer:
        return Answer(envelope(ask, "READY_FOR_QA"), FEE, "model-x", left.pop(0) if len(left) > 1 else left[0])

    return answer


def test_an_ask_says_what_its_runner_has_to_know(project: Project) -> None:
    project.configure('[commands]\ntest = ["sh", "check.sh"]\n[budget]\ncalls = 9\n')
    asks: list[Ask] = []

    def builder(ask: Ask) -> Answer:
        asks.append(ask)
        ask.notice({"kind": "working", "role": ask.role, "tool": "", "calls": 1, "tokens": 3})
        return Answer(build()(ask), FEE, "model-x", 1)

    project.use("builder", builder)
    assert project.run().status == "APPROVED"
    (ask,) = asks
    assert (ask.task, ask.required, ask.status) == (project.task.task, GATES, "IN_PROGRESS")
    gates = {"GATE-TESTS": ("sh", "check.sh"), "GATE-LINT": ("sh", "lint.sh")}
    assert ask.commands == {"test": ("sh", "check.sh"), **gates}
    assert ask.limits == Limits(calls=9, seconds=7200)
    assert ask.protocol is not None
    assert "builder" in ask.protocol.roles
    assert ask.in_scope("src/new.txt")
    assert not ask.in_scope("interlock.toml")
    assert not ask.in_scope(".git/config")


def test_a_task_file_replaces_a_command_of_the_project_and_adds_its_own(project: Project) -> None:
    project.configure('[commands]\ntest = ["old"]\nlint = ["ruff"]')
    project.task = task_from_mapping(
        {
            "task_id": "A-1",
            "task": "Write the greeting",
            "gates_required": list(GATES),
            "scope": ["src/**"],
            "commands": {"test": ["new", "now"]},
        }
    )
    project.run()
    own = {name: argv for name, argv in project.asks("builder")[0].commands.items() if not name.startswith("GATE-")}
    assert own == {"test": ("new", "now"), "lint": ("ruff",)}


@pytest.mark.parametrize("commands", [{"a": []}, {"a": "x"}, {"a": [""]}])
def test_a_command_that_cannot_be_run_is_refused_in_both_files(tmp_path: Path, commands: dict[str, Any]) -> None:
    with pytest.raises(TaskError):
        task_from_mapping(
            {"task_id": "A-1", "task": "x", "gates_required": list(GATES), "scope": ["s"], "commands": commands}
        )
    ((name, argv),) = commands.items()
    value = repr(argv).replace("'", '"')
    (tmp_path / "interlock.toml").write_text(f'[commands]\n"{name}" = {value}\n')
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    assert {problem.code for problem in caught.value.problems} == {"CFG104"}


@pytest.mark.parametrize(
    ("config", "calls", "codes"),
    [("", [0], [("RUN610",)] * 3), ('[run]\nunchanged = "warn"\nmax_rework = 0', [0], [()])],
    ids=["idle", "an unchanged tree is allowed"],
)
def test_a_hand_over_of_an_agent_that_did_nothing_is_refused(
    project: Project, config: str, calls: list[int | None], codes: Sequence[Sequence[str]]
) -> None:
    project.configure(config)
    project.use("builder", claiming(calls))
    assert project.run().status == "BLOCKED"
    assert [tuple(row) for row in project.codes("builder")] == codes


def test_a_turn_that_a_limit_ended_is_blocked_with_the_figure_and_paid(project: Project) -> None:
    def cut_off(_ask: Ask) -> Answer:
        return Answer("", FEE, "model-x", 4, stopped="15 of 12 tokens are spent")

    project.use("builder", cut_off)
    view = project.run()
    assert (view.status, view.values["cause"]) == ("BLOCKED", "budget")
    assert view.values["fail_reasons"] == [
        "GATE-MSG-STRICT: builder had no answer when what was left of its budget was used up: 15 of 12 tokens are spent"
    ]
    assert view.values["spent"]["builder"] == FEE.to_json()
    (row,) = project.entries("answer")
    assert (row.data["outcome"], row.data["usage"]) == ("spent", FEE.to_json())
