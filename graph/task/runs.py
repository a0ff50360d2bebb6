"""Driving a run: the one place that invokes its graph. Locks the run, reads its state, and takes it on.

Two things say what is true of a run. LangGraph's checkpoint says where it stands; the journal says what happened. A
step writes its lines first and its checkpoint then, so a process that is killed leaves at most lines of the step that
was cut off, and that step runs again and takes them over by their keys. `drive` refuses a run whose journal holds
anything else behind the line that the checkpoint knows: nobody but the holder of the run's lock writes there. A
person's answer to a question is such a line, written under the same lock.
"""

import json
import os

# Before LangGraph is imported, which reads it once: a checkpoint may then hold plain data only, and reading one
# cannot make objects of any class.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from interlock.agents.ask import REMOTE, AgentConfigError, Remote, Runner, RunnerError
from interlock.core.database import database_of
from interlock.core.errors import InterlockError
from interlock.gates.config import load_config
from interlock.gates.sealed import SealError, level
from interlock.graph.engine import legs
from interlock.graph.engine.folder import HeadRecord, journal_of, journal_run, list_runs, state_dir
from interlock.graph.errors import COMMENT, ENDED, IN_CHECKOUT, NO_WAY, NOT_ASKED, TREE, GraphError, RunDamagedError
from interlock.graph.sources.ticket import Fetched
from interlock.graph.sources.write_back import write_back
from interlock.graph.task.apart import drive_inside
from interlock.graph.task.build import task_graph
from interlock.graph.task.carried import save
from interlock.graph.task.clone import head_of, inside
from interlock.graph.task.comments import FIX, Comment, keep_comment
from interlock.graph.task.explain import WaitKind, waits_of
from interlock.graph.task.left_agents import end_agents_of_others, end_left_agents
from interlock.graph.task.machine import QUESTIONS, certifiers
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.preflight import admitted, check_task, preflight, prepare
from interlock.graph.task.progress import Notice, Progress
from interlock.graph.task.questions import (
    ANSWERS,
    MAX_CHARS,
    WAYS,
    AnswerKind,
    Question,
    decision_key,
)
from interlock.graph.task.record import Recorder, open_journal
from interlock.graph.task.scope_leases import ScopeLeases, clear
from interlock.graph.task.sealing import accepted, base_of, decided_before, products_of, seal_run
from interlock.graph.task.state import TaskInput, TaskOutput, TaskState
from interlock.graph.task.store import CHECKPOINTS, RunStore, create_next
from interlock.graph.task.task import CORRECTABLE, Task
from interlock.graph.task.ticket_inputs import fetch_inputs, frozen_texts, tickets_of, with_files, write
from interlock.graph.task.trees import PUT_BACK, earlier_runs
from interlock.graph.task.view import RunView, resume_map, view_of
from interlock.journal import Head
from interlock.notify import Event, post
from interlock.redaction import redactor_for
from interlock.reservations import to_read

RUNNER_FAILED: Final = "runner_failed"
"""The type of the journal line of what was spent before a runner failed."""

TaskGraph: TypeAlias = CompiledStateGraph[TaskState, None, TaskInput, TaskOutput]


