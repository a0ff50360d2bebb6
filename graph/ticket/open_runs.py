"""Ticket runs held open: their states made from their journal lines, and what a killed call left finished."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from interlock.graph.engine.folder import (
    ABANDONED,
    HeadRecord,
    Pin,
    is_run_id,
    journal_path,
    journal_run,
    restore,
    runs_of,
    snapshots_path,
)
from interlock.graph.errors import RunAbandonedError, RunDamagedError, UnknownRunError
from interlock.graph.task.notices import notify_ticket_end
from interlock.graph.ticket.build import Nodes, PipelineGraph, compiled
from interlock.graph.ticket.contract import Ticket
from interlock.graph.ticket.machine import rebuild
from interlock.graph.ticket.spec import SPECS, PipelineSpec
from interlock.graph.ticket.state import RunInput, RunState, issue_ticket, terminal
from interlock.graph.ticket.store import TicketStore, may_be_of
from interlock.journal import Entry, Journal

_MAX_REMEMBERED: Final = 256
"""So many runs are remembered between two calls."""

_MAX_LOOKED_AT: Final = 16
"""So many other runs of a ticket are looked at for one that is open."""

_RESTORE: Final = restore("submit again")


@dataclass(slots=True)
class OpenRun:
    """One run held open by a call."""

    store: TicketStore
    spec: PipelineSpec
    state: RunState

    @property
    def ticket(self) -> Ticket:
        """The authoritative ticket."""
        return issue_ticket(self.spec, self.state)


class OpenRuns:
    """The ticket runs of one root; the one place that invokes the graph of a pipeline.

    The journal says where a run is: its lines are checked and folded into its state, and each call enters the graph
    with that state at the present stage. Nothing of a call is kept but what it wrote: one that failed is simply gone.
    """

    def __init__(self, root: Path, specs: Mapping[str, PipelineSpec] = SPECS) -> None:
        self.root = root.resolve()
        self.specs = dict(specs)
        self.journal = Journal(journal_path(self.root))
        self.snapshots = Journal(snapshots_path(self.root))
        self._guard = threading.Lock()
        self._graphs: dict[str, tuple[Nodes, PipelineGraph]] = {}
        self._known: dict[str, RunState] = {}

    def open(self, store: TicketStore) -> OpenRun:
        """Read a run, and finish what a killed call left half done; the caller holds the run's lock."""
        begin = store.load()
        if store.abandoned() or self.journal.find(journal_run(store.run_id), ABANDONED) is not None:
            raise RunAbandonedError(store.run_id)
        spec = self._spec(begin, store)
        run = self._remembered(store, spec)
        if run is None:
            run = self._read(store, spec)
            if run is None:
                run = OpenRun(store, spec, cast("RunState", begin))
                self._invoke(run)
            elif (store.pin() or {}).get("head") != run.state.get("head"):
                self._keep(run, self._graph(spec)[0].settled(run.state))
        if not terminal(run.state):
            self._watch_spec(begin, spec)
            cut_off = self.journal.find(journal_run(store.run_id), f"{run.state['revision']}/tool_call")
            if cut_off is not None:
                self.resume(run, dict(cut_off.data))
        return run

    def look(self, run_id: str) -> OpenRun:
        """Read a run without its lock; one that has no line in the journal yet gets it first."""
        run = self.peek(run_id)
        if run is not None:
            return run
        store = TicketStore(self.root, run_id)
        with store.locked():
            return self.open(store)

    def peek(self, run_id: str) -> OpenRun | None:
        """Read a run and change nothing; None when the journal holds no line of it."""
        self.known(run_id)
        store = TicketStore(self.root, run_id)
        return self._read(store, self._spec(store.load(), store))

    def begun(self, begun: OpenRun, caller: str, *, known: bool) -> str:
        """Return that a run has begun or was known, and the newest other run of its ticket and caller that is open."""
        run_id, ticket_id = begun.store.run_id, begun.state["ticket_id"]
        if known:
            return f"Run {run_id} exists and is in {begun.state['state']}."
        for other in runs_of(self.root, "tickets", ticket_id, partial(may_be_of, ticket_id))[:_MAX_LOOKED_AT]:
            with suppress(RunDamagedError, UnknownRunError):
                run = None if other == run_id else self.peek(other)
                if run is None or run.state["owner"] != caller or run.store.abandoned() or terminal(run.state):
                    continue
                return (
                    f"Run {run_id} has begun. Run {other} of {ticket_id} is open too, in {run.state['state']}: to "
                    f"go on with that one, begin with its run_id, and end this one: `interlock abandon {run_id}`."
                )
        return f"Run {run_id} has begun."

    def resume(self, run: OpenRun, answer: Mapping[str, Any]) -> None:
        """Hand an answer to the present stage; afterwards the run has the state that this led to."""
        self._known.pop(run.store.run_id, None)
        self._invoke(run, answer)

    def _invoke(self, run: OpenRun, answer: Mapping[str, Any] | None = None) -> None:
        """Enter the graph with the state of a run, and take it as far as the next submission."""
        context = None if answer is None else {"revision": run.state["revision"], "answer": dict(answer)}
        output = self._graph(run.spec)[1].invoke(  # pyright: ignore[reportUnknownMemberType]
            cast("RunInput", run.state), context=cast("Any", context), version="v2"
        )
        self._keep(run, output.value)

    def _keep(self, run: OpenRun, state: RunState) -> None:
        """Keep how far the records of a run go: the last thing that a step writes."""
        run.state = state
        assert "head" in state, "the last node of a step pins it"
        assert "snapshots" in state, "the last node of a step pins it"
        run.store.keep_pin(Pin(head=state["head"], snapshots=state["snapshots"]))
        self._known[run.store.run_id] = state
        if terminal(state):
            notify_ticket_end(self.root, run.store.run_id, complete=state["done"], state=state["state"])
        while len(self._known) > _MAX_REMEMBERED:
            self._known.pop(next(iter(self._known)), None)

    def _remembered(self, store: TicketStore, spec: PipelineSpec) -> OpenRun | None:
        """Return a run as this process left it, unless another one went on with it."""
        state = self._known.get(store.run_id)
        if state is None:
            return None
        name = journal_run(store.run_id)
        assert "head" in state, "it was kept with its pin"
        last = self.journal.find(name, last_key(state))
        store.check_line(state["head"], () if last is None else (last,))
        gone_on = self.journal.find(name, f"{state['revision']}/tool_call") is not None
        return None if gone_on else OpenRun(store, spec, state)

    def _read(self, store: TicketStore, spec: PipelineSpec) -> OpenRun | None:
        """Check the journal lines of a run, and return the state that they lead to; None where there are none."""
        name = journal_run(store.run_id)
        # A step writes the journal first, then the snapshots and the pin; who reads them the other way sees no gap.
        pin = store.pin()
        snapshots = self.snapshots.head(name)
        entries = list(self.journal.entries(name))
        if pin is not None:
            store.check_line(pin["head"], entries[pin["head"]["seq"] - 1 :][:1])
        state = fold(store, entries, self.specs)
        if state is None:
            return None
        if state["pipeline"] != spec.name:
            raise RunDamagedError(
                f"the journal holds ticket run {store.run_id} as one of {state['pipeline']}, not {spec.name}",
                "Begin a run of another id.",
            )
        if snapshots is not None and snapshots.seq > state["revision"]:
            raise RunDamagedError(
                f"the journal leads ticket run {store.run_id} to revision {state['revision']}, and its snapshots go to "
                f"revision {snapshots.seq}",
                _RESTORE,
            )
        if snapshots is not None and snapshots.seq == state["revision"]:
            state["snapshots"] = HeadRecord(seq=snapshots.seq, hash=snapshots.hash)
        return OpenRun(store, spec, state)

    def _graph(self, spec: PipelineSpec) -> tuple[Nodes, PipelineGraph]:
        with self._guard:
            if spec.name not in self._graphs:
                nodes = Nodes(spec, self.root, self.journal, self.snapshots)
                self._graphs[spec.name] = nodes, compiled(nodes)
            return self._graphs[spec.name]

    def _watch_spec(self, begin: RunInput, spec: PipelineSpec) -> None:
        """Write down that the rows of a pipeline are others than when the run began; they are in force from here on."""
        frozen, present = begin.get("spec_sha256"), spec.fingerprint()
        if frozen is not None and frozen != present:
            data = {"what": "pipeline", "frozen": frozen, "present": present, "applied": True}
            name = journal_run(begin.get("run_id", ""))
            self.journal.append(name, f"policy_changed/{present}", "policy_changed", data)

    def _spec(self, begin: RunInput, store: TicketStore) -> PipelineSpec:
        name = begin.get("pipeline", "")
        if name not in self.specs:
            raise RunDamagedError(
                f"ticket run {store.run_id} has the pipeline `{name[:80]}`, which is not known here",
                f"Known are {', '.join(self.specs)}; use the program that began the run.",
            )
        return self.specs[name]

    def find(self, run_id: object) -> TicketStore | None:
        """Return the files of a run, or None when there is no such run."""
        store = TicketStore(self.root, cast("str", run_id)) if is_run_id(run_id) else None
        return store if store is not None and store.exists() else None

    def pipeline(self, run_id: object) -> str | None:
        """Return the name of a run's pipeline, or None when there is no such run."""
        store = self.find(run_id)
        return None if store is None else store.load().get("pipeline")

    def known(self, run_id: str) -> None:
        """Make sure that a run exists.

        Raises:
            UnknownRunError: There is no such run.
        """
        if self.find(run_id) is None:
            raise UnknownRunError(f"there is no ticket run `{str(run_id)[:80]}` here", "`interlock status` lists them.")


def fold(store: TicketStore, entries: Iterable[Entry], specs: Mapping[str, PipelineSpec]) -> RunState | None:
    """Return the state that the journal lines of a run lead to; None where there are none.

    Raises:
        RunDamagedError: They do not follow from one another.
    """
    try:
        return rebuild(entries, specs).get(store.run_id)
    except ValueError as error:
        raise RunDamagedError(
            f"the journal lines of ticket run {store.run_id} do not follow from one another: {error}", _RESTORE
        ) from error


def last_key(state: RunState) -> str:
    """Return the journal key of the last line that a state was made from."""
    if not state["history"]:
        return "run_started"
    last = state["history"][-1]
    return f"{last['revision']}/{ {'pass': 'transition', 'retry': 'gate', 'stop': 'fail_closed'}[last['gate']] }"
