"""Run the status machine inside your own LangGraph application, with a checkpointer of your own.

    python examples/embedding/embed.py [FOLDER]

The parent graph has two nodes: one runs the task as a graph of its own, one decides what to do with the outcome.
The agents are three plain functions; a command gate runs the project's tests.
"""

import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from interlock.agents import Ask, reply
from interlock.graph import task_from_mapping, task_graph

GATES = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")

CONFIG = """
roster = "replace"
[roles.orchestrator]
kind = "orchestrator"
[roles.builder]
kind = "build"
hands_over = true
[roles.tester]
kind = "qa"
certifies = "GATE-TESTS"
[roles.reviewer]
kind = "review"
certifies = "GATE-REVIEW"
[gates.GATE-TESTS]
title = "the tests pass"
certifier = "tester"
command = ["grep", "-qx", "hello", "src/greeting.txt"]
[gates.GATE-REVIEW]
title = "a reviewer read the present tree"
certifier = "reviewer"
evidence = ["reports"]
check = "report"
"""


def builder(ask: Ask) -> str:
    """Do the work, then hand over."""
    Path(ask.root, "src/greeting.txt").write_text("hello\n", encoding="utf-8")
    return reply(ask, "READY_FOR_QA")


def tester(ask: Ask) -> str:
    """Cite the log that Interlock made by running the command."""
    return reply(ask, "QA_IN_PROGRESS", "GATE-TESTS", evidence=ask.evidence)


def reviewer(ask: Ask) -> str:
    """Write a report that names the tree that was read."""
    report = Path(ask.root, ask.reports_dir, "review.md")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(f"Read tree {ask.tree}: no objection.\n", encoding="utf-8")
    return reply(ask, "READY_FOR_REVIEW", "GATE-REVIEW", evidence={"reports": (f"{ask.reports_dir}/review.md",)})


class Release(TypedDict):
    """The state of the parent graph."""

    ticket: str
    status: str
    decision: str


def release_graph(root: Path) -> StateGraph[Release]:
    """Build the parent graph: run the task, then decide."""
    task = task_from_mapping(
        {"task_id": "HELLO-001", "task": "Write a greeting", "gates_required": list(GATES), "scope": ["src/**"]}
    )
    runners = {"builder": builder, "tester": tester, "reviewer": reviewer}
    child = task_graph(task, root=root, runners=runners, checkpointer=InMemorySaver())

    def work(state: Release) -> dict[str, str]:
        end = child.invoke({"run_id": state["ticket"]}, {"configurable": {"thread_id": state["ticket"]}})
        return {"status": str(end["status"])}

    def decide(state: Release) -> dict[str, str]:
        return {"decision": "release" if state["status"] == "APPROVED" else "hold"}

    graph = StateGraph(Release)
    graph.add_node("work", work)
    graph.add_node("decide", decide)
    graph.add_edge(START, "work")
    graph.add_edge("work", "decide")
    graph.add_edge("decide", END)
    return graph


def main(folder: str | None = None) -> None:
    """Run the parent graph in a folder and print its decision."""
    root = Path(folder or tempfile.mkdtemp(prefix="interlock-embedding-"))
    (root / "src").mkdir(parents=True, exist_ok=True)
    (root / "interlock.toml").write_text(CONFIG, encoding="utf-8")
    release = release_graph(root).compile(checkpointer=InMemorySaver())
    end = release.invoke(
        {"ticket": "release-1", "status": "", "decision": ""}, {"configurable": {"thread_id": "parent-1"}}
    )
    print(f"{end['status']}: {end['decision']}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
