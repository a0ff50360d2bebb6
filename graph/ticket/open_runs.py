"""Ticket runs held open: the one place that invokes the graph of a pipeline, and that writes what a step carries.

The order of a step, under the lock of the run:

1. The checkpointer says where the run stands; what the last step carries is in the journal, or is written now.
2. The interrupt of the present stage is resumed by its id. With `durability="exit"` the graph writes twice as it stops
   at the next stage: the checkpoint with the new state, then the interrupt that waits there. Both are one transaction,
   which is rolled back where the node failed.
3. The lines of the state are appended to the journal, the copies for people and the notification are written, and the
   ticket goes into the snapshots: last, so that it marks a step that is whole.

A kill before the commit of 2 leaves the run as it was. After it, step 1 of the next call does the rest of 3. That
transaction is why no other checkpointer is taken: one that commits each write by itself could leave a stage that waits
for nothing, or the answer to a node that failed, which LangGraph would hand out in place of the next one.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

# LangGraph reads this as it is imported. Then a checkpoint holds plain values alone: one that somebody else wrote
# cannot have objects made of any class that it names.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from interlock.core.errors import InterlockError
from interlock.core.locks import locked
from interlock.gates.git_files import list_tree
from interlock.graph.engine.folder import (
    ABANDONED,
    HeadRecord,
    is_run_id,
    journal_of,
    journal_run,
    restore,
    snapshots_of,
    state_dir,
)
from interlock.graph.errors import ENDED, GraphError, RunDamagedError, UnknownRunError
from interlock.graph.sources.write_back import write_back
from interlock.graph.task.runs import DAMAGE, SetUp, make_database, notify_ticket_end
from interlock.graph.ticket.build import PipelineGraph, lists_files, now, pipeline_graph
from interlock.graph.ticket.contract import FAIL_CLOSED, Ticket
from interlock.graph.ticket.spec import SPECS, PipelineSpec
from interlock.graph.ticket.state import Answer, Line, RunInput, RunState, earlier, issue_ticket, terminal, ticket_steps
from interlock.graph.ticket.store import TicketStore
from interlock.journal import Journal
from interlock.redaction import redactor_for

CHECKPOINTS: Final = "checkpoints.sqlite"
"""The file below `.interlock/tickets` with the checkpoints of all ticket runs of a project."""

_LOG: Final = logging.getLogger("interlock.tickets")
_START: Final = HeadRecord(seq=0, hash="0" * 64)


@dataclass(slots=True)
class OpenRun:
    """One run held open by a call."""

    store: TicketStore
    spec: PipelineSpec
    state: RunState
    interrupt_id: str = ""

    @property
    def ticket(self) -> Ticket:
        """The authoritative ticket."""
        return issue_ticket(self.spec, self.state)


class Connection(sqlite3.Connection):
    """A connection that keeps the writes of one step in one transaction; the saver commits each of them by itself."""

    held = False

    def commit(self) -> None:
        """Commit, unless a step is being taken."""
        if not self.held:
            super().commit()


class OpenRuns:
    """The ticket runs of one root; graphs and checkpointer are made once."""

    def __init__(self, root: Path, specs: Mapping[str, PipelineSpec] = SPECS) -> None:
        self.root = root.resolve()
        self.specs = dict(specs)
        self.journal = journal_of(self.root)
        self.snapshots = snapshots_of(self.root)
        self._database = self.root / ".interlock" / "tickets" / CHECKPOINTS
        self._connection: Connection | None = None
        self._saver: SqliteSaver | None = None
        self._stepping = threading.RLock()
        self._graphs: dict[str, PipelineGraph] = {}

    # -- looking: without the lock, and nothing is written ---------------------------------------------------------

    def find(self, run_id: object) -> TicketStore | None:
        """Return the files of a run, or None when there is no such run."""
        # A text that has not the form of a run id never becomes a path.
        store = TicketStore(self.root, cast("str", run_id)) if is_run_id(run_id) else None
        return store if store is not None and store.exists() else None

    def pipeline(self, run_id: object) -> str | None:
        """Return the name of a run's pipeline, or None when there is no such run."""
        store = self.find(run_id)
        return None if store is None else store.load().get("pipeline")

    def known(self, run_id: str) -> TicketStore:
        """Return the files of a run that must exist.

        Raises:
            UnknownRunError: There is no such run.
        """
        store = self.find(run_id)
        if store is None:
            raise UnknownRunError(f"there is no ticket run `{str(run_id)[:80]}` here", "`interlock status` lists them.")
        return store

    def peek(self, run_id: str) -> OpenRun | None:
        """Read a run; None when it was cut off as it began.

        Raises:
            RunDamagedError: It cannot be read back.
        """
        store = self.known(run_id)
        # A step writes its checkpoint before its lines: whoever sees a line finds a checkpoint.
        has_lines = self.journal.head(journal_run(run_id)) is not None
        spec, state = self._spec(store.load(), store), self.stored(store)
        if state is None and has_lines:
            raise _lost(store)
        return None if state is None else self._run(store, spec, state)

    def stored(self, store: TicketStore) -> RunState | None:
        """Return the state of a run as its last checkpoint has it, whether or not its pipeline is known here."""
        store.load()
        if not self._database.exists():
            return None
        with self._readable(store), self._stepping:
            # Read without the graph, so that a run whose pipeline is gone can still be looked at.
            saved = self.checkpoints().get_tuple(_config(store))
            return None if saved is None else cast("RunState", saved.checkpoint["channel_values"])

    # -- the steps of a run: the caller holds its lock -------------------------------------------------------------

    def open(self, store: TicketStore) -> OpenRun:
        """Return a run that can be resumed, and finish what a killed call left half done.

        Raises:
            GraphError: It was ended for good.
            RunDamagedError: Checkpoint and journal do not fit together.
        """
        begin, config = store.load(), _config(store)
        spec = self._spec(begin, store)
        with self._readable(store), self._stepping:
            graph = self._graph(spec)
            snapshot = graph.get_state(config)
        # The run was kept and killed before its first checkpoint, so it begins now.
        if not snapshot.values:
            if self.journal.head(journal_run(store.run_id)) is not None:
                raise _lost(store)
            given: RunInput = {**begin, "before": _START, "at": now()}
            if spec.acts:
                given["tree"] = store.keep_tree(list_tree(self.root))
            self._invoke(graph, given, config)
            with self._stepping:
                snapshot = graph.get_state(config)
        run = self._run(store, spec, cast("RunState", snapshot.values))
        if run.state["abandoned"]:
            fix = "Begin a new run of the ticket with interlock_begin_run(ticket_id)."
            raise GraphError(f"ticket run {store.run_id} was abandoned", fix, ENDED)
        if snapshot.interrupts:
            run.interrupt_id = snapshot.interrupts[0].id
        elif not terminal(run.state):
            raise self._damaged(store, ValueError(f"pipeline {spec.name} has no stage {run.state['state']} any more"))
        self._write(run)
        # A ticket that Interlock fetched passes the first stage here, before anybody can submit another one for it.
        if run.interrupt_id and run.state["revision"] == 1 and (payload := begin.get("fetched")):
            self.resume(run, Answer(payload=payload, tool="source"))
            run.interrupt_id = self._graph(spec).get_state(config).interrupts[0].id
        return run

    def resume(self, run: OpenRun, answer: Answer) -> None:
        """Answer the present stage; afterwards the run has the state that this led to, and its records say so.

        Raises:
            TreeError: The files of the project cannot be listed; nothing happened.
        """
        answer = cast("Answer", {**answer, "at": now(), "before": self._end(run)})
        if "refused" not in answer and lists_files(run.spec, run.spec.stage(run.state["state"])):
            # Kept as a file, so that each further checkpoint holds a digest and not thousands of names.
            answer["tree"] = run.store.keep_tree(list_tree(self.root))
        command: Command[Any] = Command(resume={run.interrupt_id: answer})
        run.state = self._invoke(self._graph(run.spec), command, _config(run.store))
        self._write(run)

    def abandon(self, store: TicketStore) -> bool:
        """End a run for good: its last checkpoint says so, and a line of the journal.

        Returns:
            Whether this call ended it.
        """
        try:
            run = self.open(store)
        except GraphError as error:
            if error.code != ENDED:
                raise
            return False
        if terminal(run.state):
            return False
        line = Line(key=ABANDONED, type=ABANDONED, data={"state": run.state["state"]})
        step = {"abandoned": True, "lines": [line], "before": self._end(run), "at": now()}
        with self._one_commit():
            # As if its last node had run: no edge leads on from there, and the run waits for nothing any more.
            self._graph(run.spec).update_state(_config(store), step, as_node=FAIL_CLOSED)
        run.state = cast("RunState", {**run.state, **step})
        self._write(run)
        return True

    def _invoke(self, graph: PipelineGraph, given: RunInput | Command[Any], config: RunnableConfig) -> RunState:
        with self._one_commit():
            output = graph.invoke(  # pyright: ignore[reportUnknownMemberType]
                given, config, durability="exit", version="v2"
            )
        return output.value

    @contextmanager
    def _one_commit(self) -> Generator[None]:
        """Write what a step leaves in one transaction, or nothing; other threads of this process wait."""
        with self._stepping:
            self.checkpoints()
            connection = self._connection
            assert connection is not None, "the checkpointer has one"
            connection.held = True
            try:
                yield
            except BaseException:
                connection.rollback()
                raise
            finally:
                connection.held = False
            connection.commit()

    # -- the records -----------------------------------------------------------------------------------------------

    def _write(self, run: OpenRun) -> None:
        """Write what the last step carries, as far as it is not there yet."""
        store, state, name = run.store, run.state, journal_run(run.store.run_id)
        # Is the first line of the step there, then it ended before that line; else it ends at the head of the run.
        first = self.journal.find(name, state["lines"][0]["key"])
        head = self.journal.head(name)
        before = _START if head is None else HeadRecord(seq=head.seq, hash=head.hash)
        if first is not None:
            before = HeadRecord(seq=first.seq - 1, hash=first.prev)
        end = state["before"]["seq"] + len(state["lines"])
        if before != state["before"] or (head is not None and head.seq > end):
            raise RunDamagedError(
                f"the journal lines of ticket run {store.run_id} are not those that its checkpoint follows from",
                restore("submit again"),
            )
        lines = [(line["key"], line["type"], line["data"]) for line in state["lines"]]
        if head is None or head.seq < end:
            self.journal.extend(name, lines, at=state["at"])
        revision = str(state["revision"])
        # A refusal stays at its revision, whose ticket is there already; an abandoned run issues none.
        if state["abandoned"] or self.snapshots.find(name, revision) is not None:
            return
        copies: dict[str, Mapping[str, Any]] = {}
        if state["history"] and "payload" in state["history"][-1]:
            copies[state["history"][-1]["state"]] = state["history"][-1]["payload"]
        if terminal(state):
            copies["ticket"] = cast("dict[str, Any]", run.ticket)
            notify_ticket_end(self.root, store.run_id, complete=state["done"], state=state["state"])
            try:
                self.comment_end(run)
            except (InterlockError, OSError) as error:
                # The run has ended anyway; `interlock source comment` tries it again.
                _LOG.warning("the end of %s is not said on its ticket: %s", name, error)
        if copies:
            store.write_copies(copies)
        self.snapshots.append(name, revision, "ticket", cast("dict[str, Any]", run.ticket), at=state["at"])

    def comment_end(self, run: OpenRun) -> list[str]:
        """Say the end of a run on the ticket that Interlock fetched for it; see `graph.sources.write_back`."""
        state, source = run.state, run.state.get("source")
        names = [] if source is None else [f"{source['source']}:{source['id']}"]
        said = str(earlier(state).get("final_summary", ""))
        return write_back(self.root, journal_run(run.store.run_id), names, state["state"], self._end(run), said=said)

    def _end(self, run: OpenRun) -> HeadRecord:
        head = self.journal.head(journal_run(run.store.run_id))
        assert head is not None, "an open run has written its lines"
        return HeadRecord(seq=head.seq, hash=head.hash)

    # -- graphs and checkpoints ------------------------------------------------------------------------------------

    def _run(self, store: TicketStore, spec: PipelineSpec, state: RunState) -> OpenRun:
        try:
            issue_ticket(spec, state)
        except (LookupError, TypeError, AttributeError) as error:
            raise self._damaged(store, error) from error
        return OpenRun(store, spec, state)

    def _spec(self, begin: RunInput, store: TicketStore) -> PipelineSpec:
        name = begin.get("pipeline", "")
        if name not in self.specs:
            raise RunDamagedError(
                f"ticket run {store.run_id} has the pipeline `{name[:80]}`, which is not known here",
                f"Known are {', '.join(self.specs)}; use the program that began the run.",
            )
        return self.specs[name]

    def _graph(self, spec: PipelineSpec) -> PipelineGraph:
        with self._stepping:
            saver = self.checkpoints()
            if spec.name not in self._graphs:
                self._graphs[spec.name] = pipeline_graph(spec, root=self.root, checkpointer=saver)
            return self._graphs[spec.name]

    def checkpoints(self) -> SqliteSaver:
        """Return the checkpointer, made at its first use."""
        with self._stepping:
            path = self._database
            # Whoever followed the fix of a damaged file has moved it away under this server: it is made anew.
            if self._saver is None or not path.exists():
                state_dir(self.root)
                path.parent.mkdir(exist_ok=True)
                with (path.parent / ".lock").open("ab") as file, locked(file):
                    if not path.exists():
                        # SQLite before 3.51.3 can damage a database in WAL mode that several processes write to.
                        make_database(path, wal=False)
                self._connection = _connect(path)
                self._saver = SetUp(self._connection)
                self._graphs.clear()
            return self._saver

    @contextmanager
    def _readable(self, store: TicketStore) -> Generator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            # A locked or full database says nothing about the file.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
                raise
            raise self._damaged(store, error) from error
        except (ValueError, TypeError, LookupError, EOFError) as error:
            raise self._damaged(store, error) from error

    def _damaged(self, store: TicketStore, error: Exception) -> RunDamagedError:
        return RunDamagedError(
            f".interlock/tickets/{CHECKPOINTS} cannot be read back for run {store.run_id}: {error}"[:300],
            "Restore .interlock/tickets from a copy, or move it away and begin new runs.",
        )


