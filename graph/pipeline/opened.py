"""Ticket runs held open: their graphs, their checkpoints, and finishing what a killed call left half done."""

import os

os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, GraphOutput

from interlock.graph.errors import RunAbandonedError, RunDamagedError, UnknownRunError
from interlock.graph.pipeline.build import PipelineGraph, pipeline_graph
from interlock.graph.pipeline.checkpoints import TicketSaver, has_ticket_checkpoints, open_checkpoints, read_checkpoint
from interlock.graph.pipeline.contract import Ticket
from interlock.graph.pipeline.spec import BEGIN, SPECS, PipelineSpec
from interlock.graph.pipeline.state import RunInput, RunState, issue_ticket, terminal
from interlock.graph.pipeline.store import (
    TicketStore,
    is_run_id,
    journal_run,
    list_ticket_runs,
    runs_of_ticket,
    snapshots_path,
)
from interlock.graph.store import journal_path
from interlock.journal import Journal

_MAX_REMEMBERED: Final = 256
"""So many runs are remembered between two calls."""


@dataclass(slots=True)
class OpenRun:
    """One run held open by a call: its graph, its state, and the interrupt that it waits at."""

    store: TicketStore
    spec: PipelineSpec
    graph: PipelineGraph
    config: RunnableConfig
    state: RunState
    interrupt: str

    @property
    def ticket(self) -> Ticket:
        """The authoritative ticket."""
        return issue_ticket(self.spec, self.state)


