"""Building a pipeline: its stages as nodes, one interrupt in each, and edges for pass, retry and stop."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from interlock.agents.ask import agent_of_run
from interlock.core.errors import InterlockError
from interlock.gates.git_files import list_tree, revealed
from interlock.gates.shared import hidden_count, shared
from interlock.gates.stages import Issue, Observed, Stage, Surroundings, artifact_records, judge_stage
from interlock.gates.tree import tree_diff
from interlock.graph.engine.folder import HeadRecord, journal_path, journal_run, restore, snapshots_path
from interlock.graph.errors import RunDamagedError
from interlock.graph.ticket.contract import FAIL_CLOSED, SCHEMA_VERSION, GateStatus, Ticket
from interlock.graph.ticket.machine import GATE_EVENTS, apply, attempt, begun, check_attempt
from interlock.graph.ticket.rules import issue, shown
from interlock.graph.ticket.spec import BEGIN, COMPLETE, PipelineSpec
from interlock.graph.ticket.state import (
    RunInput,
    RunState,
    acted_on_nothing,
    agent_role,
    allowed_paths,
    earlier,
    issue_ticket,
    required_fields,
    terminal,
    ticket_policy,
    tree_before,
)
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.submission import other_key
from interlock.journal import Entry, Journal, JournalConflict
from interlock.reservations import Authors, authors_of, is_ticket_file

PipelineGraph: TypeAlias = CompiledStateGraph[RunState, "Answer", RunInput, RunState]

_MAX_NAMED: Final = 10
_MAX_PATH_CHARS: Final = 100


class Answer(TypedDict, total=False):
    """What a stage is handed as the context of a call, in place of the answer to its interrupt.

    Shapes: `revision` is that of the ticket it answers; `answer` has the `payload` and what the journal keeps of the
    call.
    """

    revision: int
    answer: Mapping[str, Any]


def pipeline_graph(
    spec: PipelineSpec,
    *,
    root: str | Path = ".",
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    journal: Journal | None = None,
    snapshots: Journal | None = None,
) -> PipelineGraph:
    """Compile the graph of a pipeline.

    It takes `{"run_id", "ticket_id"}` (the run id defaults to the thread id) and stops at an `interrupt()` in every
    stage; it goes on with `Command(resume={interrupt_id: {"payload": {…}}})` and ends with the state of the run.
    Without a checkpointer, a call begins with the state that the call before returned, and has the answer as its
    context: `invoke(state, context={"revision": …, "answer": {"payload": {…}}})`.

    The state of the run is kept by the checkpointer; what happens goes into the journal, and each ticket into the
    snapshots, by default those of the root.
    """
    folder = Path(root).resolve()
    journal, snapshots = journal or Journal(journal_path(folder)), snapshots or Journal(snapshots_path(folder))
    return compiled(Nodes(spec, folder, journal, snapshots), checkpointer)


def compiled(nodes: "Nodes", checkpointer: BaseCheckpointSaver[Any] | bool | None = None) -> PipelineGraph:
    """Compile the graph of some nodes; see `pipeline_graph`."""
    spec = nodes.spec
    # Of a run that goes on, a call takes the whole state.
    graph: StateGraph[RunState, Answer, RunInput, RunState] = StateGraph(
        RunState, context_schema=Answer, input_schema=cast("type[RunInput]", RunState), output_schema=RunState
    )
    _add(graph, BEGIN, nodes.begin)
    _add(graph, COMPLETE, nodes.end)
    _add(graph, FAIL_CLOSED, nodes.end)
    graph.add_conditional_edges(START, _entry, [BEGIN, *(stage.name for stage in spec.stages)])
    graph.add_edge(BEGIN, spec.stages[0].name)
    for stage in spec.stages:
        _add(graph, stage.name, nodes.stage(stage))
        following = spec.after(stage.name)
        passed = COMPLETE if following is None else following.name
        targets: dict[Hashable, str] = {"pass": passed, "retry": stage.name, "stop": FAIL_CLOSED}
        graph.add_conditional_edges(stage.name, last_gate, targets)
    graph.add_edge(COMPLETE, END)
    graph.add_edge(FAIL_CLOSED, END)
    return graph.compile(  # pyright: ignore[reportUnknownMemberType]
        checkpointer=checkpointer, name=f"pipeline {spec.name}"
    )


def _entry(given: Mapping[str, Any]) -> str:
    return given.get("state", BEGIN)


def last_gate(state: RunState) -> GateStatus:
    """Return what came of the last attempt: the edge to follow."""
    return state["history"][-1]["gate"]


def _add(graph: StateGraph[RunState, Answer, RunInput, RunState], name: str, node: Callable[..., Any]) -> None:
    graph.add_node(name, node)  # pyright: ignore[reportUnknownMemberType]


@dataclass(frozen=True)
class Nodes:
    """The node functions of one pipeline.

    Every effect comes after the interrupt, and under a key: a node that runs again after a crash takes over the lines
    that are there.
    """

    spec: PipelineSpec
    root: Path
    journal: Journal
    snapshots: Journal

    def begin(self, given: RunInput, config: RunnableConfig) -> RunState:
        """Open the run: freeze its policy, list the tree, and issue the first ticket."""
        run_id = str(given.get("run_id") or config.get("configurable", {})["thread_id"])
        store = TicketStore(self.root, run_id)
        found = self.journal.find(journal_run(run_id), "run_started")
        if found is None:
            data: dict[str, Any] = {
                "run_id": run_id,
                "ticket_id": given.get("ticket_id", ""),
                "owner": given.get("owner", ""),
                "policy": given.get("policy") or ticket_policy(self.root),
                "pipeline": self.spec.name,
                "spec_sha256": self.spec.fingerprint(),
                "tree": store.keep_tree(list_tree(self.root)) if self.spec.acts else "",
            }
            found = self.journal.append(journal_run(run_id), "run_started", "run_started", data)
        elif found.data["pipeline"] != self.spec.name:
            raise RunDamagedError(
                f"the journal holds ticket run {run_id} as one of {found.data['pipeline']}, not {self.spec.name}",
                "Begin a run of another id.",
            )
        return self._kept(begun(found.data, self.spec, found.at), found)

    def stage(self, stage: Stage) -> Callable[[RunState, Runtime[Answer]], RunState]:
        """Return the node of a stage: wait for a payload, judge it, write down what came of it."""

        def node(state: RunState, runtime: Runtime[Answer]) -> RunState:
            handed: Mapping[str, Any] = runtime.context or {}  # pyright: ignore[reportUnnecessaryComparison]
            here = handed.get("revision") == state["revision"]
            given: object = handed.get("answer") if here else interrupt(self._asked(stage, state))
            answer: Mapping[str, Any] = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
            # What is not a payload is judged as an empty one: raising here would leave it with the interrupt of a
            # checkpointer for good.
            submitted = answer.get("payload")
            payload = cast("dict[str, Any]", submitted) if isinstance(submitted, dict) else {}
            run, revision = journal_run(state["run_id"]), state["revision"]
            gate = self.journal.find(run, f"{revision}/gate")
            if gate is None:
                gate, last = self._judge(stage, state, answer, payload)
            else:
                self._check(state, gate)
                last = self._followed(run, revision, gate)
            after = apply(state, payload, gate.data, gate.at)
            return self._kept(after, last, stage.name, payload if gate.data["status"] == "pass" else None)

        return node

    def _asked(self, stage: Stage, state: RunState) -> dict[str, Any]:
        return {
            "run_id": state["run_id"],
            "stage": stage.name,
            "revision": state["revision"],
            "agent_role": agent_role(self.spec, state),
            "required_fields": required_fields(self.spec, state),
        }

    def settled(self, state: RunState) -> RunState:
        """Return a state with everything on the disk that its last step leads to, written now if a crash cut it off."""
        run = journal_run(state["run_id"])
        if not state["history"]:
            return self._kept(state, _line(self.journal, run, "run_started"))
        row = state["history"][-1]
        last = self._followed(run, row["revision"], _line(self.journal, run, f"{row['revision']}/gate"))
        return self._kept(state, last, row["state"], row.get("payload"))

    def end(self, _state: RunState) -> dict[str, Any]:
        """End the run; everything is written down already."""
        return {}

    def _judge(
        self, stage: Stage, state: RunState, answer: Mapping[str, Any], payload: dict[str, Any]
    ) -> tuple[Entry, Entry]:
        """Judge a payload, write the lines of the attempt, and return that of the gate and the last one."""
        store = TicketStore(self.root, state["run_id"])
        outcomes: dict[str, str] = answer.get("outcomes", {})
        version, remote = answer.get("schema_version", SCHEMA_VERSION), bool(answer.get("caller"))
        if version == SCHEMA_VERSION and "refused" not in answer:
            cites = "grounded" in stage.checks and "begin" in state["trees"]
            around = Surroundings(
                self.root,
                self._observed(stage, state, store, _agents(answer)),
                outcomes or state["outcomes"],
                store.tree(state["trees"]["begin"]) if cites else None,
                acted_on_nothing(self.spec, state),
                remote=remote,
            )
            issues = judge_stage(stage, payload, earlier(state), around)
            issues = (*issues, *other_key(payload, state["ticket_id"]))
        elif "refused" in answer:
            issues = tuple(Issue(**item) for item in answer["refused"])
        else:
            issues = (_version_issue(version),)
        following = self.spec.after(stage.name)
        tree = ""
        if following is not None and following.acts and all(item.level == "warn" for item in issues):
            now = list_tree(self.root)
            tree = store.keep_tree(now)
            # After an acting stage, files have changed for good reason.
            if not any(self.spec.stage(row["state"]).acts for row in (*state["history"], state)):
                issues = (*issues, *_early(self.root, store.tree(state["trees"]["begin"]), now, remote=remote))
        gate = attempt(self.spec, state, payload, issues, tree=tree, outcomes=outcomes)
        near = Surroundings(self.root, remote=remote)
        if gate["status"] == "pass" and (handed_over := artifact_records(near, payload)):
            gate["artifacts"] = handed_over
        revision = state["revision"]
        call = {
            "tool": answer.get("tool", "resume"),
            "caller": answer.get("caller", ""),
            "state": stage.name,
            "revision": revision,
            "payload": payload,
            "schema_version": version,
            "outcomes": outcomes,
            "tasks": answer.get("tasks", []),
            **answer.get("kept", {}),
        }
        moved = _moved(gate)
        events = [
            (f"{revision}/tool_call", "tool_call", call),
            (f"{revision}/gate", GATE_EVENTS[gate["status"]], gate),
            *([(f"{revision}/{moved[0]}", *moved)] if moved else []),
        ]
        entries = self.journal.extend(journal_run(state["run_id"]), events)
        return entries[1], entries[-1]

    def _check(self, state: RunState, gate: Entry) -> None:
        """Refuse a line that was found where a crash cut an attempt off, and that no attempt can have written."""
        try:
            check_attempt(self.spec, state, gate.type, gate.data)
        except (ValueError, LookupError, TypeError) as error:
            raise RunDamagedError(
                f"the journal holds an attempt of ticket run {state['run_id']} that it cannot have had: {error}",
                restore("submit again"),
            ) from error

    def _followed(self, run: str, revision: int, gate: Entry) -> Entry:
        """Return the last line of an attempt, written now if a crash cut it off."""
        moved = _moved(gate.data)
        return gate if moved is None else self.journal.append(run, f"{revision}/{moved[0]}", *moved)

    def _observed(self, stage: Stage, state: RunState, store: TicketStore, agents: Sequence[str]) -> Observed | None:
        if not stage.acts:
            return None
        before = store.tree(tree_before(state))
        times = [row["at"] for row in state["history"] if row["gate"] == "pass"]
        since = datetime.fromisoformat(times[-1] if times else state["created_at"]).timestamp()
        policy = state["policy"]
        return Observed(
            before,
            list_tree(self.root),
            allowed_paths(state),
            "error" if policy["unchanged"] == "error" else "warn",
            "error" if policy.get("unattributed") == "error" else "warn",
            lambda paths: self._authors(agents, paths, since),
        )

    def _authors(self, agents: Sequence[str], paths: Sequence[str], since: float) -> Authors:
        """Return whose changes these are; where that cannot be read, nobody is known, and the finding says why."""
        try:
            return authors_of(str(self.root), agents, paths, since)
        except InterlockError as error:
            return Authors(problem=str(error))

    def _kept(
        self, state: RunState, last: Entry, stage: str = "", payload: Mapping[str, Any] | None = None
    ) -> RunState:
        """Write the snapshot and the copies of a new state, and pin the ends of both logs in it."""
        ticket = issue_ticket(self.spec, state)
        snapshot = self._snapshot(journal_run(state["run_id"]), str(state["revision"]), ticket)
        store = TicketStore(self.root, state["run_id"])
        copies = {} if payload is None else {stage: payload}
        if terminal(state):
            copies["ticket"] = cast("dict[str, Any]", ticket)
        if copies:
            store.write_copies(copies)
        state["head"] = HeadRecord(seq=last.seq, hash=last.hash)
        state["snapshots"] = HeadRecord(seq=snapshot.seq, hash=snapshot.hash)
        return state

    def _snapshot(self, run: str, revision: str, ticket: Ticket) -> Entry:
        """Keep a ticket; one that is there was issued, though another version of the program may word it otherwise."""
        try:
            return self.snapshots.append(run, revision, "ticket", cast("dict[str, Any]", ticket))
        except JournalConflict:
            issued = self.snapshots.find(run, revision)
            if issued is None:
                raise
            return issued


def _line(journal: Journal, run: str, key: str) -> Entry:
    found = journal.find(run, key)
    assert found is not None, "the state was made from this line"
    return found


def _agents(answer: Mapping[str, Any]) -> list[str]:
    if tasks := answer.get("tasks"):
        return [agent_of_run(task["run_id"]) for task in tasks]
    agent = answer.get("agent") or answer.get("caller")
    return [agent] if agent else []


def _moved(gate: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the event of the move that a gate event leads to; None when the run stays where it is."""
    if gate["status"] == "retry":
        return None
    data = {"from": gate["state"], "to": gate["next_state"], "revision": gate["revision"] + 1}
    if gate["status"] == "stop":
        return "fail_closed", {**data, "reason_code": gate["reason_code"]}
    return "transition", {**data, "done": gate["done"]}


