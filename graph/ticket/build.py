"""The graph of a pipeline: each stage a node that waits with an `interrupt()`, judges the answer, and leads on.

A node reads files and writes none. What it has to say is in the state that it returns, the journal's lines too: so it
may run again from its first line after a kill, and nothing happened twice.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from interlock.core.errors import InterlockError
from interlock.gates.git_files import list_tree
from interlock.gates.shared import hidden_count, shared
from interlock.gates.stages import Issue, Observed, Stage, Surroundings, artifact_records, judge_stage
from interlock.gates.tree import tree_diff
from interlock.graph.ticket.contract import FAIL_CLOSED, GateStatus
from interlock.graph.ticket.rules import issue, shown
from interlock.graph.ticket.spec import BEGIN, COMPLETE, PipelineSpec
from interlock.graph.ticket.state import (
    Answer,
    RunInput,
    RunState,
    acted_on_nothing,
    agent_role,
    allowed_paths,
    attempted,
    begun,
    earlier,
    refused,
    required_fields,
    ticket_policy,
)
from interlock.graph.ticket.store import TicketStore
from interlock.reservations import Authors, authors_of, is_ticket_file

PipelineGraph: TypeAlias = CompiledStateGraph[RunState, None, RunInput, RunState]

_MAX_NAMED: Final = 10
_MAX_PATH_CHARS: Final = 100


def pipeline_graph(
    spec: PipelineSpec, *, root: str | Path = ".", checkpointer: BaseCheckpointSaver[Any] | bool | None = None
) -> PipelineGraph:
    """Compile the graph of a pipeline.

    It takes `{"ticket_id"}` (and a `run_id`, by default the thread id) and stops at an `interrupt()` in every stage; it
    goes on with `Command(resume={interrupt_id: {"payload": {…}}})` and ends with the state of the run. The
    checkpointer says where a run stands. No file is written: what happened in the last step is `lines` of the state,
    which `Tickets` appends to the journal.
    """
    folder = Path(root).resolve()
    graph: StateGraph[RunState, None, RunInput, RunState] = StateGraph(
        RunState, input_schema=RunInput, output_schema=RunState
    )
    _add(graph, BEGIN, _begin(spec, folder))
    _add(graph, COMPLETE, _end)
    _add(graph, FAIL_CLOSED, _end)
    graph.add_edge(START, BEGIN)
    graph.add_edge(BEGIN, spec.stages[0].name)
    for stage in spec.stages:
        _add(graph, stage.name, _stage(spec, stage, folder))
        targets: dict[Hashable, str] = {}
        for status in ("pass", "retry", "stop"):
            targets[status] = spec.transition(stage.name, status).next_state
        # A pipeline may end in the state of its last stage, and the edge would lead back into that stage.
        if spec.after(stage.name) is None:
            targets["pass"] = COMPLETE
        graph.add_conditional_edges(stage.name, _edge, targets)
    graph.add_edge(COMPLETE, END)
    graph.add_edge(FAIL_CLOSED, END)
    return graph.compile(  # pyright: ignore[reportUnknownMemberType]
        checkpointer=checkpointer, name=f"pipeline {spec.name}"
    )


def _add(graph: StateGraph[RunState, None, RunInput, RunState], name: str, node: Callable[..., Any]) -> None:
    graph.add_node(name, node)  # pyright: ignore[reportUnknownMemberType]


def _edge(state: RunState) -> GateStatus:
    return state["edge"]


def _end(_state: RunState) -> dict[str, Any]:
    return {}


def _begin(spec: PipelineSpec, root: Path) -> Callable[[RunInput, RunnableConfig], RunState]:
    """Return the node that opens a run: it freezes the policy and names the tree as it is now."""

    def node(given: RunInput, config: RunnableConfig) -> RunState:
        run_id = str(given.get("run_id") or config.get("configurable", {})["thread_id"])
        tree: Any = (given.get("tree") or list_tree(root)) if spec.acts else ""
        # Frozen here: what the configuration says later does not change a run that goes on.
        policy = given.get("policy") or ticket_policy(root)
        return begun(spec, {**given, "run_id": run_id}, policy, tree, given.get("at") or now())

    return node


def _stage(spec: PipelineSpec, stage: Stage, root: Path) -> Callable[[RunState], RunState]:
    """Return the node of a stage: wait for an answer, judge it, and say what came of it."""

    def node(state: RunState) -> RunState:
        # The node runs anew from here when it is resumed: nothing may happen before the interrupt.
        asked = {
            "run_id": state["run_id"],
            "stage": stage.name,
            "revision": state["revision"],
            "agent_role": agent_role(spec, state),
            "required_fields": required_fields(spec, state),
        }
        given: object = interrupt(asked)
        answer = cast("Answer", dict(cast("dict[str, Any]", given)) if isinstance(given, dict) else {})
        if not isinstance(answer.get("payload"), dict):
            # What is no payload is judged as an empty one: raising would keep it as the answer to this interrupt.
            answer["payload"] = {}
        # Where the graph is run without `Tickets`, as in LangGraph's studio, nobody else says when the answer came.
        answer.setdefault("at", now())
        if "refused" in answer:
            return refused(spec, state, answer)
        return _judged(spec, stage, state, answer, root)

    return node


def now() -> str:
    """Return the time of a step, as the journal writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lists_files(spec: PipelineSpec, stage: Stage) -> bool:
    """Return whether an attempt of a stage needs a listing of the files: it acts, or the next stage does."""
    following = spec.after(stage.name)
    return stage.acts or (following is not None and following.acts)