class OpenRuns:
    """The ticket runs of one root as graphs with checkpoints; the one place that invokes such a graph.

    Args:
        root: The project's root.
        specs: The pipelines that runs may have, by name.
    """

    def __init__(self, root: Path, specs: Mapping[str, PipelineSpec] = SPECS) -> None:
        self.root = root.resolve()
        self.specs = dict(specs)
        self.journal = Journal(journal_path(self.root))
        self.snapshots = Journal(snapshots_path(self.root))
        self._guard = threading.Lock()
        self._saver: TicketSaver | None = None
        self._graphs: dict[str, PipelineGraph] = {}
        self._ends: dict[str, tuple[str, RunState, str]] = {}

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        with self._guard:
            if self._saver is not None:
                self._saver.conn.close()
            self._saver = None
            self._graphs = {}
            self._ends = {}

    def _graph(self, spec: PipelineSpec) -> PipelineGraph:
        with self._guard:
            if self._saver is None:
                self._saver = open_checkpoints(self.root)
            if spec.name not in self._graphs:
                self._graphs[spec.name] = pipeline_graph(
                    spec, root=self.root, checkpointer=self._saver, journal=self.journal, snapshots=self.snapshots
                )
            return self._graphs[spec.name]

    def open(self, store: TicketStore) -> OpenRun:
        """Read a run, and finish what a killed call left half done; the caller holds the run's lock."""
        begin = store.load()
        if store.abandoned():
            raise RunAbandonedError(store.run_id)
        spec = self._spec(begin, store)
        graph = self._graph(spec)
        config = _config(store.run_id)
        remembered = self._remembered(store, spec, graph, config)
        if remembered is not None:
            if not terminal(remembered.state):
                self._watch_spec(begin, spec)
            return remembered
        while True:
            snapshot = read_checkpoint(store, graph, config)
            if snapshot.created_at is None:
                self._invoke(graph, config, begin)
                continue
            run = OpenRun(store, spec, graph, config, cast("RunState", snapshot.values), "")
            if not snapshot.tasks:
                self._check_head(run)
                return run  # it is over: nothing more is written of it
            self._watch_spec(begin, spec)
            waiting = [item.id for task in snapshot.tasks for item in task.interrupts]
            if not waiting:
                self._invoke(graph, config, None)
                continue
            run.interrupt = waiting[0]
            self._check_head(run)
            cut_off = self.journal.find(journal_run(store.run_id), f"{run.state['revision']}/tool_call")
            if cut_off is not None:
                self.resume(run, dict(cut_off.data))
            elif self._database().latest(store.run_id)[1]:
                self._forget(run)
            else:
                return run

    def look(self, run_id: str) -> OpenRun:
        """Read a run without its lock, as its last checkpoint keeps it; one without a checkpoint gets it first."""
        run = self.peek(run_id)
        if run is not None:
            return run
        store = TicketStore(self.root, run_id)
        with store.locked():
            return self.open(store)

    def peek(self, run_id: str) -> OpenRun | None:
        """Read a run and change nothing; None when no checkpoint keeps it."""
        self.known(run_id)
        store = TicketStore(self.root, run_id)
        spec = self._spec(store.load(), store)
        if not has_ticket_checkpoints(self.root):
            return None
        graph = self._graph(spec)
        config = _config(run_id)
        snapshot = read_checkpoint(store, graph, config)
        if "revision" not in snapshot.values:
            return None
        return OpenRun(store, spec, graph, config, cast("RunState", snapshot.values), "")

    def begun(self, begun: OpenRun, caller: str, *, known: bool) -> str:
        """Say that a run has begun, or was known, and which other run of its ticket, the caller's newest, can go on."""
        run_id, ticket_id = begun.store.run_id, begun.state["ticket_id"]
        if known:
            return f"Run {run_id} exists and is in {begun.state['state']}."
        for other in runs_of_ticket(self.root, ticket_id):
            with suppress(RunDamagedError, UnknownRunError):
                run = self.peek(other)
                if run is None or other == run_id or run.state["owner"] != caller:
                    continue
                if not run.store.abandoned() and not terminal(run.state):
                    return (
                        f"Run {run_id} has begun. Run {other} of {ticket_id} is open too, in {run.state['state']}: to "
                        f"go on with that one, begin with its run_id, and end this one: `interlock abandon {run_id}`."
                    )
        return f"Run {run_id} has begun."

    def resume(self, run: OpenRun, answer: Mapping[str, Any]) -> None:
        """Hand a payload to the stage that waits for it; afterwards the run has the state that this led to."""
        run_id = run.store.run_id
        self._ends.pop(run_id, None)
        output = self._invoke(run.graph, run.config, Command(resume={run.interrupt: dict(answer)}))
        run.state = output.value
        run.interrupt = output.interrupts[0].id if output.interrupts else ""
        self._ends[run_id] = (self._database().latest(run_id)[0], run.state, run.interrupt)
        while len(self._ends) > _MAX_REMEMBERED:
            self._ends.pop(next(iter(self._ends)), None)

    def _remembered(
        self, store: TicketStore, spec: PipelineSpec, graph: PipelineGraph, config: RunnableConfig
    ) -> OpenRun | None:
        """Return a run as this process left it, when its last checkpoint is still the one of then."""
        checkpoint, state, waiting = self._ends.get(store.run_id, ("", None, ""))
        if state is None or self._database().latest(store.run_id) != (checkpoint, False):
            return None
        run = OpenRun(store, spec, graph, config, state, waiting)
        self._check_head(run)
        cut_off = self.journal.find(journal_run(store.run_id), f"{state['revision']}/tool_call")
        return run if cut_off is None else None

    def _database(self) -> TicketSaver:
        assert self._saver is not None, "a graph is compiled with a checkpointer"
        return self._saver

    def _invoke(
        self, graph: PipelineGraph, config: RunnableConfig, given: "RunInput | Command[Any] | None"
    ) -> GraphOutput[RunState]:
        """Run a graph up to where it waits or ends; its checkpoint is written once, after the lines of the journal."""
        with self._database().batch():
            return graph.invoke(  # pyright: ignore[reportUnknownMemberType]
                given, config, durability="exit", version="v2"
            )

    def _forget(self, run: OpenRun) -> None:
        """Wait at the present stage anew, without what a failed call handed in.

        LangGraph keeps the answer to an interrupt before the node runs, and would hand that one to the node again in
        place of the next. Of a call that wrote no line, nothing was judged, and nothing is to be kept.
        """
        history = run.state["history"]
        before = history[-1]["state"] if history else BEGIN
        run.graph.update_state(run.config, {}, as_node=before)  # pyright: ignore[reportUnknownMemberType]

    def _watch_spec(self, begin: RunInput, spec: PipelineSpec) -> None:
        """Write down that the rows of a pipeline are others than when the run began; they are in force from here on."""
        frozen, present = begin.get("spec_sha256"), spec.fingerprint()
        if frozen is not None and frozen != present:
            data = {"what": "pipeline", "frozen": frozen, "present": present, "applied": True}
            name = journal_run(begin.get("run_id", ""))
            self.journal.append(name, f"policy_changed/{present}", "policy_changed", data)

    def _check_head(self, run: OpenRun) -> None:
        """Refuse to go on when the journal no longer holds what the checkpoint says was written last."""
        head = run.state.get("head")
        entry = self.journal.find(journal_run(run.store.run_id), last_key(run.state))
        if head is None or entry is None or (entry.seq, entry.hash) != (head["seq"], head["hash"]):
            raise RunDamagedError(
                f"the journal no longer holds line {head and head['seq']} of ticket run {run.store.run_id} as it was "
                "written",
                "Run `interlock verify`, restore artifacts/interlock/events.jsonl from a copy, and submit again.",
            )

    def _spec(self, begin: RunInput, store: TicketStore) -> PipelineSpec:
        name = begin.get("pipeline", "")
        if name not in self.specs:
            raise RunDamagedError(
                f"ticket run {store.run_id} has the pipeline `{name[:80]}`, which is not known here",
                f"Known are {', '.join(self.specs)}; use the program that began the run.",
            )
        return self.specs[name]

    def pipeline(self, run_id: object) -> str | None:
        """Return the name of a run's pipeline, or None when there is no such run."""
        if not is_run_id(run_id):
            return None
        store = TicketStore(self.root, cast("str", run_id))
        return store.load().get("pipeline") if store.exists() else None

    def known(self, run_id: str) -> None:
        """Make sure that a run exists.

        Raises:
            UnknownRunError: There is no such run.
        """
        if not is_run_id(run_id) or not TicketStore(self.root, run_id).exists():
            raise UnknownRunError(f"there is no ticket run `{str(run_id)[:80]}` here", "`interlock status` lists them.")


def ticket_states(root: Path) -> tuple[dict[str, RunState], list[tuple[str, RunDamagedError]]]:
    """Return the states of the ticket runs below a root by run id, and those that cannot be read back.

    Nothing is changed and no lock is taken; a run that no checkpoint keeps has no state yet.
    """
    states: dict[str, RunState] = {}
    lost: list[tuple[str, RunDamagedError]] = []
    runs = OpenRuns(root)
    for run_id in list_ticket_runs(root):
        try:
            run = runs.peek(run_id)
        except RunDamagedError as error:
            lost.append((run_id, error))
        else:
            states |= {} if run is None else {run_id: run.state}
    runs.close()
    return states, lost


def _config(run_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run_id}}


def last_key(state: RunState) -> str:
    """Return the journal key of the last line that a state was made from."""
    if not state["history"]:
        return "run_started"
    last = state["history"][-1]
    return f"{last['revision']}/{ {'pass': 'transition', 'retry': 'gate', 'stop': 'fail_closed'}[last['gate']] }"