def _version_issue(version: object) -> Issue:
    return issue(
        "TKT123",
        "schema_version",
        f"The ticket has schema_version {shown(version)}; this server issues {SCHEMA_VERSION}.",
        found=version,
        expected=SCHEMA_VERSION,
        fix="Begin a new run; use client and server of one version.",
    )


def _early(root: Path, before: Mapping[str, str], now: Mapping[str, str], *, remote: bool) -> tuple[Issue, ...]:
    """Report files that changed before the plan passed; a caller with a token gets the names that it may know."""
    diff = tree_diff(before, revealed(root, before, now))
    paths = [path for path in (*diff.changed, *diff.added, *diff.removed) if not is_ticket_file(root, path)]
    if not paths:
        return ()
    visible = shared(root, paths) if remote else frozenset(paths)
    rows = [shown(path)[:_MAX_PATH_CHARS] for path in paths if path in visible]
    more = [f"{len(rows) - _MAX_NAMED} more"] if len(rows) > _MAX_NAMED else []
    more += [hidden_count(hidden)] if (hidden := [path for path in paths if path not in visible]) else []
    named = " and ".join([part for part in (", ".join(rows[:_MAX_NAMED]), *more) if part])
    return (
        issue(
            "TKT131",
            "",
            f"Files changed between the beginning of the run and the plan: {named}.",
            found=named,
            expected="no edit before the plan has passed",
            fix="Tell the user which of these edits are yours; they are not compared with the plan.",
        ),
    )
