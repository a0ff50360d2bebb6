"""Programs of agents that live on after the process that drove their run was killed.

While a program is asked, its process is noted outside of the checkout. Whoever drives the run next holds its lock, so
that what is noted then was left behind: it is ended with its whole group before anybody is asked, since two builders
would edit the same files. So it is before another run begins on files that both have in scope. A note alone is not
believed, since a program of the same user can write one and numbers are used again: a group is ended only where a
process of it was started with the mark of this run in its environment.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from interlock.agents.ask import RUN, run_mark
from interlock.core.files import write_atomically
from interlock.core.patterns import overlaps
from interlock.core.process import end_group
from interlock.gates.sealed import Store
from interlock.graph.errors import RunBusyError
from interlock.graph.task.scope_leases import lease_patterns
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.reservations import process


class LeftAgent(NamedTuple):
    """A program of an agent that still runs although nobody drives its run; it led the group that has its number."""

    role: str
    pid: int
    started: str
    host: str
    note: Path

    @property
    def runs(self) -> bool | None:
        """Whether it or what it started still runs; None when that cannot be known from here."""
        if self.host != process.host():
            return None
        if not process.group(self.pid):
            return False
        now = process.started(self.pid)  # the number of a group is free again once no process is left in it
        return not (now and self.started and now != self.started)

    def is_of(self, store: RunStore) -> bool:
        """Return whether a process of the group was started for this run."""
        mark = run_mark(store.root, store.run_id)
        return any(each.get(RUN) == mark for each in process.group(self.pid).values())


def noting(store: RunStore, key: str, role: str) -> Callable[[int | None], None]:
    """Return what notes the process of an ask while it runs, where a note can be kept; None says that it has ended."""
    path = _folder(store) / f"{_prefix(store)}{key}.json"

    def note(pid: int | None) -> None:
        with suppress(OSError):
            if pid is None:
                path.unlink(missing_ok=True)
                return
            row = {"role": role, "pid": pid, "started": process.started(pid), "host": process.host()}
            # Not waited for to be on the disk: after a power cut no process is left that it could name.
            write_atomically(path, json.dumps(row).encode(), mode=0o600, durable=False)

    return note


def left_agents(store: RunStore) -> Iterator[LeftAgent]:
    """Yield the programs of a run that are noted and still run; of a run that nobody drives."""
    for path in sorted(_folder(store).glob(f"{_prefix(store)}*.json")):
        with suppress(OSError, ValueError, TypeError):  # half a note: no program had been fed yet
            left = LeftAgent(note=path, **json.loads(path.read_bytes()))
            # Signals to the groups 0 and 1 would end this process itself, or all of the machine.
            if left.pid > 1 and left.runs is not False:
                yield left


def end_left_agents(store: RunStore) -> None:
    """End the programs that a killed drive left behind; the caller holds the run.

    Raises:
        RunBusyError: One still runs, and is not known to be that of the agent, or cannot be ended from here.
    """
    for left in list(left_agents(store)):
        # What cannot be proved to be the agent is never killed; a person is asked to look.
        known = left.runs and left.is_of(store)
        if not known or not end_group(left.pid, lambda left=left: left.runs is not False):
            raise RunBusyError(
                f"{left.role} of run {store.run_id} may still be at work: process {left.pid} is noted for it and "
                "cannot be ended from here",
                f"Look at process {left.pid} where it runs. End it (`kill -9 -- -{left.pid}`) if it is the agent; else "
                f"remove {left.note}. Then repeat the command.",
            )
    for path in _folder(store).glob(f"{_prefix(store)}*.json"):
        path.unlink(missing_ok=True)


def end_agents_of_others(root: Path, task: Task, run_id: str = "") -> None:
    """End the programs that killed drives of other runs left at work on files of a task; `run_id` is its own run.

    A run that somebody drives holds its files by leases, and one in a tree of its own works on other files.

    Raises:
        RunBusyError: As for `end_left_agents`.
        RunDamagedError: The files of such a run are not known.
    """
    wanted = lease_patterns(task.scope)
    notes = _folder(RunStore(root, run_id or task.task_id)).glob("*@*.json")
    for other in sorted({path.name.partition("@")[0] for path in notes} - {run_id}):
        store = RunStore(root, other)
        if not store.exists() or not any(left_agents(store)):
            continue
        theirs, policy, _ = store.load()
        meets = any(overlaps(one, another) for one in wanted for another in lease_patterns(theirs.scope))
        with store.undriven() as free:  # and nobody takes that run on meanwhile
            if free and meets and not policy.tree:
                end_left_agents(store)


def left_text(store: RunStore) -> str:
    """Say which programs of a run that nobody drives still run; empty for none."""
    who = ", ".join(f"{left.role} still works (process {left.pid})" for left in left_agents(store))
    return f"nobody drives it, but {who}; a resume ends that first" if who else ""


def _folder(store: RunStore) -> Path:
    return Store(Path(os.path.realpath(store.root))).folder / "agents"


def _prefix(store: RunStore) -> str:
    """Return how the notes of a run begin; no run id holds an `@`."""
    return f"{store.run_id}@"