class Records(NamedTuple):
    """How far the records of a run go, read before its checkpoint: a step writes that first."""

    lines: int
    snapshots: int


def differences(state: RunState, seen: Records, journal: Journal, snapshots: Journal) -> Iterator[tuple[Path, str]]:
    """Yield what the records of a run hold otherwise than its checkpoint says, each with the file that it is in.

    The records may be written on meanwhile, so `seen` alone shows what is too much.
    """
    name, revision = journal_run(state["run_id"]), state["revision"]
    clean, first = redactor_for(journal.path).value, state["before"]["seq"] + 1
    whole = True
    for number, line in enumerate(state["lines"], first):
        entry = journal.find(name, line["key"])
        whole = whole and entry is not None
        if entry is not None and (entry.seq, entry.type, entry.data) != (number, line["type"], clean(line["data"])):
            yield journal.path, f"line {entry.seq}, {line['key']}, which is not what the step wrote as line {number}"
    if seen.lines >= first + len(state["lines"]):
        yield journal.path, f"{seen.lines} lines, and the last step ended with line {first + len(state['lines']) - 1}"
    # A refusal has had its ticket since the attempt before it; an attempt that was cut off may lack its own.
    ticket = snapshots.find(name, str(revision))
    if seen.snapshots > revision or (ticket is None and (_is_refusal(state) or seen.snapshots < revision - 1)):
        yield snapshots.path, f"snapshots up to revision {seen.snapshots}, and the run is at {revision}"
    if ticket is not None and ticket.data["history"] != ticket_steps(state):
        yield snapshots.path, "another history than that of the last ticket"
    if ticket is not None and not whole and not _is_refusal(state):
        yield journal.path, "not all lines of the last step, which its snapshot follows"


