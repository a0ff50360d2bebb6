"""A whole run whose roles are chat models behind the wire: files written, verdicts given, usage in the journal."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from interlock.agents import Ask, RunnerError
from interlock.graph import TaskError
from interlock.graph.task.runs import RunView, drive, start_run
from tests.agents.chats import chat
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Reply, Request
from tests.agents.providers.openai import OpenAI
from tests.graph.conftest import Project, envelope

TABLES = """
[agents.builder]
runner = "chat"
model = "anthropic:opus"
base_url = "{build}"
options = {{ max_retries = 0 }}
[agents.reviewer]
runner = "chat"
model = "openai:small"
base_url = "{judge}"
[prices."anthropic:opus"]
input = 10.0
output = 50.0
cached_input = 1.0
[budget]
calls = 50
"""
PLACE = "artifacts/reports/HELLO-001/1"


def named(role: str, root: Path) -> Ask:
    return Ask("r", "HELLO-001", role, 1, 0, "build", "", str(root), "", {}, PLACE, "")


class Models:
    """What the models behind the two providers say: they work with tools first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: list[Any] = []

    def build(self, request: Request) -> Reply:
        if self.faults:
            return Reply(fault=self.faults.pop())
        if len(request.json["messages"]) == 1:
            arguments = {"path": "src/greeting.txt", "text": "hello\n"}
            return Reply("I write.", [("write_file", arguments)], usage=(1000, 100))
        return Reply(envelope(named("builder", self.root), "READY_FOR_QA"), usage=(2000, 200))

    def judge(self, request: Request) -> Reply:
        tree = re.search("sha256:[0-9a-f]{64}", request.words)
        assert tree is not None
        path = f"{PLACE}/review.md"
        if "write_report" not in str(request.json["messages"]):
            text = f"# Review\n\nRead tree {tree[0]}. No objection.\n"
            return Reply(tool_calls=[("write_report", {"name": "review.md", "text": text})], usage=(500, 50))
        evidence: Mapping[str, Any] = {"screenshots": (), "a11y": (), "console": (), "reports": (path,)}
        passed = ("GATE-MSG-STRICT", "GATE-REVIEW")
        role = named("reviewer", self.root)
        return Reply(envelope(role, "READY_FOR_REVIEW", gates_passed=passed, evidence=evidence), usage=(600, 60))


def begin(project: Project, text: str) -> str:
    path = project.root / "interlock.toml"
    path.write_text(f"{path.read_text()}\n{text}")
    return start_run(project.root, project.task, roles=("tester",))


def go_on(project: Project, run_id: str) -> RunView:
    return drive(run_id, root=project.root, runners={"tester": project.runners["tester"]})


def test_models_behind_the_wire_take_a_task_to_its_end_and_the_journal_says_what_they_cost(project: Project) -> None:
    models = Models(project.root)
    with Anthropic(models.build) as building, OpenAI(models.judge) as judging:
        view = go_on(project, begin(project, TABLES.format(build=building.url, judge=judging.url)))
    assert view.status == "APPROVED", view.values["fail_reasons"]
    answers = {entry.data["role"]: entry.data for entry in project.entries("answer")}
    usage = answers["builder"]["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"], usage["usd"]) == (2, 3000, 300, 0.045)
    assert (answers["builder"]["model"], answers["builder"]["tool_calls"]) == ("opus", 1)
    assert answers["reviewer"]["usage"]["usd"] is None
    assert answers["reviewer"]["usage"]["input_tokens"] == 1100
    assert view.values["spent"]["builder"]["calls"] == 2
    assert (project.root / "src" / "greeting.txt").read_text() == "hello\n"
    assert "write_file" in building.requests[0].tools
    assert "write_file" not in judging.requests[0].tools


