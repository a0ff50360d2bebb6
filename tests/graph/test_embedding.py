"""The graph in other people's hands: a checkpointer of their own, a parent graph, LangGraph's own tools."""

import json
import runpy
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from interlock.graph import TaskError, app, task_graph
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


def test_langgraph_json_names_a_graph_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = json.loads((REPO / "langgraph.json").read_text(encoding="utf-8"))
    path, _, name = settings["graphs"]["task"].partition(":")
    monkeypatch.setenv("INTERLOCK_TASK", str(REPO / settings["env"]["INTERLOCK_TASK"]))
    graph = runpy.run_path(str(REPO / path))[name]()
    assert {"IN_PROGRESS", "APPROVED", "BLOCKED", "visual-qa", "code-reviewer"} <= set(graph.get_graph().nodes)


def test_a_graph_without_its_task_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERLOCK_TASK", raising=False)
    with pytest.raises(TaskError) as caught:
        app.task()
    assert "INTERLOCK_TASK" in caught.value.message
