"""Ending runs for good, and removing what ended runs keep below `.interlock`."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.files import write_atomically
from interlock.graph.engine.folder import ABANDONED, PRUNED, beside_run, journal_path, list_runs
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.left_agents import end_left_agents
from interlock.graph.task.record import Recorder
from interlock.graph.task.runs import Graphs, notify_of, view_run
from interlock.graph.task.scope_leases import clear
from interlock.graph.task.store import RunStore
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Journal

_DAY_SECONDS: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over, and whose folder can go.

    `status` is empty for one abandoned before it had any; `days` counts from its last step.
    """

    run_id: str
    status: str
    days: float
    abandoned: bool


def abandon(root: Path, run_id: str) -> bool:
    """End a task run for good: a journal line, its leases released, and nobody can take it on. Safe to repeat.

    Returns:
        Whether this call ended it; False when it was over before.

    Raises:
        UnknownRunError: There is no such run.
        RunBusyError: A process drives it at this moment.
        RunDamagedError: It cannot be read back.
    """
    store = RunStore(root, run_id)
    with store.locked():
        view = view_run(run_id, root=root)
        end_left_agents(store)
        open_before = not view.abandoned and view.phase != "done"
        if open_before:
            data = {"status": view.status, "attempt": view.values.get("attempt", 0)}
            Recorder(Journal(journal_path(root))).keep(run_id, ABANDONED, ABANDONED, data)
            # The line first: a kill between the two leaves a run that can be abandoned again, and never one that
            # ended unsaid.
            write_atomically(store.folder / ABANDONED, b"")
        if view.policy.reserve:
            clear(root, run_id, view.task)
    if open_before:
        notify_of(view_run(run_id, root=root), root)
    return open_before


def abandon_ticket(root: Path, run_id: str) -> bool:
    """End a ticket run for good, as `abandon` ends that of a task.

    Raises:
        UnknownRunError, RunBusyError, RunDamagedError: As for `abandon`.
    """
    runs = Tickets(root).open_runs
    store = runs.known(run_id)
    with store.locked():
        return runs.abandon(store)


def ended_runs(root: Path, *, older_than_days: float = 0.0) -> Iterator[Ended]:
    """Yield the task runs that are over: APPROVED, BLOCKED or abandoned.

    A run that cannot be read back is none.
    """
    graphs: Graphs = {}
    for run_id in list_runs(root, "runs"):
        folder = RunStore(root, run_id).folder
        try:
            view = view_run(run_id, root=root, graphs=graphs)
        except RunDamagedError:
            continue
        # The newest file of the folder, since steps, answers and progress each write another one.
        days = (time.time() - max(path.stat().st_mtime for path in folder.iterdir())) / _DAY_SECONDS
        if view.phase == "done" and days >= older_than_days:
            yield Ended(run_id, view.status or "", days, view.abandoned)


def remove(root: Path, run_id: str) -> None:
    """Remove the folder of an ended run. Journal and evidence stay, with a line that says where its lines end.

    Raises:
        RunBusyError: A process drives it at this moment.
        OSError: It cannot be removed.
    """
    store = RunStore(root, run_id)
    with store.locked():
        journal = Journal(journal_path(root))
        end = journal.head(run_id)
        data = {} if end is None else {"seq": end.seq, "hash": end.hash}
        # First the line, then the folder: `verify` has no checkpoint any more and goes by what stands here.
        journal.append(beside_run(run_id), PRUNED, PRUNED, data)
        shutil.rmtree(store.folder)