def _judged(spec: PipelineSpec, stage: Stage, state: RunState, answer: Answer, root: Path) -> RunState:
    """Return the state after the gate of a stage judged an answer."""
    payload, remote = answer.get("payload", {}), bool(answer.get("caller"))
    tree: Any = (answer.get("tree") or list_tree(root)) if lists_files(spec, stage) else ""
    store = TicketStore(root, state["run_id"])

    def listing(of: Any) -> dict[str, str]:
        """Return a listing of files: the state names it by its digest, or holds it."""
        return store.tree(of) if isinstance(of, str) else cast("dict[str, str]", of)

    first, observed = state["trees"].get("begin"), None
    if stage.acts:
        # Listed when the plan passed; where the acting stage is the first one, when the run began.
        before = state["trees"].get(stage.name, first)
        observed = _observed(state, answer, root, listing(before), listing(tree))
    around = Surroundings(
        root,
        observed,
        unchanged=acted_on_nothing(spec, state),
        remote=remote,
    )
    issues = [*judge_stage(stage, payload, earlier(state), around), *(Issue(**row) for row in answer.get("noted", ()))]
    passes = all(item.level == "warn" for item in issues)
    following = spec.after(stage.name)
    next_acts = following is not None and following.acts
    # After an acting stage, files have changed for good reason.
    acted = any(spec.stage(row["state"]).acts for row in (*state["history"], {"state": stage.name}))
    if passes and next_acts and not acted:
        issues += _early(root, listing(first), listing(tree), remote=remote)
    artifacts = artifact_records(around, payload) if passes else ()
    # Only a listing that the next stage compares with is kept; it is large.
    return attempted(spec, state, answer, issues, tree=tree if next_acts else "", artifacts=artifacts)


def _observed(
    state: RunState, answer: Answer, root: Path, before: Mapping[str, str], after: Mapping[str, str]
) -> Observed:
    """Return what became of the files while a stage was acted."""
    # Acting began when the stage before it passed: who wrote earlier is not asked for.
    times = [row["at"] for row in state["history"] if row["gate"] == "pass"]
    since = datetime.fromisoformat(times[-1] if times else state["created_at"]).timestamp()
    agent = answer.get("agent") or answer.get("caller")
    agents = [agent] if agent else []

    def authors(paths: Sequence[str]) -> Authors:
        """Return whose changes these are; where that cannot be read, nobody is known, and the finding says why."""
        try:
            return authors_of(str(root), agents, paths, since)
        except InterlockError as error:
            return Authors(problem=str(error))

    policy = state["policy"]
    return Observed(
        before,
        after,
        allowed_paths(state),
        "error" if policy["unchanged"] == "error" else "warn",
        "error" if policy["unattributed"] == "error" else "warn",
        authors,
    )


def _early(root: Path, before: Mapping[str, str], after: Mapping[str, str], *, remote: bool) -> list[Issue]:
    """Report files that changed before the plan passed; a caller with a token gets the names that it may know."""
    diff = tree_diff(before, after)
    paths = [path for path in (*diff.changed, *diff.added, *diff.removed) if not is_ticket_file(root, path)]
    if not paths:
        return []
    visible = shared(root, paths) if remote else frozenset(paths)
    rows = [shown(path)[:_MAX_PATH_CHARS] for path in paths if path in visible]
    more = [f"{len(rows) - _MAX_NAMED} more"] if len(rows) > _MAX_NAMED else []
    if hidden := [path for path in paths if path not in visible]:
        more.append(hidden_count(hidden))
    named = " and ".join([part for part in (", ".join(rows[:_MAX_NAMED]), *more) if part])
    return [
        issue(
            "TKT131",
            "",
            f"Files changed between the beginning of the run and the plan: {named}.",
            found=named,
            expected="no edit before the plan has passed",
            fix="Tell the user which of these edits are yours; they are not compared with the plan.",
        )
    ]
