"""The graph in other people's hands: a checkpointer of their own, a parent graph, LangGraph's own tools."""

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from interlock.graph import TaskError, task_graph
from tests.graph.conftest import Project

REPO = Path(__file__).parents[2]


def test_the_graph_runs_with_a_checkpointer_of_the_callers(project: Project) -> None:
    saver = InMemorySaver()
    graph = task_graph(project.task, root=project.root, runners=project.runners, checkpointer=saver)
    config = {"configurable": {"thread_id": "mine"}}
    end = graph.invoke({}, config)  # type: ignore[arg-type]
    assert end["status"] == "APPROVED"
    assert end["run_id"] == "mine"
    assert graph.get_state(config).values["head"] == end["head"]  # type: ignore[arg-type]


def test_the_example_embeds_the_graph_in_a_parent_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(REPO / "examples/embedding/embed.py"))
    example["main"](str(tmp_path))
    assert capsys.readouterr().out == "APPROVED: release\n"


def compiled(name: str, **thread: str) -> Any:
    settings = json.loads((REPO / "langgraph.json").read_text(encoding="utf-8"))
    path, _, function = settings["graphs"][name].partition(":")
    return asyncio.run(runpy.run_path(str(REPO / path))[function]({"configurable": thread}))


def test_langgraph_json_names_two_graphs_that_compile_and_have_schemas() -> None:
    task, ticket = compiled("task"), compiled("ticket")
    assert {"IN_PROGRESS", "APPROVED", "BLOCKED", "builder"} <= set(task.get_graph().nodes)
    assert set(task.get_input_jsonschema()["properties"]) == {"run_id", "frozen"}
    assert {"status", "fail_reasons"} <= set(task.get_output_jsonschema()["properties"])
    assert {"fetch_ticket", "fail_closed"} <= set(ticket.get_graph().nodes)
    assert "ticket_id" in ticket.get_input_jsonschema()["properties"]


def test_a_task_of_the_users_own_is_served_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_TASK", str(REPO / "examples/landing-page/task.toml"))
    assert {"visual-qa", "code-reviewer"} <= set(compiled("task", thread_id="one").get_graph().nodes)


def test_no_thread_leads_out_of_the_folder_of_copies() -> None:
    with pytest.raises(TaskError):
        compiled("task", thread_id="../../elsewhere")