class Hasty(Models):
    """A reviewer that cites what it never opened, and opens it when the re-ask names it."""

    def judge(self, request: Request) -> Reply:
        tree = re.search("sha256:[0-9a-f]{64}", request.words)
        assert tree is not None
        path = f"{PLACE}/review.md"
        (self.root / PLACE).mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"# Review\n\nRead tree {tree[0]}. No objection.\n")
        said = str(request.json["messages"])
        if (
            "EVIDENCE.reports" in said
            and "read_file" not in said.partition("EVIDENCE.reports")[2].partition("total_lines")[0]
        ):
            calls = [("read_file", {"path": "src/greeting.txt"}), ("view_evidence", {"path": path})]
            return Reply(tool_calls=calls, usage=(1, 1))
        evidence: Mapping[str, Any] = {"screenshots": (), "a11y": (), "console": (), "reports": (path,)}
        passed = ("GATE-MSG-STRICT", "GATE-REVIEW")
        inputs = ("src/greeting.txt", "the brief")
        role = named("reviewer", self.root)
        text = envelope(role, "READY_FOR_REVIEW", gates_passed=passed, evidence=evidence, inputs_used=inputs)
        return Reply(text, usage=(1, 1))


def test_a_judge_that_never_opened_what_it_cites_is_asked_again(project: Project) -> None:
    """What the tools showed is recorded; what they did not show was not read, whatever the answer says."""
    models = Hasty(project.root)
    with Anthropic(models.build) as building, OpenAI(models.judge) as judging:
        view = go_on(project, begin(project, TABLES.format(build=building.url, judge=judging.url)))
    answers = [entry.data for entry in project.entries("answer") if entry.data["role"] == "reviewer"]
    assert [row["outcome"] for row in answers] == ["invalid", "pass"]
    refused = [(row["code"], row["field"]) for row in answers[0]["findings"]]
    assert refused == [("RUN614", "INPUTS_USED"), ("RUN614", "EVIDENCE.reports")]
    assert view.status == "APPROVED"


def test_a_provider_that_fails_stops_the_run_and_it_goes_on_when_it_is_resumed(project: Project) -> None:
    models = Models(project.root)
    models.faults = ["500"]
    with Anthropic(models.build) as building, OpenAI(models.judge) as judging:
        run_id = begin(project, TABLES.format(build=building.url, judge=judging.url))
        with pytest.raises(RunnerError):
            go_on(project, run_id)
        assert project.entries("answer") == []
        assert go_on(project, run_id).status == "APPROVED"


def test_a_budget_in_money_is_refused_at_the_start_where_a_price_is_missing(project: Project) -> None:
    text = TABLES.format(build="http://127.0.0.1:9", judge="http://127.0.0.1:9").replace("calls = 50", "usd = 5.0")
    with pytest.raises(TaskError) as caught:
        begin(project, text)
    assert '[prices."openai:small"]' in caught.value.problems[0]


class Trace(BaseCallbackHandler):
    """Keeps which model calls have a parent."""

    def __init__(self) -> None:
        self.parents: list[Any] = []

    def on_chat_model_start(self, *_given: Any, **more: Any) -> None:
        self.parents.append(more["parent_run_id"])


def test_a_turn_inside_a_graph_takes_its_place_in_the_trace_and_nothing_else(tmp_path: Path) -> None:
    saver, trace = InMemorySaver(), Trace()

    def node(_state: dict[str, Any]) -> dict[str, Any]:
        return {"text": runner(named("builder", tmp_path)).text}

    builder: Any = StateGraph(cast("Any", dict))
    graph = builder.add_node("role", node).add_edge(START, "role").compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "t"}, "callbacks": [trace]}
    with Anthropic([Reply(tool_calls=[("read_file", {"path": "a"})]), Reply("said")]) as provider:
        runner = chat(provider.url, {"model": "anthropic:m"})
        streamed = list(graph.stream({}, config, stream_mode="updates", subgraphs=True))
    assert streamed == [((), {"role": {"text": "said"}})]
    assert {cast("Any", row.config)["configurable"]["checkpoint_ns"] for row in saver.list(None)} == {""}
    assert len(trace.parents) == 2
    assert None not in trace.parents
