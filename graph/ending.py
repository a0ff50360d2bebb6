"""Ending runs for good, and removing what ended runs keep below `.interlock`."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.files import write_atomically
from interlock.graph.engine.folder import ABANDONED, journal_path, journal_run, list_runs
from interlock.graph.errors import RunBusyError, RunDamagedError
from interlock.graph.task.left_agents import end_left_agents
from interlock.graph.task.notices import Notices
from interlock.graph.task.record import Recorder
from interlock.graph.task.runs import Graphs, view_run
from interlock.graph.task.scope_leases import clear
from interlock.graph.task.store import RunStore, note_pruned
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Journal
from interlock.notify import forget

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
        open_before = not view.abandoned and (view.phase != "done" or bool(view.failed))
        if open_before:
            data = {"status": view.status, "attempt": view.values.get("attempt", 0)}
            Recorder(Journal(journal_path(root))).keep(run_id, ABANDONED, ABANDONED, data)
            write_atomically(store.folder / ABANDONED, b"")
        if view.policy.reserve:
            clear(root, run_id, view.task)
    if open_before:
        Notices(root, run_id).report(view_run(run_id, root=root))
    return open_before


def abandon_ticket(root: Path, run_id: str) -> bool:
    """End a ticket run for good, as `abandon` ends that of a task.

    Raises:
        UnknownRunError, RunBusyError, RunDamagedError: As for `abandon`.
    """
    tickets = Tickets(root)
    tickets.open_runs.known(run_id)
    store = TicketStore(root, run_id)
    if store.driven():
        raise RunBusyError(f"ticket run {run_id} is being resolved by another process", "Stop that process first.")
    with store.locked():
        run = tickets.open_runs.peek(run_id)
        if store.abandoned() or (run is not None and tickets.status_of(run)["terminal"]):
            return False
        data = {"state": None if run is None else run.state["state"]}
        Recorder(Journal(journal_path(root))).keep(journal_run(run_id), ABANDONED, ABANDONED, data)
        write_atomically(store.folder / ABANDONED, b"")
    return True


def ended_runs(root: Path, *, older_than_days: float = 0.0) -> Iterator[Ended]:
    """Yield the task runs that are over: APPROVED, abandoned, or BLOCKED with no step that could be taken up again.

    A run that cannot be read back is none.
    """
    graphs: Graphs = {}
    for run_id in list_runs(root, "runs"):
        folder = RunStore(root, run_id).folder
        try:
            view = view_run(run_id, root=root, graphs=graphs)
        except RunDamagedError:
            continue
        days = (time.time() - max(path.stat().st_mtime for path in folder.iterdir())) / _DAY_SECONDS
        if view.phase == "done" and not view.failed and days >= older_than_days:
            yield Ended(run_id, view.status or "", days, view.abandoned)


def remove(root: Path, run_id: str) -> None:
    """Remove the folder of an ended run. Journal and evidence stay, and where the journal's lines of it end.

    Raises:
        RunBusyError: A process drives it at this moment.
        OSError: It cannot be removed.
    """
    store = RunStore(root, run_id)
    with store.locked():
        note_pruned(root, run_id)
        shutil.rmtree(store.folder)
    forget(root, run_id)