def start_run(
    root: Path,
    task: Task,
    *,
    run_id: str | None = None,
    roles: tuple[str, ...] = (),
    warn: Callable[[str], None] = lambda _text: None,
    progress: Callable[[str], None] = lambda _line: None,
    accept_base: bool = False,
    tree: str = "",
    note: str = "",
    files: str = "",
    tickets: Sequence[Fetched] | None = None,
) -> str:
    """Check a task, freeze it with the present policy under a new run id, and return the id.

    Args:
        root: The project's root.
        task: The task.
        run_id: The id to use; default: `<TASK_ID>.<n>`.
        roles: Roles that the caller brings runners for.
        warn: Called with each warning about the task.
        progress: Takes what happens while the tree is frozen and the tests of the base run.
        accept_base: Tests, and files that decide a gate, may be the base although an earlier run changed them and no
            gate judged them: a person has looked at them.
        tree: The name of the tree that this process works in; `start_apart` makes one.
        note: What the builders are told beside the task.
        files: The git tree whose files the caller lays over those of the commit.
        tickets: The tickets among its inputs, where they were fetched already.

    Raises:
        TaskError: The task cannot start; every problem is listed, and nothing is kept.
        CollectorError: The tree cannot be frozen, a test passes in the checkout and fails sealed, or the base would be
            what an earlier run left (`SEAL407`).
        ConfigError: `interlock.toml` is wrong.
        GraphError: A ticket among the inputs cannot be fetched.
    """
    if not tree and database_of(root) is not None:
        message = "with a database a run works in a tree of its own, so that any worker can go on with it"
        raise GraphError(message, "Run it with `interlock run --apart TASK.toml`, or `interlock submit`.", IN_CHECKOUT)
    tickets = fetch_inputs(root, task) if tickets is None else tickets
    task = with_files(root, task)
    prepared = prepare(root, task, roles=roles)
    sandbox = bool(tree) and prepared.config.trees.sandbox == "auto" and level() == "namespaces"
    faults = preflight(replace(prepared, boxed=sandbox))
    for text in admitted(task, faults):
        warn(text)
    policy = prepared.policy
    # Compiled once and thrown away: what LangGraph would refuse is said now, before the base is tested and an id is
    # taken.
    task_graph(task, root=root, policy=policy, runners=dict.fromkeys(agent_roles(policy), REMOTE))
    state_dir(root)
    outside = prepared.config.run.outside or ("refuse" if tree else "report")
    policy = replace(policy, commit=head_of(root), tree=tree, note=note, files=files, outside=outside)
    policy = replace(policy, tickets=frozen_texts(tickets))
    if tree:
        # Nobody else works in the tree, and what others hold in the checkout is not in its way.
        policy = replace(policy, reserve=False, sandbox=sandbox)
    if not policy.tree:
        # Before the base is read: what another run's killed drive left at work would still change it.
        end_agents_of_others(root, task)
    policy = replace(policy, sealing=seal_run(root, task, policy, progress))
    if accept_base:
        # Noted in the run, so that the next one does not ask about the same files again.
        policy = replace(policy, sealing=accepted(policy.sealing))
    elif (base := base_of(policy.sealing)) is not None:
        products = products_of(policy.sealing).values()
        view = partial(view_run, root=root, graphs={})
        fault = decided_before(base, earlier_runs(root, task.task_id, view), task, products)
        if fault is not None:
            raise SealError(fault.code, fault.message, fault.fix)
    if run_id is None:
        run_id = create_next(root, task, policy)
    store = RunStore(root, run_id)
    write(root, policy.tickets)
    with store.locked(wait=True):
        store.create(task, policy)
        # Readers of the journal know the run from here on, although it may wait for its files before its first node.
        fetched = [ticket.record() for ticket in tickets]
        open_journal(Recorder(journal_of(root)), run_id, root, task, policy, policy.sealing, fetched)
    return run_id


