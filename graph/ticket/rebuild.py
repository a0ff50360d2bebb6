"""Building the states of ticket runs from their journal lines alone, and holding them against the checkpoints."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from interlock.graph.engine.folder import HeadRecord
from interlock.graph.ticket.machine import GATE_EVENTS, apply, begun, check_attempt
from interlock.graph.ticket.spec import SPECS, PipelineSpec
from interlock.graph.ticket.state import RunState
from interlock.journal import Entry

_PREFIX: Final = "ticket:"
_GATES: Final = frozenset(GATE_EVENTS.values())


class Rebuilder:
    """Folds journal lines to the states of their ticket runs; lines of other runs are passed over."""

    def __init__(self, specs: Mapping[str, PipelineSpec] = SPECS) -> None:
        self.specs = specs
        self.states: dict[str, RunState] = {}
        self._calls: dict[str, Mapping[str, Any]] = {}
        self._foreign: set[str] = set()

    def take(self, entry: Entry) -> None:
        """Take one line, in the order of the journal.

        Raises:
            ValueError: The line does not follow from those before it.
        """
        if not entry.run.startswith(_PREFIX):
            return
        run_id = entry.run.removeprefix(_PREFIX)
        try:
            self._take(run_id, entry)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{entry.type}: {type(error).__name__}: {error}"[:200]) from error

    def _take(self, run_id: str, entry: Entry) -> None:
        if entry.type == "run_started" and entry.data["pipeline"] not in self.specs:
            self._foreign.add(run_id)
        if run_id in self._foreign:
            return
        if entry.type == "run_started":
            if run_id in self.states:
                raise ValueError("run_started of a run that has begun")
            state = begun(entry.data, self.specs[entry.data["pipeline"]], entry.at)
        elif entry.type == "tool_call":
            self._calls[run_id] = entry.data
            return
        elif entry.type in _GATES:
            state = self._after(self.states[run_id], entry)
        elif entry.type in {"transition", "fail_closed"}:
            state = self.states[run_id]
            if (entry.data["to"], entry.data["revision"]) != (state["state"], state["revision"]):
                raise ValueError(f"{entry.type} to {entry.data['to']}, but the gate led to {state['state']}")
        else:
            return
        state["head"] = HeadRecord(seq=entry.seq, hash=entry.hash)
        self.states[run_id] = state

    def _after(self, state: RunState, entry: Entry) -> RunState:
        call, gate = self._calls[state["run_id"]], entry.data
        check_attempt(self.specs[state["pipeline"]], state, entry.type, gate)
        if call["revision"] != state["revision"]:
            raise ValueError(f"tool_call of revision {call['revision']} in a run at {state['revision']}")
        return apply(state, call["payload"], gate, entry.at)


def rebuild(entries: Iterable[Entry], specs: Mapping[str, PipelineSpec] = SPECS) -> dict[str, RunState]:
    """Return the state of every ticket run in some journal lines, by run id.

    Raises:
        ValueError: A line does not follow from those before it.
    """
    rebuilder = Rebuilder(specs)
    for entry in entries:
        rebuilder.take(entry)
    return rebuilder.states