def unwritten(state: RunState, journal: Journal, snapshots: Journal) -> str | None:
    """Return what the last step of a run carries and a kill kept it from writing; the next call writes it."""
    name, revision = journal_run(state["run_id"]), str(state["revision"])
    keys = [line["key"] for line in state["lines"] if journal.find(name, line["key"]) is None]
    if keys:
        return f"{name}: the journal lines {', '.join(keys)}"
    return None if snapshots.find(name, revision) is not None else f"{name}: the snapshot of revision {revision}"


def _is_refusal(state: RunState) -> bool:
    """Return whether the last step issued no ticket of its own."""
    return state["lines"][-1]["type"] in ("tamper_refused", ABANDONED)


def _lost(store: TicketStore) -> RunDamagedError:
    return RunDamagedError(
        f"ticket run {store.run_id} has lines in the journal and no checkpoint",
        "Restore .interlock/tickets from a copy, or begin a new run.",
    )


def _config(store: TicketStore) -> RunnableConfig:
    return {"configurable": {"thread_id": store.run_id}}


def _connect(path: Path) -> Connection:
    connection = sqlite3.connect(path, timeout=15, check_same_thread=False, factory=Connection)
    # An answered step survives a power cut. PERSIST empties the rollback file in place of removing it at each commit.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA journal_mode=PERSIST")
    return connection