def drive(
    run_id: str,
    *,
    root: Path,
    answers: Mapping[str, str] | None = None,
    asks: Mapping[str, str] | None = None,
    runners: Mapping[str, Runner | Remote] | None = None,
    notice: Notice | None = None,
    queue_seconds: float | None = None,
    until: str = "",
    stops: Sequence[str] = (),
) -> RunView:
    """Take a run as far as it goes: to its end, or until it waits for an answer from outside. Safe to repeat.

    The run holds leases on its task's scope, unless `[run] reserve` is off; while others hold files of it, it waits
    in the queue. At its end it releases them.

    Args:
        run_id: The run, made by `start_run`.
        root: The project's root.
        answers: Responses by role name, for roles that the run waits for.
        asks: By role name the ask id that its response is for; a response to another ask is not taken.
        runners: Runners by role name that replace the configured ones.
        notice: Called with each step as it happens, also from other threads; `progress.jsonl` of the run has it too.
        queue_seconds: How long to wait for files that others hold; None: as long as it takes.
        until: The node before which to stop; the next call goes on from there.
        stops: More of them: what another queue of workers does.

    With a database a worker does it, and this call waits.

    Raises:
        UnknownRunError, RunBusyError, RunDamagedError: See `graph.errors`.
        GraphError: The run was abandoned, an answer was given that it does not wait for, or the files of the scope
            cannot be had; nothing was done.
    """
    store = RunStore(root, run_id)
    _, policy, _ = store.load()
    if policy.tree and inside() != policy.tree and not store.abandoned():
        if runners:
            fix = "Name runners that another process can start (`python:MODULE:NAME`), or run it in the checkout."
            raise GraphError(f"run {run_id} is driven in a tree of its own, by another process", fix, TREE)
        given = {"answers": dict(answers or {}), "asks": dict(asks or {}), "until": until}
        if (database := database_of(root)) is not None:
            legs.check_workers(database)
            return follow(run_id, root=root, notice=notice, leg=legs.enqueue(database, run_id, given))
        drive_inside(run_id, root, policy.tree, {**given, "stops": []}, notice or (lambda _step: None))
        view = view_run(run_id, root=root)
        _say_end(view, root, notice)
        return view
    try:
        with store.locked():
            view = _drive(
                run_id,
                root,
                answers or {},
                asks or {},
                runners=runners,
                notice=notice,
                queue_seconds=queue_seconds,
                stops=[*stops, until] if until else [*stops],
            )
    except (AgentConfigError, RunnerError):
        # The run waits for a person now, who has to know it; the error goes on to whoever drives.
        notify_of(view_run(run_id, root=root), root, notice)
        raise
    notify_of(view, root, notice)
    return view


def follow(run_id: str, *, root: Path, notice: Notice | None = None, leg: str = "") -> RunView:
    """Wait while workers begin and drive a run, and return where it came to.

    Raises:
        InterlockError: What the leg of that id, or one after it, has refused; by default any leg of the run.
        DatabaseError: The database cannot be used; the run goes on.
    """
    legs.await_legs(legs.needed(root), run_id, leg, notice or (lambda _step: None))
    view = view_run(run_id, root=root)
    _say_end(view, root, notice)
    return view


def _drive(
    run_id: str,
    root: Path,
    answers: Mapping[str, str],
    asks: Mapping[str, str],
    *,
    runners: Mapping[str, Runner | Remote] | None,
    notice: Notice | None,
    queue_seconds: float | None,
    stops: list[str],
) -> RunView:
    """Take a run on; the caller holds it."""
    store = RunStore(root, run_id)
    task, policy, frozen = store.load()
    if store.abandoned():
        raise _ended(run_id)
    store.check_format()
    # Before the files count for anything: an agent that a killed drive left behind may still write into them.
    end_left_agents(store)
    control = RunControl()
    with checkpointer(store, draining=control.request_drain) as saver:
        graph_of = partial(task_graph, root=root, policy=policy, runners=runners, checkpointer=saver)
        config = _config(run_id, policy)
        # Any graph of the run can read its state; which task it works on now is only known from there.
        state = _read_state(store, graph_of(task), config)
        view = view_of(store, task, policy, state)
        # After a person's correction the graph is that of another task.
        graph = graph_of(view.task)
        _check_records(root, view, frozen, {step.name for step in state.tasks})
        redactor = redactor_for(root, key_variables(policy))
        notice = Progress(store, redactor).writing(notice)
        texts = {role: redactor.text(text) for role, text in answers.items()}
        # An answer for nobody is refused before the leases are waited for.
        given = resume_map(view, state, store, texts, asks)
        if view.phase == "done":
            if policy.reserve:
                clear(root, run_id, view.task, notice)
            return view
        # Looking at a run that waits takes no leases and writes nothing.
        if view.phase == "waiting" and not given:
            return view
        if view.phase != "new":
            # The first lines of a new run have its policy; of one that goes on, what differs by now is noted.
            Recorder(journal_of(root)).watch_policy(root, run_id, policy.fingerprints)
            _write_failures(root, store)
        start: Any = Command(resume=given) if given else None
        if view.phase == "new":
            start = {"run_id": run_id, "frozen": frozen}
        with _leases(root, run_id, view.task, policy, notice, queue_seconds) as held, store.stops_noted():
            # The leases may have been those of a run whose process was killed, and whose agent works on.
            if not policy.tree:
                end_agents_of_others(root, view.task, run_id)
            try:
                for part in graph.stream(  # pyright: ignore[reportUnknownMemberType]
                    start,
                    config,
                    stream_mode="custom",
                    durability="sync",
                    version="v2",
                    interrupt_before=stops or None,
                    control=control,
                ):
                    notice(cast("Mapping[str, Any]", part["data"]))
            except GraphDrained:  # the worker ends: another one goes on from this step
                pass
            except RunnerError:
                _write_failures(root, store)
                raise
            view = view_of(store, task, policy, graph.get_state(config))
            if held is not None and view.phase == "done":
                held.finish()
            elif held is not None:
                held.rest()
    return view


