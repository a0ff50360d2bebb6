"""Who is needed and run by nobody, and the models that a person gives them for one run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError
from interlock.gates.config import Config, load_config
from interlock.graph.task.policy import make_policy
from interlock.graph.task.roster import staffed, vacant_roles
from interlock.graph.task.task import Task, task_from_mapping

ALL = ["GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW"]
X = {"runner": "chat", "model": "anthropic:x"}
REMOTE = {"runner": "remote"}


def a_task(root: Path, gates: list[str] = ALL, **agents: dict[str, Any]) -> Task:
    named = {name.replace("_", "-"): table for name, table in agents.items()}
    data = {"task_id": "A-1", "task": "x", "gates_required": gates, "scope": ["s"], "agents": named}
    return task_from_mapping(data, base=str(root / "tasks"))


FOUR = ("frontend-implementer", "visual-qa", "a11y-auditor", "code-reviewer")


def a_config(root: Path, text: str = "") -> Config:
    (root / "interlock.toml").write_text(text)
    return load_config(root)


def test_a_task_without_agents_needs_who_hands_over_and_who_certifies_its_gates(tmp_path: Path) -> None:
    config = a_config(tmp_path)
    assert vacant_roles(a_task(tmp_path), config) == FOUR
    assert vacant_roles(a_task(tmp_path, ["GATE-MSG-STRICT", "GATE-CODE-REVIEW"]), config) == (FOUR[0], FOUR[-1])


def test_a_plain_model_goes_to_whoever_has_no_runner_and_to_nobody_else(tmp_path: Path) -> None:
    config = a_config(tmp_path, '[agents.visual-qa]\nrunner = "remote"\n[agents.a11y-auditor.budget]\ncalls = 2')
    agents = staffed(a_task(tmp_path, code_reviewer=REMOTE), config, tmp_path, ["anthropic:x"]).agents
    assert agents == {"code-reviewer": REMOTE, "frontend-implementer": X, "a11y-auditor": {"budget": {"calls": 2}, **X}}


def test_a_role_that_is_named_keeps_prompt_and_budget_and_loses_the_rest_of_its_runner(tmp_path: Path) -> None:
    config = a_config(
        tmp_path,
        '[agents.visual-qa]\nrunner = "command"\npreset = "claude"\nprompt = "p/v.md"\nbudget = { calls = 2 }\n',
    )
    own = {"runner": "replay", "script": "x.toml", "prompt": "c.md"}
    task = a_task(tmp_path, code_reviewer=own)
    agents = staffed(task, config, tmp_path, ["visual-qa=anthropic:x", "code-reviewer=anthropic:x"]).agents
    assert agents["visual-qa"] == {"prompt": str(tmp_path / "p/v.md"), "budget": {"calls": 2}, **X}
    assert agents["code-reviewer"] == {"prompt": "c.md", **X}, "a path of the task file is found from the task file"


@pytest.mark.parametrize(
    ("models", "key", "fix"),
    [
        (["visual-q=command:codex"], "visual-q=command:codex", "`visual-qa`"),
        (["orchestrator=command:codex"], "orchestrator=command:codex", "code-reviewer"),
        (["=command:codex"], "=command:codex", "ROLE=SPEC"),
        (["visual-qa="], "(empty)", "PROVIDER:MODEL"),
        (["visual-qa=command:codex", "visual-qa=command:codex"], "visual-qa=command:codex", "ROLE=SPEC"),
        (["command:codex", "anthropic:x"], "anthropic:x", "ROLE=SPEC"),
        (["command:codex", "claude"], "claude", "`command:claude`"),
    ],
)
def test_a_model_that_nobody_can_be_given_is_refused(tmp_path: Path, models: list[str], key: str, fix: str) -> None:
    with pytest.raises(AgentConfigError) as caught:
        staffed(a_task(tmp_path), a_config(tmp_path), tmp_path, models)
    assert (caught.value.path, caught.value.key) == ("--model", key)
    assert fix in caught.value.fix


def test_a_plain_model_that_finds_no_role_to_take_is_refused_and_not_ignored(tmp_path: Path) -> None:
    roles = dict.fromkeys(("frontend_implementer", "visual_qa", "a11y_auditor", "code_reviewer"), REMOTE)
    with pytest.raises(AgentConfigError) as caught:
        staffed(a_task(tmp_path, **roles), a_config(tmp_path), tmp_path, ["command:codex"])
    assert "=command:codex" in caught.value.fix


COMMAND = """[gates.GATE-TESTS]
command = ["pytest", "-q"]
"""
PLAIN = ["GATE-MSG-STRICT", "GATE-TESTS"]


def test_a_task_that_a_command_decides_needs_the_build_role_alone(tmp_path: Path) -> None:
    config = a_config(tmp_path, COMMAND)
    assert vacant_roles(a_task(tmp_path, PLAIN), config) == ("frontend-implementer",)
    task = staffed(a_task(tmp_path, PLAIN), config, tmp_path, ["command:claude"])
    assert set(make_policy(task, config, tmp_path).protocol.roles) == {"orchestrator", "frontend-implementer"}
    certified = a_config(tmp_path, COMMAND + '[roles.tester]\nkind = "qa"\ncertifies = "GATE-TESTS"\n')
    assert vacant_roles(a_task(tmp_path, PLAIN), certified) == ("frontend-implementer", "tester")


def test_the_only_build_role_of_a_task_hands_over_whatever_it_is_called(tmp_path: Path) -> None:
    config = a_config(tmp_path, COMMAND + '[roles.builder]\nkind = "build"\n')
    assert vacant_roles(a_task(tmp_path, PLAIN), config) == ("builder",), "also where it has no table yet"
    page = replace(a_task(tmp_path, PLAIN), page="index.html")
    assert vacant_roles(page, config) == ("frontend-implementer",), "a page has the shipped role"
    task = a_task(tmp_path, PLAIN, builder=REMOTE)
    assert vacant_roles(task, config) == ()
    roster = make_policy(task, config, tmp_path).protocol.roles
    assert [(role.name, role.hands_over) for role in roster.values()][1:] == [("builder", True)]
    both = a_task(tmp_path, PLAIN, builder=REMOTE, web_design_lead=REMOTE)
    handing = [role.name for role in make_policy(both, config, tmp_path).protocol.roles.values() if role.hands_over]
    assert handing == ["builder"], "a shipped design role does not take its place"


def test_judges_of_the_projects_pages_take_no_part_in_a_task_that_a_command_decides(tmp_path: Path) -> None:
    pages = '[agents.visual-qa]\nrunner = "remote"\n[agents.code-reviewer]\nrunner = "remote"\n'
    config = a_config(tmp_path, COMMAND + pages)
    task = a_task(tmp_path, [*PLAIN, "GATE-CODE-REVIEW"], frontend_implementer=REMOTE)
    assert list(make_policy(task, config, tmp_path).protocol.roles)[1:] == ["frontend-implementer", "code-reviewer"]
    named = a_task(tmp_path, PLAIN, frontend_implementer=REMOTE, visual_qa=REMOTE)
    assert "visual-qa" in make_policy(named, config, tmp_path).protocol.roles, "the task file itself names it"
