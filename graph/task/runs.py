"""Driving a run: the one place that invokes a graph. Locks the run, reads its state, and takes it on."""

import json
import os

os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from interlock.agents.ask import REMOTE, AgentsError, Remote, Runner, RunnerError
from interlock.agents.recording import AskObserver
from interlock.gates.sealed import SealError
from interlock.graph.engine.folder import HeadRecord, journal_path, list_runs, state_dir
from interlock.graph.errors import RunAbandonedError, RunDamagedError
from interlock.graph.task.build import task_graph
from interlock.graph.task.checkpoints import checkpointer, has_checkpoints, read_state
from interlock.graph.task.earlier_runs import left_before, unapproved_bases
from interlock.graph.task.left_agents import end_left_agents
from interlock.graph.task.machine import QUESTIONS, RESUMED
from interlock.graph.task.notices import Notices
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.preflight import admitted, preflight, prepare, refusal
from interlock.graph.task.progress import Notice, Progress
from interlock.graph.task.questions import ANSWERS, NO_ANSWER, unknown_answers
from interlock.graph.task.record import Recorder
from interlock.graph.task.scope_leases import ScopeLeases, clear
from interlock.graph.task.sealing import accepted, base_of, decided_before, products_of, seal_run
from interlock.graph.task.state import TaskInput, TaskOutput, TaskState
from interlock.graph.task.store import RunStore, create_next
from interlock.graph.task.task import Task
from interlock.graph.task.view import RunView, decided, hand_in, keep_early, keep_given, resume_map, task_now, view_of
from interlock.journal import Head, Journal
from interlock.redaction import redactor_for

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
    replayed: bool = False,
    progress: Callable[[str], None] = lambda _line: None,
    accept_base: bool = False,
) -> str:
    """Check a task, freeze it with the present policy under a new run id, and return the id.

    Args:
        root: The project's root.
        task: The task.
        run_id: The id to use; default: `<TASK_ID>.<n>`.
        roles: Roles that the caller brings runners for.
        warn: Called with each warning about the task.
        replayed: The answers come from a recording: no runner is made, nor is what it needs.
        progress: Takes what happens while the tree is frozen and the tests of the base run.
        accept_base: Tests, and files that decide a gate, may be the base although an earlier run changed them and no
            gate judged them: a person has looked at them.

    Raises:
        TaskError: The task cannot start; every problem is listed, and nothing is kept.
        AgentConfigError: The settings of an agent are wrong, and nothing else is before them.
        CollectorError: The tree cannot be frozen, a test passes in the checkout and fails sealed, or the base would be
            what an earlier run left (`SEAL407`).
        ConfigError: `interlock.toml` is wrong.
    """
    prepared = prepare(root, task, roles=roles, replayed=replayed)
    faults = preflight(prepared)
    if (error := refusal(faults)) is not None:
        raise error
    for text in admitted(task, faults):
        warn(text)
    policy = prepared.policy
    task_graph(task, root=root, policy=policy, runners=dict.fromkeys(agent_roles(policy), REMOTE))
    state_dir(root)
    policy = replace(policy, sealing=seal_run(root, task, policy, progress))
    if accept_base:
        policy = replace(policy, sealing=accepted(policy.sealing))
    elif (base := base_of(root, policy.sealing)) is not None:
        products = products_of(policy.sealing).values()
        view = partial(view_run, root=root, graphs={})
        found = decided_before(base, unapproved_bases(root, task.task_id, view), task, products)
        found = found or left_before(root, task, base, products, view)
        if found is not None:
            raise SealError(found.code, found.message, found.fix)
    if run_id is None:
        return create_next(root, task, policy)
    store = RunStore(root, run_id)
    with store.locked(wait=True):
        store.create(task, policy)
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
    observer: AskObserver | None = None,
    take_up: bool = False,
) -> RunView:
    """Take a run as far as it goes: to its end, or until it waits for a remote answer. Safe to repeat.

    The run holds leases on its task's scope, unless `[run] reserve` is off; while others hold files of it, it waits
    in the queue. At its end it releases them.

    Args:
        run_id: The run, made by `start_run`.
        root: The project's root.
        answers: Responses by role name, for roles that the run waits for, or comes back to: their answer was refused,
            and the roles beside them are still at work. Such a response is kept, and judged when the re-ask comes.
        asks: By role name the ask id that its response is for; a response to another ask is not taken.
        runners: Runners by role name that replace the configured ones.
        notice: Called with each step as it happens, also from other threads; `progress.jsonl` of the run has it too.
        queue_seconds: How long to wait for files that others hold; None: as long as it takes.
        observer: Records the run, or replays a recording; see `agents.recording`.
        take_up: Where the run ended BLOCKED for a reason outside the work, go on at the steps of `RunView.failed`.

    Raises:
        UnknownRunError, RunBusyError, RunDamagedError, RunAbandonedError: See `graph.errors`.
        AnswerError: An answer was given for a role that the run does not wait for, or to an ask that is over;
            nothing was done.
        ScopeHeldError, LeasesError: The files of the scope cannot be had; nothing was done.
    """
    notices = Notices(root, run_id)
    named: dict[str, Any] = {"runners": runners, "queue_seconds": queue_seconds, "observer": observer}
    named["notice"] = notices.watching(notice)
    try:
        view, answered = _drive(run_id, root, answers or {}, asks or {}, take_up=take_up, **named)
        while answered:  # a person decided meanwhile; after a correction the graph is that of another task
            view, answered = _drive(run_id, root, {}, {}, take_up=False, **named)
    except AgentsError:
        notices.report(view_run(run_id, root=root))
        raise
    notices.report(view)
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
    observer: AskObserver | None,
    take_up: bool,
) -> tuple[RunView, bool]:
    """Return the view of a run after one graph was run, and whether the answer to a question of it is kept by now."""
    store = RunStore(root, run_id)
    store.load()
    if answers and store.driven():
        answers = keep_early(view_run(run_id, root=root), store, answers, asks)
        if not answers:
            return view_run(run_id, root=root), False
    with store.locked():
        task, policy, frozen = store.load()
        _take_on(store)
        with checkpointer(store) as saver:
            graph_of = partial(
                task_graph, root=root, policy=policy, runners=runners, checkpointer=saver, observer=observer
            )
            config = _config(run_id, policy)
            state = read_state(store, graph_of(task), config)
            task = task_now(task, state, store)
            graph, view = graph_of(task), view_of(store, task, policy, state)
            _check_records(root, view, frozen, {step.name for step in state.tasks})
            redactor = redactor_for(root, key_variables(policy))
            notice = Progress(store, redactor).writing(notice)
            texts = {role: redactor.text(text) for role, text in answers.items()}
            given = hand_in(view, state, store, texts, asks) | decided(state, store)
            view = view_of(store, task, policy, state)
            again = take_up and bool(view.failed)
            if view.phase == "done" and not again and policy.reserve:
                clear(root, run_id, task, notice)
            if (view.phase == "done" and not again) or (view.phase == "waiting" and not given):
                return view, False
            if view.phase != "new":
                Recorder(Journal(journal_path(root))).watch_policy(root, run_id, policy.fingerprints)
                _write_failures(root, store)
            start: Any = (
                {"run_id": run_id, "frozen": frozen}
                if view.phase == "new"
                else Command(resume=given)
                if given
                else None
            )
            with _leases(root, run_id, task, policy, notice, queue_seconds) as held, store.stops_noted():
                keep_given(view, store, texts)
                if again:  # the edge after BLOCKED then leads on; a kill after this line leaves a run to be resumed
                    graph.update_state(config, {"take_up": True}, as_node="BLOCKED")
                try:
                    while True:
                        _stream(graph, start, config, notice)
                        state = graph.get_state(config)
                        view = view_of(store, task, policy, state)
                        kept = resume_map(view, state, store, {}, {})
                        if not kept:
                            break
                        start = Command(resume=kept)
                except RunnerError:
                    _write_failures(root, store)
                    raise
                if held is not None and view.phase == "done":
                    held.finish()
                elif held is not None:
                    held.rest()
    return view, bool(decided(state, store)) and not store.abandoned()