def _write_failures(root: Path, store: RunStore) -> None:
    """Write down what runners spent before they failed; the roles that were asked beside them have ended by now."""
    recorder = Recorder(journal_of(root))
    for key, row in store.failures():
        recorder.keep(store.run_id, key, RUNNER_FAILED, {"role": row["role"], "usage": row["usage"]})


def agent_roles(policy: Policy) -> tuple[str, ...]:
    """Return the roles of a run that are asked."""
    return tuple(role.name for role in policy.protocol.roles.values() if role.kind != "orchestrator")


Graphs: TypeAlias = dict[str, TaskGraph]
"""Graphs that were compiled to read runs, by the protocol that they follow; for several calls of `view_run`."""


def view_run(run_id: str, *, root: Path, graphs: Graphs | None = None) -> RunView:
    """Return the view of a run, without taking its lock and without changing anything.

    `graphs` is shared by calls about runs under the same tables.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
    """
    store = RunStore(root, run_id)
    task, policy, _ = store.load()
    if database_of(root) is None and not (store.folder / CHECKPOINTS).exists():
        abandoned, other = store.abandoned(), store.is_of_another_version()
        phase = "done" if abandoned else "new"
        return RunView(run_id, task, policy, phase, {}, (), (), abandoned=abandoned, of_another_version=other)
    known = {} if graphs is None else graphs
    # Nodes and edges follow from the protocol alone; to compile them takes longer than to read the state.
    key = json.dumps(policy.to_json()["protocol"])
    if key not in known:
        # Reading needs no runner: its program or its key may not be there where somebody only looks.
        nobody = dict.fromkeys(policy.protocol.roles, REMOTE)
        known[key] = task_graph(task, root=root, policy=policy, runners=nobody)
    with checkpointer(store, read_only=True) as saver:
        graph = known[key].copy({"checkpointer": saver})
        view = view_of(store, task, policy, _read_state(store, graph, _config(run_id, policy)))
    if store.abandoned():
        return replace(view, phase="done", waiting=(), question=None, abandoned=True)
    return view


def lost_lines(root: Path) -> str:
    """Return what the journal lacks of the newest run, as after a switch of branches; empty where it lacks nothing."""
    # With a database the journal here is a copy, which is made whole.
    for run_id in list_runs(root, "runs")[-1:] if database_of(root) is None else ():
        try:
            RunStore(root, run_id).lines(view_run(run_id, root=root).head)
        except InterlockError as error:
            return f"{error.message}. {error.fix}"
    return ""


def checkpoint_of(store: RunStore) -> CheckpointTuple | None:
    """Return the last checkpoint of a run; None where it has none."""
    _, policy, _ = store.load()
    if not (store.folder / CHECKPOINTS).exists():
        return None
    with checkpointer(store, read_only=True) as saver:
        return saver.get_tuple(_config(store.run_id, policy))


