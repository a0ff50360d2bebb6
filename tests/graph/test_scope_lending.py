"""A scope as patterns of leases, and who of the agents outside of a run is given the files to hold."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.agents import Ask
from interlock.core import patterns
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope
from interlock.graph.errors import GraphError
from interlock.graph.task.background import Drives
from interlock.graph.task.runs import RunView, drive, keep_files, start_run, view_run
from interlock.graph.task.scope_leases import lease_patterns
from interlock.graph.task.task import Task
from interlock.reservations import open_reservations, replace
from interlock.server import make_server
from tests.graph.conftest import Project, Scripted, asks_of, build, judge_log, reviewing
from tests.graph.test_scope_leases import held, other
from tests.reservations.world import codes
from tests.table import each_row


def waiting_run(project: Project) -> str:
    """Start a run whose roles all answer from outside, and take it to the builder's ask."""
    agents = {name: {"runner": "remote"} for name in ("builder", "tester", "reviewer")}
    task = Task.from_json(project.task.to_json() | {"agents": agents})
    run_id = start_run(project.root, task)
    assert drive(run_id, root=project.root).phase == "waiting"
    return run_id


def answer(project: Project, view: RunView) -> str:
    (ask,) = asks_of(view, project.root).values()
    return {"builder": build(), "tester": judge_log, "reviewer": reviewing}[ask.role](ask)


def server_of(project: Project) -> Callable[..., Any]:
    """Return what calls a task tool of a server, in the name of a caller."""
    who = [""]
    server = make_server(project.root, toolsets=["tasks"], caller=lambda: who[0])

    def call(tool: str, caller: str = "", **arguments: Any) -> Any:
        who[0] = caller
        return cast("Any", asyncio.run(server.call_tool(f"task_{tool}", arguments))).structured_content

    return call


def test_who_is_given_the_ask_holds_the_files_until_it_answers(project: Project) -> None:
    """Its hooks know it by its own name, and must not refuse it the files of its own task."""
    run_id = waiting_run(project)
    call = server_of(project)
    assert [ask["role"] for ask in call("next", "builder", run_id=run_id, wait_seconds=0)["asks"]] == ["builder"]
    assert held(project) == {"src/**": "builder"}
    tokens = {row.token for row in _leases(project)}
    assert other(project, "builder").reserve_files(["src/greeting.txt"])["errors"] == []
    assert codes(other(project).reserve_files(["src/greeting.txt"])) == ["RSV201"]
    call("next", "tester", run_id=run_id, role="tester", wait_seconds=0)
    assert held(project) == {"src/**": "builder"}

    text = answer(project, view_run(run_id, root=project.root))
    done = call("submit", run_id=run_id, role="builder", envelope=text)
    assert done["outcome"] == "handover"
    assert held(project) == {"src/**": "run:HELLO-001.1"}
    assert {row.token for row in _leases(project)} > tokens or not tokens & {row.token for row in _leases(project)}
    for role in ("tester", "reviewer"):
        text = answer(project, view_run(run_id, root=project.root))
        call("submit", run_id=run_id, role=role, envelope=text)
    assert view_run(run_id, root=project.root).status == "APPROVED"
    assert held(project) == {}


def _leases(project: Project) -> list[Any]:
    with other(project, "observer").runtime.store.transaction() as tx:
        return tx.leases()


def test_beginning_a_task_whose_files_are_held_says_for_whom_it_waits(project: Project) -> None:
    holder = other(project)
    holder.reserve_files(["src/greeting.txt"], "fixes it")
    call = server_of(project)
    task = {
        "task_id": "HELLO-001",
        "task": "Write the greeting",
        "gates_required": list(project.task.gates_required),
        "scope": ["src/**"],
    }
    begun = call("begin", task=task)
    assert (begun["phase"], begun["waiting"]) == ("running", [])
    again = call("next", run_id="HELLO-001.1", wait_seconds=0)
    for text in (begun["next"], again["next"], call("status", run_id="HELLO-001.1")["next"]):
        assert "other" in text
        assert "`src/greeting.txt`" in text
    holder.release_all()
    assert [ask["role"] for ask in call("next", run_id="HELLO-001.1", wait_seconds=40)["asks"]] == ["builder"]


