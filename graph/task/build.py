"""Building the status machine: the nodes of one task and the conditional edges between them."""

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from interlock.agents.ask import Remote, Runner
from interlock.agents.runners import make_runner
from interlock.envelope.protocol import Status
from interlock.gates.config import load_config
from interlock.graph.engine.folder import journal_of
from interlock.graph.task.context import TaskContext
from interlock.graph.task.machine import COMMAND_GATES, OBJECTION, START_NODE, WAIVER
from interlock.graph.task.nodes import QA_VERDICTS, REVIEW_VERDICTS, Nodes, Update
from interlock.graph.task.policy import Policy, key_variables, make_policy
from interlock.graph.task.preflight import check_task
from interlock.graph.task.record import Recorder
from interlock.graph.task.state import TaskInput, TaskOutput, TaskState
from interlock.graph.task.task import Task
from interlock.redaction import redactor_for


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
        check_task(task, policy.protocol, folder)
    for name, setting in policy.agents.items():
        if name in policy.protocol.roles and name not in given:
            given[name] = make_runner(
                name,
                setting.settings,
                root=folder,
                base=Path(setting.base),
                source=setting.source,
                prices=policy.prices,
                limits=policy.limits,
            )
    redactor = redactor_for(root, key_variables(policy))
    context = TaskContext(task, policy, folder, given, redactor)
    nodes = Nodes(context, Recorder(journal_of(folder)))
    graph = _build(nodes)
    return graph.compile(  # pyright: ignore[reportUnknownMemberType]
        checkpointer=checkpointer, name=f"task {task.task_id}"
    )


class _Builder:
    """A state graph that knows every target of every conditional edge, so that an unknown one raises."""

    def __init__(self, recorder: Recorder, sealing: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.sealing = sealing
        self.graph: StateGraph[TaskState, None, TaskInput, TaskOutput] = StateGraph(
            TaskState, input_schema=TaskInput, output_schema=TaskOutput
        )

    def node(self, name: str, function: Callable[..., Update], *, writes: bool = True) -> None:
        """Add a node; before it works, it makes sure that nobody else wrote lines of its run.

        A node that `writes` lines runs alone, and keeps the head of the run; the others may run side by side.
        """

        def watched(state: TaskState) -> Update:
            # Here and not only when a line is written: a node that asks a model for an hour must not begin on a
            # forged journal.
            self.recorder.watch(state["run_id"])
            # What was frozen as it is on this machine; the checkpoint may be of another one.
            update = function({**state, "sealing": dict(self.sealing)} if self.sealing else state)
            # The head goes into the same checkpoint as what the step did, so that the two cannot part.
            return {**update, "head": self.recorder.head(state["run_id"])} if writes and update else update

        self.graph.add_node(name, watched)  # pyright: ignore[reportUnknownMemberType]

    def edge(self, source: str, route: Callable[[TaskState], str | list[str]], *names: str, **renamed: str) -> None:
        """Add a conditional edge to nodes of the same name, and to others under the name that `route` returns."""
        targets: dict[Hashable, str] = {**{name: name for name in names}, **renamed}
        self.graph.add_conditional_edges(source, route, targets)


def _build(nodes: Nodes) -> StateGraph[TaskState, None, TaskInput, TaskOutput]:
    builder = _Builder(nodes.recorder, nodes.context.policy.sealing)
    builder.graph.add_node(START_NODE, nodes.start)  # pyright: ignore[reportUnknownMemberType]
    builder.node("IN_PROGRESS", nodes.in_progress)
    builder.node("READY_FOR_QA", nodes.ready_for_qa)
    builder.node("QA_IN_PROGRESS", nodes.qa_in_progress)
    builder.node("READY_FOR_REVIEW", nodes.ready_for_review)
    builder.node("APPROVED", nodes.approved)
    builder.node("BLOCKED", nodes.blocked)
    builder.graph.add_edge(START, START_NODE)
    builder.edge(START_NODE, nodes.after_status, "IN_PROGRESS", "BLOCKED")
    builder.edge("IN_PROGRESS", nodes.dispatched, *(role.name for role in nodes.build_order))
    for role in nodes.build_order:
        builder.node(role.name, nodes.build_role(role))
        after = nodes.after_role(role)
        builder.edge(role.name, after, "IN_PROGRESS", "READY_FOR_QA", "BLOCKED", ASK_AGAIN=role.name)
    builder.edge("READY_FOR_QA", nodes.after_status, "QA_IN_PROGRESS", "BLOCKED")
    _add_phase(builder, nodes, "qa")
    _add_phase(builder, nodes, "review")
    if nodes.command_gates:
        builder.node(COMMAND_GATES, nodes.command_gates_node, writes=False)
        builder.graph.add_edge(COMMAND_GATES, QA_VERDICTS)
    builder.edge("APPROVED", nodes.after_approved, "BLOCKED", END=END)
    builder.edge("BLOCKED", nodes.after_status, "IN_PROGRESS", END=END, ASK_PERSON=OBJECTION)
    builder.node(OBJECTION, nodes.objection)
    builder.edge(OBJECTION, nodes.after_status, "IN_PROGRESS", "BLOCKED")
    builder.node(WAIVER, nodes.waiver)
    builder.graph.add_edge(WAIVER, REVIEW_VERDICTS)
    return builder.graph


def _add_phase(builder: _Builder, nodes: Nodes, kind: Literal["qa", "review"]) -> None:
    """Add the roles of a phase: dispatched side by side, each asked until it has a verdict, then counted."""
    status, verdicts, passed = _PHASES[kind]
    # Verdicts of commands that replace a review were given in QA: they are only counted again.
    counted = kind == "review" and not nodes.reviewed
    entries = [verdicts] if counted else [nodes.entry(name) for name in nodes.phase(kind)]
    # A list of targets makes LangGraph run them side by side.
    builder.edge(status, lambda _state: entries, *entries)
    for role in nodes.context.policy.protocol.of_kind(kind):
        builder.node(role.name, nodes.judging_role(role), writes=False)
        builder.edge(role.name, nodes.after_role(role), ASK_AGAIN=role.name, TALLY=verdicts)
        if nodes.collects(role):
            name = nodes.entry(role.name)
            builder.node(name, nodes.evidence(role), writes=False)
            builder.edge(name, nodes.after_evidence(role), role.name, TALLY=verdicts)
    builder.node(verdicts, nodes.verdicts(kind))
    asked = {"ASK_PERSON": WAIVER} if kind == "review" else {}
    builder.edge(verdicts, nodes.after_verdicts(kind), "BLOCKED", passed, WAIT=END, **asked)


_PHASES: Mapping[str, tuple[Status, str, Status]] = {
    "qa": ("QA_IN_PROGRESS", QA_VERDICTS, "READY_FOR_REVIEW"),
    "review": ("READY_FOR_REVIEW", REVIEW_VERDICTS, "APPROVED"),
}
"""The status of a phase, the node that counts its verdicts, and the status after it."""