def kept_views(root: Path, damaged: Callable[[str, RunDamagedError], object]) -> dict[str, RunView]:
    """Return the view of each run of this root, as its checkpoint keeps it.

    Each run that cannot be read back goes to `damaged`, with why.
    """
    views: dict[str, RunView] = {}
    graphs: Graphs = {}
    for run_id in list_runs(root, "runs"):
        try:
            views[run_id] = view_run(run_id, root=root, graphs=graphs)
        except RunDamagedError as error:
            damaged(run_id, error)
    return views


def _leases(
    root: Path, run_id: str, task: Task, policy: Policy, notice: Notice | None, queue_seconds: float | None
) -> AbstractContextManager[ScopeLeases | None]:
    if not policy.reserve:
        return nullcontext()
    return ScopeLeases.open(root, run_id, task).held(notice, queue_seconds=queue_seconds)


def keep_files(view: RunView, *, root: Path, worker: str | None = None, client: str = "mcp") -> None:
    """Renew what a run holds while it waits for an answer; with a worker, lend it to that agent.

    The `worker` is the agent that was given the ask; empty is the client of this process, and None that nobody was. A
    person at the entry point `cli` may only be looking, and gets nothing; nor does an agent that only judges.

    Raises:
        GraphError: The store cannot be used.
    """
    if not view.policy.reserve or view.phase != "waiting":
        return
    # A process that drives the run holds and renews its leases itself.
    with RunStore(root, view.run_id).undriven() as mine:
        if not mine:
            return
        held = ScopeLeases.open(root, view.run_id, view.task)
        try:
            builds = any(view.policy.protocol.roles[each.role].kind == "build" for each in view.waiting)
            who = held.worker(worker, client) if worker is not None and builds else None
            if who is None or (client == "cli" and who.kind == "person"):
                held.keep()
            else:
                held.lend(who)
        finally:
            held.close()


def _config(run_id: str, policy: Policy) -> RunnableConfig:
    limit = policy.recursion_limit(len(policy.protocol.roles))
    return {"configurable": {"thread_id": run_id}, "recursion_limit": limit}


def _check_records(root: Path, view: RunView, frozen: str, steps: set[str]) -> None:
    """Refuse to go on when the frozen task or the journal is not what the checkpoint says was written.

    After the line that the checkpoint knows, a step that was cut off may have written its own lines and no others.
    """
    if view.values.get("frozen") not in (None, "", frozen):
        raise RunDamagedError(
            f"the frozen task and policy of run {view.run_id} were changed after its start",
            f"Restore .interlock/runs/{view.run_id}/run.json, or start a new run.",
        )
    entries, head = RunStore(root, view.run_id).lines(view.head), view.head or Head(0, "")
    # Events of the outbox are in the checkpoint; the step that was cut off may have begun to write them.
    expected = {"run_started", *view.values.get("outbox", {})} if head.seq else {"run_started"}
    steps_write = {
        **dict.fromkeys(("policy_changed", RUNNER_FAILED), True),
        # A person's answer is expected while a question is open; at any other time, nobody wrote it.
        **dict.fromkeys(ANSWERS.values(), bool(QUESTIONS & steps)),
        PUT_BACK: "READY_FOR_QA" in steps,
    }
    for entry in entries[head.seq :]:
        of_step = steps_write.get(entry.type, False)
        if entry.type == "status":
            # The key of a status line ends with the name of the node that writes it.
            of_step = entry.key.rpartition("/")[2] in steps
        if not of_step and entry.key not in expected:
            raise RunDamagedError(
                f"the journal holds line {entry.seq} of run {view.run_id}, which no step of the run wrote",
                f"Restore .interlock/runs/{view.run_id} and the journal from copies of one time, or start a new run.",
            )


# -- the checkpoints ---------------------------------------------------------------------------------------------------

# In earlier versions two connections that write or checkpoint at the same instant can damage the database.
SAFE_WAL: Final = (3, 51, 3)
"""From this version on several processes may write to one database in WAL mode."""

