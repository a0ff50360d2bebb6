"""Building the status machine: the nodes of one task and the conditional edges between them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from interlock.agents.ask import Remote, Runner
from interlock.agents.runners import make_runner
from interlock.gates.config import load_config
from interlock.graph.asking import Desk
from interlock.graph.errors import TaskError
from interlock.graph.machine import COMMAND_GATES
from interlock.graph.nodes import EVIDENCE_SUFFIX, QA_VERDICTS, REVIEW_VERDICTS, Nodes
from interlock.graph.policy import Policy, make_policy
from interlock.graph.record import Recorder
from interlock.graph.state import TaskInput, TaskOutput, TaskState
from interlock.graph.store import journal_path
from interlock.graph.task import Task, task_problems
from interlock.journal import Journal


def task_graph(
    task: Task,
    *,
    root: str | Path = ".",
    runners: Mapping[str, Runner | Remote] | None = None,
    policy: Policy | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
) -> CompiledStateGraph[TaskState, None, TaskInput, TaskOutput]:
    """Compile the status machine of one task.

    The graph takes `{"run_id": …}` (default: the thread id) and ends with `{"status", "fail_reasons", …}`. It can be
    run with a checkpointer of the caller's own, or inside a node of another graph.

    Args:
        task: What is to be done; see `load_task` and `task_from_mapping`.
        root: The project's root.
        runners: Runners by role name; they replace those of the task and of `interlock.toml`.
        policy: A frozen policy; default: read from the configuration now.
        checkpointer: Where the state of the run is kept.

    Raises:
        TaskError: The task cannot start; every problem is listed.
        ConfigError: `interlock.toml` is wrong.
        AgentConfigError: The settings of an agent are wrong.
    """
    folder = Path(root).resolve()
    given = dict(runners or {})
    if policy is None:
        config = load_config(folder)
        policy = make_policy(task, config, folder, roles=tuple(given))
        problems = task_problems(task, policy.protocol, folder)
        if problems:
            raise TaskError(f"task {task.task_id} cannot start: {problems[0]}", "Correct the task.", problems)
    for name, setting in policy.agents.items():
        if name in policy.protocol.roles and name not in given:
            given[name] = make_runner(name, setting.settings, root=folder, base=Path(setting.base))
    desk = Desk(task, policy, folder, given)
    nodes = Nodes(desk, Recorder(Journal(journal_path(folder))))
    return _build(nodes).compile(checkpointer=checkpointer, name=f"task {task.task_id}")


def _build(nodes: Nodes) -> StateGraph[TaskState, None, TaskInput, TaskOutput]:
    graph = StateGraph(TaskState, input_schema=TaskInput, output_schema=TaskOutput)
    first = nodes.build_order
    graph.add_node("start", nodes.start)
    graph.add_node("IN_PROGRESS", nodes.in_progress)
    graph.add_node("READY_FOR_QA", nodes.ready_for_qa)
    graph.add_node("QA_IN_PROGRESS", nodes.qa_in_progress)
    graph.add_node("READY_FOR_REVIEW", nodes.ready_for_review)
    graph.add_node("APPROVED", nodes.approved)
    graph.add_node("BLOCKED", nodes.blocked)
    graph.add_edge(START, "start")
    graph.add_conditional_edges("start", nodes.after_status, ["IN_PROGRESS", "BLOCKED"])
    graph.add_conditional_edges("IN_PROGRESS", lambda state: first[state["step"]].name, [role.name for role in first])
    for role in first:
        graph.add_node(role.name, nodes.build_role(role))
        targets = {name: name for name in ("IN_PROGRESS", "READY_FOR_QA", "BLOCKED")} | {"ASK_AGAIN": role.name}
        graph.add_conditional_edges(role.name, nodes.after_role(role), targets)
    graph.add_conditional_edges("READY_FOR_QA", nodes.after_status, ["QA_IN_PROGRESS", "BLOCKED"])
    _add_phase(graph, nodes, "QA_IN_PROGRESS", QA_VERDICTS, "qa", "READY_FOR_REVIEW")
    _add_phase(graph, nodes, "READY_FOR_REVIEW", REVIEW_VERDICTS, "review", "APPROVED")
    if nodes.command_gates:
        graph.add_node(COMMAND_GATES, nodes.command_gates_node)
        graph.add_edge(COMMAND_GATES, QA_VERDICTS)
    graph.add_conditional_edges("APPROVED", nodes.after_approved, {"END": END, "BLOCKED": "BLOCKED"})
    graph.add_conditional_edges("BLOCKED", nodes.after_status, {"END": END, "IN_PROGRESS": "IN_PROGRESS"})
    return graph


def _add_phase(
    graph: StateGraph[TaskState, None, TaskInput, TaskOutput],
    nodes: Nodes,
    status: str,
    verdicts: str,
    kind: Any,
    passed: str,
) -> None:
    """Add the roles of a phase: dispatched side by side, each asked until it has a verdict, then counted."""
    entries = [nodes.entry(name) for name in nodes.phase(kind)]
    graph.add_conditional_edges(status, lambda _state: entries, entries)
    for role in nodes.desk.policy.protocol.of_kind(kind):
        graph.add_node(role.name, nodes.judging_role(role))
        targets = {"ASK_AGAIN": role.name, "TALLY": verdicts}
        graph.add_conditional_edges(role.name, nodes.after_role(role), targets)
        if nodes.collects(role):
            name = f"{role.name}{EVIDENCE_SUFFIX}"
            graph.add_node(name, nodes.evidence(role))
            graph.add_conditional_edges(name, nodes.after_evidence(role), {role.name: role.name, "TALLY": verdicts})
    graph.add_node(verdicts, nodes.verdicts(kind))
    graph.add_conditional_edges(
        verdicts, nodes.after_verdicts(kind), {"WAIT": END, "BLOCKED": "BLOCKED", passed: passed}
    )
