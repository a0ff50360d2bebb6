"""What a task that came in through a tool may not say: who acts in a role, and which page is looked at."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.graph.background import Drives
from interlock.graph.errors import TaskError
from interlock.server.task_calls import TaskCallError, TaskCalls
from tests.clients.scripted import CONFIG, GATES, TASK, make_project

JUDGE = '[agents.reviewer]\nrunner = "python:reviewers:judge"\n'


def calls(tmp_path: Path, config: str = "") -> TaskCalls:
    root = make_project(tmp_path / "project", CONFIG + config)
    (root / "reviewers.py").write_text("def judge(ask):\n    return ''\n")
    return TaskCalls(root, Drives(root))


@pytest.mark.parametrize("settings", [{}, {"runner": "remote"}])
def test_a_role_that_the_configuration_settled_is_not_given_away_by_an_object(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(TaskCallError) as refused:
        calls(tmp_path, JUDGE).begin({**TASK, "agents": {"reviewer": settings}}, None)
    assert refused.value.code == "MCP403"


def test_a_role_that_the_configuration_settled_is_not_given_away_by_the_file_of_a_known_caller(tmp_path: Path) -> None:
    made = calls(tmp_path, JUDGE)
    (made.root / "task.toml").write_text(
        f'task_id = "HELLO-001"\ntask = "Greet"\ngates_required = {json.dumps(list(GATES))}\nscope = ["src/**"]\n'
        '[agents.reviewer]\nrunner = "remote"\n'
    )
    with pytest.raises(TaskCallError) as refused:
        made.begin("task.toml", None, caller="reviewer")
    assert refused.value.code == "MCP403"
    assert made.begin("task.toml", None)["waiting"] == ["builder"], "on stdio a task file is trusted"


def test_a_task_may_repeat_what_the_configuration_says(tmp_path: Path) -> None:
    made = calls(tmp_path, '[agents.reviewer]\nrunner = "remote"\n')
    assert made.begin({**TASK, "agents": {"reviewer": {"runner": "remote"}}}, None)["waiting"] == ["builder"]


@pytest.mark.parametrize(
    "page", ["http://[", "\thttp://127.0.0.1:1/", "hTTps:\n//127.0.0.1:1/", " http://127.0.0.1:1/"]
)
def test_a_known_caller_names_no_page_that_is_an_address(tmp_path: Path, page: str) -> None:
    with pytest.raises(TaskCallError) as refused:
        calls(tmp_path).collect(page, "ADHOC-1", ["console"], None, caller="builder")
    assert refused.value.code == "MCP407"


def test_a_known_caller_names_a_page_that_is_still_to_be_made(tmp_path: Path) -> None:
    made = calls(tmp_path)
    assert made.begin({**TASK, "page": "src/index.html"}, None, caller="builder")["waiting"] == ["builder"]


def test_a_task_file_behind_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    made = calls(tmp_path)
    (made.root / "task.toml").symlink_to("task.toml")
    with pytest.raises(TaskError):
        made.begin("task.toml", None)