DAMAGE: Final = frozenset({1, 11, 14, 26})
"""SQLite's ERROR (no such column), CORRUPT, CANTOPEN and NOTADB; a full or slow disk says nothing about the file."""


class SetUp(SqliteSaver):
    """A saver on a database that has its tables."""

    def setup(self) -> None:
        """Do nothing: it would change the journal mode, which fails while anybody reads, and a reader must not do."""


@contextmanager
def checkpointer(
    store: RunStore, *, read_only: bool = False, draining: Callable[[], object] = lambda: None
) -> Generator[BaseCheckpointSaver[Any]]:
    """Open the run's own checkpoint database, or the shared one; whoever writes to it holds the run's lock.

    With `read_only`, nothing is written, and another process may be writing.

    Raises:
        RunDamagedError: The database is damaged, here or wherever it is used.
    """
    if (database := database_of(store.root)) is not None:
        from interlock.graph.engine.saver import FencedSaver  # noqa: PLC0415 - the extra `postgres`

        if read_only:
            yield FencedSaver(database)
            return
        task, policy, _ = store.load()
        yield FencedSaver(database, partial(save, store.root, store.run_id, task, policy), draining)
        return
    path = store.folder / CHECKPOINTS
    try:
        # Made at the first drive: until then a run has no state, and looking at it makes none.
        if not read_only and not path.exists():
            make_database(path, wal=sqlite3.sqlite_version_info >= SAFE_WAL)
        with (
            to_read(str(path)) if read_only else nullcontext(str(path)) as name,
            closing(sqlite3.connect(name, timeout=15, check_same_thread=False)) as connection,
        ):
            saver = SetUp(connection)
            # Some builds of SQLite take NORMAL for WAL by default, which may lose the last step when the power fails.
            connection.execute("PRAGMA synchronous=FULL")
            yield saver
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
            raise
        raise store.damaged(CHECKPOINTS, str(error)) from error


def make_database(path: Path, *, wal: bool) -> None:
    """Make an empty database, which gets its name only when it is whole."""
    # A kill between two tables would leave a database that looks damaged for ever.
    part = path.with_name(f".{path.name}.part")
    for leftover in path.parent.glob(f"{part.name}*"):
        leftover.unlink()
    with closing(sqlite3.connect(part)) as connection:
        SqliteSaver(connection).setup()
        if not wal:
            connection.execute("PRAGMA journal_mode=DELETE")
    part.replace(path)


def _read_state(store: RunStore, graph: TaskGraph, config: RunnableConfig) -> StateSnapshot:
    """Return the state of a run as last checkpointed.

    Raises:
        RunDamagedError: The checkpoint cannot be decoded, or does not hold the state of a run.
    """
    try:
        state = graph.get_state(config)
        head = state.values.get("head")
        whole = not head or (isinstance(head["seq"], int) and isinstance(head["hash"], str))
    except (ValueError, TypeError, LookupError, AttributeError, EOFError) as error:
        raise store.damaged(CHECKPOINTS, f"{type(error).__name__}: {error}"[:200]) from error
    if not whole:
        raise store.damaged(CHECKPOINTS, "it holds no head of a journal")
    return state


# -- what a person says ------------------------------------------------------------------------------------------------


def comment(root: Path, run_id: str, attempt: int, path: str, line: int, text: str, by: str) -> Comment:
    """Keep a comment on a line of a hand-over, also while the run is driven. Safe to repeat.

    Line breaks in the text become blanks; keys of the environment are taken out.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
        GraphError: The run is over, or the comment cannot be kept as it is.
        JournalError: The journal cannot be written.
    """
    view = view_run(run_id, root=root)
    RunStore(root, run_id).check_format()
    if view.phase == "done":
        message = f"run {run_id} is over, and nobody acts on a comment any more"
        raise GraphError(message, "Start a new run with the comment in its task.", COMMENT)
    last = int(view.values.get("attempt", 0))
    if not 0 <= attempt <= last:
        raise GraphError(f"run {run_id} has no attempt {attempt}; the last one is {last}", FIX, COMMENT)
    return keep_comment(root, run_id, attempt, path, line, text, by)