def _take_on(store: RunStore) -> None:
    """Refuse a run that is over for good; end the agents that a killed process left at work in it."""
    if store.abandoned():
        raise RunAbandonedError(store.run_id)
    end_left_agents(store)


def _stream(graph: TaskGraph, start: Any, config: RunnableConfig, notice: Notice) -> None:
    for part in graph.stream(  # pyright: ignore[reportUnknownMemberType]
        start, config, stream_mode="custom", durability="sync", version="v2"
    ):
        notice(cast("Mapping[str, Any]", part["data"]))


def _write_failures(root: Path, store: RunStore) -> None:
    """Write down what runners spent before they failed; the roles that were asked beside them have ended by now."""
    recorder = Recorder(Journal(journal_path(root)))
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
    if not has_checkpoints(store):
        abandoned = store.abandoned()
        return RunView(run_id, task, policy, "done" if abandoned else "new", {}, (), (), abandoned=abandoned)
    known = {} if graphs is None else graphs
    key = json.dumps(policy.to_json()["protocol"])
    if key not in known:
        nobody = dict.fromkeys(policy.protocol.roles, REMOTE)
        known[key] = task_graph(task, root=root, policy=policy, runners=nobody)
    with checkpointer(store, read_only=True) as saver:
        graph = known[key].copy({"checkpointer": saver})
        state = read_state(store, graph, _config(run_id, policy))
        view = view_of(store, task_now(task, state, store), policy, state)
    if store.abandoned():
        return replace(view, phase="done", waiting=(), again={}, kept=(), question=None, abandoned=True)
    return view


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
        LeasesError: The store cannot be used.
    """
    if not view.policy.reserve or view.phase != "waiting":
        return
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
    entries = list(Journal(journal_path(root)).entries(view.run_id))
    store = RunStore(root, view.run_id)
    for key in unknown_answers(store, entries, view.open_keys):
        raise store.damaged(f"answers/{key}.txt", NO_ANSWER)
    head = view.head or Head(0, "")
    if head.seq:
        store.check_line(HeadRecord(seq=head.seq, hash=head.hash), entries[head.seq - 1 : head.seq])
    known = {"run_started", *view.values.get("outbox", {})} if head.seq else {"run_started"}
    for entry in entries[head.seq :]:
        of_step = (
            entry.key in known
            or entry.type in ("policy_changed", RUNNER_FAILED)
            or (entry.type == RESUMED and RESUMED in steps)
            or (entry.type in ANSWERS and bool(QUESTIONS & steps))
        )
        if not of_step and not (entry.type == "status" and entry.key.rpartition("/")[2] in steps):
            raise RunDamagedError(
                f"the journal holds line {entry.seq} of run {view.run_id}, which no step of the run wrote",
                f"Restore .interlock/runs/{view.run_id} and the journal from copies of one time, or start a new run.",
            )
