"""What a task that came in through a tool may not say: who acts in a role, and which page is looked at."""

from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Drives, Tickets, UnknownRunError
from interlock.server.mcp.tasks import TaskCalls
from interlock.server.rules import CallError
from tests.clients.scripted import TASK, make_project
from tests.refusals import raises_code, raises_with


def calls(tmp_path: Path) -> TaskCalls:
    root = make_project(tmp_path / "project")
    return TaskCalls(root, Drives(root))


@pytest.mark.parametrize("page", ["http://[", "\thttp://127.0.0.1:1/", "ht\ttp:/\t/127.0.0.1:1/"])
def test_a_known_caller_names_no_page_that_is_an_address(tmp_path: Path, page: str) -> None:
    with raises_code(CallError, "MCP408"):
        calls(tmp_path).collect(page, ["console"], caller="builder")


def test_a_known_caller_names_a_page_that_is_still_to_be_made(tmp_path: Path) -> None:
    made = calls(tmp_path)
    assert made.begin({**TASK, "page": "src/index.html"}, None, caller="builder")["waiting"] == ["builder"]


def test_a_caller_that_is_no_role_is_referred_to_the_token_of_one(tmp_path: Path) -> None:
    tools = calls(tmp_path)
    run_id = tools.begin(TASK, None)["run_id"]
    for caller in ("stranger", "tester"):
        with raises_with(CallError, "interlock token create ROLE", code="MCP401"):
            tools.submit(run_id, "builder", "x", None, caller=caller)
    with raises_with(CallError, "builder", code="MCP402"):
        tools.next(run_id, None, 0, caller="stranger")


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