def answer_question(
    root: Path,
    run_id: str,
    kind: AnswerKind,
    *,
    number: int,
    by: str,
    reason: str = "",
    gate: str = "",
    task: Task | None = None,
) -> Question:
    """Answer what a run asks a person; `drive` then takes the run on. The first answer stays.

    Args:
        root: The project's root.
        run_id: The run.
        kind: How; see `WAYS`.
        number: The number of the question that was read; an answer to another one is not taken.
        by: The login name of who answers.
        reason: Why; needed but for `correct` and `accept`.
        gate: The gate that is waived; it may be left out, since a question about a waiver is about one gate.
        task: The corrected task, for `correct`.

    Returns:
        The question that was answered.

    Raises:
        GraphError: The answer is not taken.
        TaskError: The corrected task cannot start.
        UnknownRunError, RunDamagedError: See `graph.errors`.
    """
    store = RunStore(root, run_id)
    view = view_run(run_id, root=root)
    if view.abandoned:
        raise _ended(run_id)
    store.check_format()
    question = view.question
    # Looked at without the lock first: most wrong answers are refused without waiting for a drive.
    if question is None or question.number != number:
        _check_unanswered(store, number)
        asks = f"question {question.number} now, and not {number}" if question else "no person for a decision"
        raise GraphError(f"run {run_id} asks {asks}", f"Read what it asks: `interlock answer {run_id}`.", NOT_ASKED)
    if kind not in WAYS[question.kind] or (gate and gate not in question.gates):
        fix = f"Answer {' or '.join(WAYS[question.kind])}, about {', '.join(question.gates)}."
        raise GraphError(f"`{kind} {gate}` is not an answer to this {question.kind}", fix, NO_WAY)
    reason = redactor_for(root, key_variables(view.policy)).text(" ".join(reason.split()))[:MAX_CHARS]
    if not reason and kind in ("refuse", "waive", "decline"):
        raise GraphError(f"`{kind}` needs a reason, which the journal keeps", "Say why: --reason WHY.", NO_WAY)
    data: dict[str, Any] = {"number": number, "attempt": question.attempt, "answer": kind, "by": by, "reason": reason}
    if question.kind == "waiver":
        data |= {"gate": next(iter(question.gates)), "tree": question.tree}
    else:
        data |= {"gates": dict(question.gates), "role": question.role}
    if kind == "correct":
        task = _correction(root, view.task, view.policy, task)
        data |= {"task": task.to_json() | {"base": ""}, "task_sha256": task.fingerprint()}
        data |= {"certifiers": certifiers(view.policy.protocol, task.gates_required)}
        data |= {"changed": [name for name in CORRECTABLE if getattr(task, name) != getattr(view.task, name)]}
    with store.locked(wait=True):  # a run that asks a person is driven for a moment more, at most
        _check_unanswered(store, number)
        # Not cut, as other lines are: the run goes on with the task as it stands here.
        journal_of(root).append(run_id, decision_key(number), ANSWERS[kind], data)
    return question


def _check_unanswered(store: RunStore, number: int) -> None:
    """Refuse a second answer to a question."""
    before = store.decision(number)
    if before is not None:
        why = f": {before['reason']}" if before["reason"] else ""
        fix = f"Nothing was changed by you; `interlock explain {store.run_id}` says how the run goes on."
        raise GraphError(f"{before['by']} answered `{before['answer']}`{why}", fix, NOT_ASKED)


