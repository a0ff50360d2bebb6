"""Ending runs for good, and removing what ended runs keep below `.interlock` and in the state folder."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from interlock.core.database import database_of
from interlock.gates.sealed import Store, place_of
from interlock.graph.daily import landing
from interlock.graph.engine import legs
from interlock.graph.engine.folder import ABANDONED, BEGIN, PRUNED, beside_run, journal_of, list_runs
from interlock.graph.errors import RunDamagedError
from interlock.graph.landing.queue import queue_of
from interlock.graph.task.clone import remove_trees
from interlock.graph.task.left_agents import end_left_agents
from interlock.graph.task.record import Recorder
from interlock.graph.task.runs import Graphs, notify_of, view_run
from interlock.graph.task.scope_leases import clear
from interlock.graph.task.store import RunStore, no_task_run
from interlock.graph.ticket.tickets import Tickets

_DAY_SECONDS: Final = 24 * 60 * 60
_MADE_ANEW: Final = ("results", "setup", "bytecode")
"""The folders in the state folder of what sealed gates make again when it is not there; see `gates.sealed.store`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over, and whose folder can go.

    `status` is empty for one abandoned before it had any; `days` counts from its last step; `bytes` is what its folder
    and its tree take on the disk.
    """

    run_id: str
    status: str
    days: float
    abandoned: bool
    bytes: int


class Kept(NamedTuple):
    """What a sealed gate keeps and makes again when it is not there: `days` old, and so many `bytes` on the disk."""

    path: Path
    days: float
    bytes: int


class Prunable(NamedTuple):
    """What can be removed of a project: `runs` and `kept` as they were asked for.

    `total` is what the project takes on the disk, and `open_run` a run for which all that gates keep stays.
    """

    runs: list[Ended]
    kept: list[Kept]
    total: int
    open_run: str


def abandon(root: Path, run_id: str) -> bool:
    """End a task run for good: a journal line, its leases released, and nobody can take it on. Safe to repeat.

    Returns:
        Whether this call ended it; False when it was over before.

    Raises:
        UnknownRunError: There is no such run.
        RunBusyError: A process drives it at this moment; where workers do, that ends.
        RunDamagedError: It cannot be read back.
    """
    store = RunStore(root, run_id)
    if (database := database_of(root)) is not None:
        # From then on its process writes nothing, and its worker ends it.
        was_active = legs.cancel(database, run_id)
        if not store.exists():
            if was_active:
                return True  # it was taken out of the queue
            raise no_task_run(root, run_id)
    with store.locked():
        view = view_run(run_id, root=root)
        end_left_agents(store)
        open_before = not view.abandoned and view.phase != "done"
        if open_before:
            data = {"status": view.status, "attempt": view.values.get("attempt", 0)}
            Recorder(journal_of(root)).keep(run_id, ABANDONED, ABANDONED, data)
            # The line first: a kill between the two leaves a run that can be abandoned again, and never one that
            # ended unsaid.
            store.keep(ABANDONED, b"")
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

    A run that cannot be read back is none, nor is one in a tree of its own that waits to land.
    """
    graphs, trees = Graphs(), _state_folder(root) / "trees"
    waiting = {row.run_id for row in queue_of(root)}
    for run_id in list_runs(root, "runs"):
        folder = RunStore(root, run_id).folder
        try:
            view = view_run(run_id, root=root, graphs=graphs)
        except RunDamagedError:
            continue
        tree = view.policy.tree
        if tree and run_id in waiting:
            continue
        days = _days(folder)
        if view.phase == "done" and days >= older_than_days:
            size = _size(folder) + (_size(trees / tree) if tree else 0)
            yield Ended(run_id, view.status or "", days, view.abandoned, size)


def prunable(root: Path, *, older_than_days: float | None, max_bytes: int | None) -> Prunable:
    """Return what can be removed: what is older than so many days and, beyond `max_bytes` in all, what is oldest.

    Without both it is every run that is over, and nothing that gates keep. That stays, too, as long as a run may go on:
    it may be in use.
    """
    over, state = list(ended_runs(root)), _state_folder(root)
    ids = {run.run_id for run in over}
    open_run = next((run_id for run_id in list_runs(root, "runs") if run_id not in ids and _is_open(root, run_id)), "")
    total = _size(root / ".interlock/runs") + _size(state)
    if older_than_days is None and max_bytes is None:
        return Prunable(over, [], total, open_run)
    folders = [] if open_run else [path for name in _MADE_ANEW for path in (state / name).glob("*")]
    kept = [Kept(path, _days(path), _size(path)) for path in folders]
    left, chosen = total, list[Ended | Kept]()
    for each in sorted((*over, *kept), key=lambda each: each.days, reverse=True):
        is_too_old = older_than_days is not None and each.days >= older_than_days
        if is_too_old or (max_bytes is not None and left > max_bytes):
            chosen.append(each)
            left -= each.bytes
    return Prunable([run for run in over if run in chosen], [each for each in kept if each in chosen], total, open_run)


def prune(root: Path, found: Prunable) -> None:
    """Remove what was found to be prunable, and then the trees that no run needs any more.

    Raises:
        RunBusyError: A process drives one of the runs at this moment.
        OSError: Something cannot be removed.
    """
    for run in found.runs:
        remove(root, run.run_id)
    for each in found.kept:
        shutil.rmtree(each.path) if each.path.is_dir() else each.path.unlink(missing_ok=True)
    prune_trees(root)


def prune_trees(root: Path, *, dry_run: bool = False) -> list[tuple[Path, int]]:
    """Remove the trees that no run needs and nobody works in, and return each with its size in bytes."""
    journal, needed = journal_of(root), set[str]()
    for run_id in list_runs(root, "runs"):
        with suppress(RunDamagedError):
            if not landing(journal.entries(beside_run(run_id))):
                needed.add(RunStore(root, run_id).load()[1].tree)
    return remove_trees(root, needed, dry_run=dry_run)


def _is_open(root: Path, run_id: str) -> bool:
    with suppress(RunDamagedError):
        return view_run(run_id, root=root).phase != "done"
    return False


def _state_folder(root: Path) -> Path:
    return Store(place_of(root)[0]).folder


def _days(path: Path) -> float:
    """Return how long ago a file changed, or the newest of a folder: of a run, each step and answer writes another."""
    newest = max((each.stat().st_mtime for each in path.glob("*")), default=path.stat().st_mtime)
    return (time.time() - newest) / _DAY_SECONDS


def _size(path: Path) -> int:
    """Return what a file or a folder takes on the disk."""
    names = [os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files]  # noqa: PTH118 - many
    total = 0
    for name in names or [os.fspath(path)]:
        with suppress(OSError):  # gone meanwhile, or never there
            total += os.lstat(name).st_blocks * 512
    return total


def remove(root: Path, run_id: str) -> None:
    """Remove the folder of an ended run. Journal and evidence stay, with a line that says where its lines end.

    Raises:
        RunBusyError: A process drives it at this moment.
        OSError: It cannot be removed.
    """
    store = RunStore(root, run_id)
    with store.locked():
        journal = journal_of(root)
        end = journal.head(run_id)
        data = {} if end is None else {"seq": end.seq, "hash": end.hash}
        # First the line, then the folder: `verify` has no checkpoint any more and goes by what stands here.
        journal.append(beside_run(run_id), PRUNED, PRUNED, data)
        store.drop(BEGIN)  # for other machines
        shutil.rmtree(store.folder)
