"""Programs of agents that live on after the process that drove their run was killed.

While a program is asked, its process is noted in the run's folder. Whoever drives the run next holds its lock, so that
what is noted then was left behind: it is ended with its whole group before anybody is asked, since two builders would
edit the same files. A note is believed only where a process of that number runs that started at that very moment,
leads a group of its own and belongs to this user: numbers are used again.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from interlock.core.files import write_atomically
from interlock.core.process import end_group, group_of
from interlock.graph.errors import RunBusyError
from interlock.graph.task.store import RunStore
from interlock.reservations import process

_FOLDER: Final = "agents"


class LeftAgent(NamedTuple):
    """A program of an agent that still runs although nobody drives its run."""

    role: str
    pid: int
    started: str
    host: str
    note: Path

    @property
    def runs(self) -> bool | None:
        """Whether it still runs; None when that cannot be known from here."""
        return process.is_running(self.host, self.pid, self.started)


def noting(store: RunStore, key: str, role: str) -> Callable[[int | None], None]:
    """Return what notes the process of an ask while it runs; None says that it has ended."""
    path = store.folder / _FOLDER / f"{key}.json"

    def note(pid: int | None) -> None:
        if pid is None:
            path.unlink(missing_ok=True)
            return
        row = {"role": role, "pid": pid, "started": process.started(pid), "host": process.host()}
        write_atomically(path, json.dumps(row).encode(), durable=False)

    return note


def left_agents(store: RunStore) -> Iterator[LeftAgent]:
    """Yield the programs of a run that are noted and still run; of a run that nobody drives."""
    for path in sorted((store.folder / _FOLDER).glob("*.json")):
        try:
            row = json.loads(path.read_bytes())
            found = LeftAgent(row["role"], int(row["pid"]), str(row["started"]), str(row["host"]), path)
        except (OSError, ValueError, LookupError, TypeError):
            continue  # half a note: no program had been fed yet
        if found.runs is not False:
            yield found


def end_left_agents(store: RunStore) -> None:
    """End the programs that a killed drive left behind; the caller holds the run.

    Raises:
        RunBusyError: One still runs, and is not known to be that of the agent, or cannot be ended from here.
    """
    for left in left_agents(store):
        known = left.started and left.runs and group_of(left.pid) == left.pid
        if not known or not end_group(left.pid, lambda left=left: left.runs is not False):
            raise RunBusyError(
                f"{left.role} of run {store.run_id} may still be at work: process {left.pid} was started for it and "
                "cannot be ended from here",
                f"Look at process {left.pid} where it runs. End it (`kill -9 -- -{left.pid}`) if it is the agent; else "
                f"remove {left.note.relative_to(store.root)}. Then repeat the command.",
            )
    for path in (store.folder / _FOLDER).glob("*.json"):
        path.unlink(missing_ok=True)