def _correction(root: Path, old: Task, policy: Policy, new: Task | None) -> Task:
    """Return a corrected task as this run can take it.

    Raises:
        GraphError: What it changes was frozen when the run began.
        TaskError: It could not start.
    """
    if new is None:
        raise GraphError("a correction needs the corrected task", "Give the task file: --task FILE.", NO_WAY)
    # The folder that the corrected file lies in says nothing about the task.
    kept = replace(new, base=old.base)
    frozen = ("task_id", "page", "agents", "run", "budget", "commands")
    changed = [f"`{name}`" for name in frozen if getattr(kept, name) != getattr(old, name)]
    fresh = [gate for gate in kept.gates_required if gate not in old.gates_required]
    changed += [f"the command of {gate}" for gate in fresh if policy.protocol.gate(gate).command]
    if changed or kept == old:
        message = (
            f"the correction changes {', '.join(changed) or 'nothing'}; the run froze its id, page, agents, commands"
        )
        fix = "Change its text, scope or gates, or abandon the run and start a new one."
        raise GraphError(message, fix, NO_WAY)
    check_task(kept, policy.protocol, root)
    return kept


def _ended(run_id: str) -> GraphError:
    fix = "Start a new run: interlock run TASK.toml, or a new ticket."
    return GraphError(f"run {run_id} was abandoned", fix, ENDED)


# -- notifications -----------------------------------------------------------------------------------------------------

_TITLES: Final[dict[WaitKind, str]] = {
    "objection": "an agent objects to a gate",
    "waiver": "a gate may be waived",
    "review": "a review is wanted",
    "stopped": "a run stopped",
    "blocked": "a run is BLOCKED",
}
"""The waits that notify a person; an answer that an agent may give, and a run that was cut off, are not among them."""


def notify_of(view: RunView, root: Path, notice: Notice | None = None) -> None:
    """Send the notifications for the state of a run when a drive has ended, or when it was ended for good.

    Should two processes see the same, their keys are equal, and it is sent once. What could not be delivered is said
    by `notice`; it changes nothing in the run.
    """
    run, events = view.run_id, list[Event]()
    if view.abandoned or (view.phase == "done" and view.status == "APPROVED"):
        why, how = ("abandoned", "was abandoned") if view.abandoned else ("approved", "is APPROVED")
        text = f"{run} {how}: {view.task.task}"
        events.append(Event(f"{run}/ended", "ended", why, run, f"a run {how}", text, f"interlock status {run}"))
    else:
        for wait in waits_of(view, RunStore(root, run)):
            if wait.kind in _TITLES:
                text = f"{run}: {wait.text}"
                events.append(Event(wait.key, "waits", wait.kind, run, _TITLES[wait.kind], text, wait.command))
    for failed in post(root, view.policy.notify, events):
        if notice is not None:
            notice({"kind": "not_notified", "code": failed.code, "message": failed.message})
    _say_end(view, root, notice)


def _say_end(view: RunView, root: Path, notice: Notice | None) -> None:
    """Say on the tickets of a run that it has ended, and how; not from a tree, where git does not know GitHub."""
    if view.phase != "done" or view.head is None or inside():
        return
    try:
        comment_end(root, view)
    except InterlockError as error:
        if notice is not None:
            notice({"kind": "not_notified", "code": error.code, "message": error.message})


def comment_end(root: Path, view: RunView) -> list[str]:
    """Say on the tickets of a run that has ended how it did, once, and return the tickets that have the comment.

    Raises:
        GraphError: A source refuses it.
    """
    assert view.head is not None
    end, head = "abandoned" if view.abandoned else str(view.status), HeadRecord(seq=view.head.seq, hash=view.head.hash)
    said = "" if end == "APPROVED" else "\n".join(view.values.get("fail_reasons", ()))
    return write_back(root, view.run_id, tickets_of(root, view.task), end, head, said=said)


def notify_ticket_end(root: Path, run_id: str, *, complete: bool, state: str) -> None:
    """Send the notification of the end of a ticket run, as the project's present configuration says."""
    name = journal_run(run_id)
    why, how = ("complete", "is complete") if complete else ("blocked", f"failed closed in {state}")
    event = Event(f"{name}/ended", "ended", why, name, f"a ticket {how}", f"{name} {how}", f"interlock status {run_id}")
    with suppress(InterlockError):
        post(root, load_config(root).notify, [event])