def test_an_answer_that_cannot_be_taken_since_others_hold_the_files_is_not_lost_in_silence(project: Project) -> None:
    run_id = waiting_run(project)
    text = answer(project, view_run(run_id, root=project.root))
    open_reservations(str(project.root), name="run:HELLO-001.1").release_all()
    other(project).reserve_files(["src/**"])
    drives = Drives(project.root)
    with pytest.raises(GraphError):
        drives.advance(run_id, answers={"builder": text}, wait_seconds=0)
    assert [item.role for item in view_run(run_id, root=project.root).waiting] == ["builder"]
    other(project).release_all()
    assert [item.role for item in drives.advance(run_id, answers={"builder": text}).waiting] == ["tester"]


def test_the_process_that_drives_a_run_represents_it_even_where_an_earlier_one_still_runs(project: Project) -> None:
    """Else the files would be free once the earlier process ends, in the middle of the work."""
    run_id = waiting_run(project)
    rows: list[tuple[int | None, str]] = []

    def look(ask: Ask) -> str:
        with other(project, "observer").runtime.store.transaction() as tx:
            agent = tx.agent("run:HELLO-001.1")
        assert agent is not None
        rows.append((agent.pid, agent.client))
        return judge_log(ask)

    store = other(project, "observer").runtime.store
    with store.transaction() as tx:
        agent = tx.agent("run:HELLO-001.1")
        assert agent is not None
        assert agent.pid is None, "while it waits no process represents it"
        parent = other(project).caller
        tx.put_agent(replace(agent, pid=parent.pid, started=parent.started))
    text = answer(project, view_run(run_id, root=project.root))
    drive(run_id, root=project.root, answers={"builder": text}, runners={"tester": Scripted([look])})
    assert rows == [(os.getpid(), "run")]


@pytest.mark.parametrize(("name", "holder"), [("claude-1", "claude-1"), ("", "run:HELLO-001.1")])
def test_an_agent_that_reads_its_ask_at_the_command_line_gets_the_files_and_a_person_that_looks_does_not(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, holder: str
) -> None:
    for variable in ("INTERLOCK_AGENT_ID", "INTERMUTE_AGENT_ID", "CLAUDE_SESSION_ID"):
        monkeypatch.delenv(variable, raising=False)
    if name:
        monkeypatch.setenv("INTERLOCK_AGENT_ID", name)
    view = view_run(waiting_run(project), root=project.root)
    keep_files(view, root=project.root, worker="", client="cli")
    assert held(project) == {"src/**": holder}


@each_row(
    ("scope", "expected"),
    [
        (["src/**"], ["src/**"]),
        (["src/"], ["src/**"]),
        (["**"], ["**"]),
        (["src/*.py", "!src/x.py"], ["src/*.py"]),
        (["docs/{a,b}.md"], ["docs/a.md", "docs/b.md"]),
        (["a{/b,}"], ["a", "a/b"]),
        (["src/[a-c]x"], ["src/[a-c]x"]),
        (["src/[!ab]"], ["src/[!ab]"]),
        (["src/[^a]x"], ["src/[^a]x"]),
        (["src/[]a]"], ["src/[]a]"]),
        (["src/a]b"], ["src/a[]]b"]),
        (["src/a**b"], ["src/a*b"]),
        (["src/[{x,y}]"], ["src/[{x,y}]"]),
        (["src/**/x.py", "**/y"], ["**/y", "src/**/x.py"]),
    ],
)
def test_a_scope_is_held_by_patterns_that_say_the_same(scope: list[str], expected: list[str]) -> None:
    assert list(lease_patterns(scope)) == expected


def test_a_scope_of_a_folder_below_the_checkout_is_counted_from_the_checkout() -> None:
    assert lease_patterns(["src/**", "*.md"], "apps/[web]") == ("apps/[[]web[]]/*.md", "apps/[[]web[]]/src/**")


_CHARS = "ab*?[]!^-{},/."


@given(st.text(_CHARS, min_size=1, max_size=10), st.text("ab[]{}!^-./", min_size=1, max_size=6))
def test_what_is_in_scope_is_covered(pattern: str, path: str) -> None:
    try:
        scope = compile_scope([pattern])
    except TreeError:
        return
    plain = all(part not in ("", ".", "..") for part in path.split("/"))
    if plain and scope.matches(path):
        assert any(patterns.matches(each, path) for each in lease_patterns([pattern])), lease_patterns([pattern])
