"""What a task that came in through a tool may not say: who acts in a role, and which page is looked at."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Drives, TaskError, Tickets, UnknownRunError
from interlock.server.mcp.tasks import TaskCalls
from interlock.server.rules import CallError
from tests.clients.scripted import CONFIG, GATES, TASK, make_project
from tests.refusals import raises_code

JUDGE = '[agents.reviewer]\nrunner = "python:reviewers:judge"\n'


def calls(tmp_path: Path, config: str = "") -> TaskCalls:
    root = make_project(tmp_path / "project", CONFIG + config)
    (root / "reviewers.py").write_text("def judge(ask):\n    return ''\n")
    return TaskCalls(root, Drives(root))


@pytest.mark.parametrize("settings", [{}, {"runner": "remote"}])
def test_a_role_that_is_configured_is_not_given_away_by_an_object(tmp_path: Path, settings: dict[str, Any]) -> None:
    with raises_code(CallError, "MCP403"):
        calls(tmp_path, JUDGE).begin({**TASK, "agents": {"reviewer": settings}}, None)


def test_a_role_that_the_configuration_settled_is_not_given_away_by_the_file_of_a_known_caller(tmp_path: Path) -> None:
    made = calls(tmp_path, JUDGE)
    (made.root / "task.toml").write_text(
        f'task_id = "HELLO-001"\ntask = "Greet"\ngates_required = {json.dumps(list(GATES))}\nscope = ["src/**"]\n'
        '[agents.reviewer]\nrunner = "remote"\n'
    )
    with raises_code(CallError, "MCP403"):
        made.begin("task.toml", None, caller="reviewer")
    assert made.begin("task.toml", None)["waiting"] == ["builder"], "on stdio a task file is trusted"


def test_a_task_may_repeat_what_the_configuration_says(tmp_path: Path) -> None:
    made = calls(tmp_path, '[agents.reviewer]\nrunner = "remote"\n')
    assert made.begin({**TASK, "agents": {"reviewer": {"runner": "remote"}}}, None)["waiting"] == ["builder"]


@pytest.mark.parametrize(
    "page", ["http://[", "\thttp://127.0.0.1:1/", "hTTps:\n//127.0.0.1:1/", "ht\ttp:/\t/127.0.0.1:1/"]
)
def test_a_known_caller_names_no_page_that_is_an_address(tmp_path: Path, page: str) -> None:
    with raises_code(CallError, "MCP407"):
        calls(tmp_path).collect(page, "ADHOC-1", ["console"], None, caller="builder")


def test_a_known_caller_names_a_page_that_is_still_to_be_made(tmp_path: Path) -> None:
    made = calls(tmp_path)
    assert made.begin({**TASK, "page": "src/index.html"}, None, caller="builder")["waiting"] == ["builder"]


def test_a_task_file_behind_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    made = calls(tmp_path)
    (made.root / "task.toml").symlink_to("task.toml")
    with pytest.raises(TaskError):
        made.begin("task.toml", None)


def test_a_caller_that_is_no_role_is_referred_to_the_token_of_one(tmp_path: Path) -> None:
    tools = calls(tmp_path)
    run_id = tools.begin(TASK, None)["run_id"]
    refusals: list[tuple[str, str]] = []
    for caller in ("stranger", "tester"):
        with pytest.raises(CallError) as refused:
            tools.submit(run_id, "builder", "x", None, caller=caller)
        refusals.append((refused.value.code, refused.value.fix))
    with pytest.raises(CallError) as refused:
        tools.next(run_id, None, 0, caller="stranger")
    refusals.append((refused.value.code, refused.value.fix))
    (one, first), (two, second), (three, third) = refusals
    assert (one, two, three) == ("MCP401", "MCP401", "MCP402")
    assert "`interlock token create builder`" in first
    assert "Name the role tester" in second
    assert "`interlock token create ROLE`" in third
    assert "Name the role" not in first + third
    assert "orchestrator" not in third


@pytest.mark.parametrize("tool", ["status", "next", "submit"])
def test_a_ticket_run_is_distinguished_from_one_that_does_not_exist(tmp_path: Path, tool: str) -> None:
    tools = calls(tmp_path)
    Tickets(tools.root).begin("A-1", "ticket-run")
    arguments: dict[str, tuple[Any, ...]] = {"status": (), "next": (None, 0), "submit": ("builder", "x", None)}
    fixes: dict[str, str] = {}
    for name in ("ticket-run", "none"):
        with pytest.raises(UnknownRunError) as refused:
            getattr(tools, tool)(name, *arguments[tool])
        fixes[name] = refused.value.fix
    assert "interlock explain ticket-run" in fixes["ticket-run"]
    assert "explain" not in fixes["none"]


def test_an_answer_with_a_key_is_kept_without_and_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-0123456789")
    tools = calls(tmp_path)
    run_id = tools.begin(TASK, None)["run_id"]
    (ask,) = tools.next(run_id, None, 0)["asks"]
    first, again = (tools.submit(run_id, ask["role"], "nonsense tok-0123456789", ask["ask_id"]) for _ in range(2))
    assert (first["outcome"], first["repeated"], again["repeated"]) == ("invalid", False, True)
    assert {**again, "repeated": False} == first
    kept = [path for path in tools.root.rglob("*") if path.is_file() and b"tok-0123456789" in path.read_bytes()]
    assert kept == []
