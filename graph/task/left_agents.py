"""Programs of agents that live on after the process that drove their run was killed.

While a program is asked, its process is noted outside of the checkout. Whoever drives the run next holds its lock, so
that what is noted then was left behind: it is ended with its whole group before anybody is asked, since two builders
would edit the same files. A note alone is not believed, since a program of the same user can write one and numbers are
used again: a group is ended only where a process of it was started with the mark of this run in its environment.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.agents.ask import RUN, run_mark
from interlock.core.files import opened_beneath, write_in
from interlock.core.process import end_group
from interlock.gates.sealed import Store
from interlock.graph.errors import RunBusyError
from interlock.graph.task.store import RunStore
from interlock.reservations import process

_FOLDER: Final = "agents"
_ENDING: Final = ".json"
_MAX_NOTE_BYTES: Final = 4096
_NOTE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NONE: Final = (OSError, RuntimeError, ValueError, LookupError, TypeError)
"""What a note that is none raises; without a home that can be known there is no place for one."""


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
        members = process.group(self.pid) if self.host == process.host() else None
        if not members:
            return None if members is None else False
        now = process.started(self.pid)  # the number of a group is free again once no process is left in it
        return not (now and self.started and now != self.started)

    def is_of(self, store: RunStore) -> bool:
        """Return whether a process of the group was started for this run."""
        mark = os.fsencode(f"{RUN}={run_mark(store.root, store.run_id)}")
        return any(mark in each.split(b"\0") for each in (process.group(self.pid) or {}).values())


def noting(store: RunStore, key: str, role: str) -> Callable[[int | None], None]:
    """Return what notes the process of an ask while it runs, where a note can be kept; None says that it has ended."""
    name = f"{_prefix(store)}{key}{_ENDING}"

    def note(pid: int | None) -> None:
        with suppress(OSError, RuntimeError), _opened(store, make=True) as folder:
            if pid is None:
                os.unlink(name, dir_fd=folder)
                return
            row = {"role": role, "pid": pid, "started": process.started(pid), "host": process.host()}
            write_in(folder, name, json.dumps(row).encode(), mode=0o600, durable=False)

    return note


def left_agents(store: RunStore) -> Iterator[LeftAgent]:
    """Yield the programs of a run that are noted and still run; of a run that nobody drives."""
    for name in _notes(store):
        with suppress(*_NONE):  # half a note: no program had been fed yet
            found = _read(store, name)
            if found.runs is not False:
                yield found


def end_left_agents(store: RunStore) -> None:
    """End the programs that a killed drive left behind; the caller holds the run.

    Raises:
        RunBusyError: One still runs, and is not known to be that of the agent, or cannot be ended from here.
    """
    for left in list(left_agents(store)):
        known = left.runs and left.is_of(store)
        if not known or not end_group(left.pid, lambda left=left: left.runs is not False):
            raise RunBusyError(
                f"{left.role} of run {store.run_id} may still be at work: process {left.pid} is noted for it and "
                "cannot be ended from here",
                f"Look at process {left.pid} where it runs. End it (`kill -9 -- -{left.pid}`) if it is the agent; else "
                f"remove {left.note}. Then repeat the command.",
            )
    for name in _notes(store):
        with suppress(OSError, RuntimeError), _opened(store) as folder:
            os.unlink(name, dir_fd=folder)


def _top(store: RunStore) -> Path:
    return Store(Path(os.path.realpath(store.root))).folder


def _prefix(store: RunStore) -> str:
    """Return how the notes of a run begin; no run id holds an `@`."""
    return f"{store.run_id}@"


def _opened(store: RunStore, *, make: bool = False) -> AbstractContextManager[int]:
    top = _top(store)
    if make:
        top.mkdir(parents=True, exist_ok=True)
    return opened_beneath(top, [_FOLDER], make=make)


def _notes(store: RunStore) -> list[str]:
    with suppress(OSError, RuntimeError), _opened(store) as folder:
        names = os.listdir(folder)  # noqa: PTH208 - an open folder
        return sorted(name for name in names if name.startswith(_prefix(store)) and name.endswith(_ENDING))
    return []


def _read(store: RunStore, name: str) -> LeftAgent:
    with _opened(store) as folder, os.fdopen(os.open(name, _NOTE, dir_fd=folder), "rb") as file:
        row: Any = json.loads(file.read(_MAX_NOTE_BYTES))
    pid, texts = row["pid"], (row["role"], row["started"], row["host"])
    if (
        type(pid) is not int
        or not 1 < pid < 2**31
        or not all(isinstance(text, str) and text.isprintable() for text in texts)
    ):
        raise ValueError(name)
    return LeftAgent(texts[0], pid, texts[1], texts[2], _top(store) / _FOLDER / name)
