"""What calls and hooks remember beside the rows: who had a file before, which edits were let pass, what was said once.

A mark is text under a key of an agent, or of the store, and is forgotten after a while.
"""

import json
import os
from collections.abc import Iterable
from typing import Final

from interlock.core.record import Record
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.records import SYSTEM, Lease
from interlock.reservations.store.sqlite_rows import Transaction

GRAIN_SECONDS: Final = 0.05
"""File systems take the time of a change from a clock that ticks every few milliseconds."""


def put(entry: Entry, agent: str, what: str, value: str = "") -> None:
    """Remember something in the name of an agent, or of the store."""
    entry.tx.remember(agent, what, value, entry.now)


def once(entry: Entry, what: str) -> bool:
    """Return whether this is the first time that something is asked about in the agent's name."""
    if entry.tx.remembered(entry.agent.name, what) is not None:
        return False
    put(entry, entry.agent.name, what)
    return True


# -- the hooks


def note_edits(entry: Entry, root: str, paths: Iterable[str]) -> None:
    """Remember that the agent may edit these files now."""
    for path in paths:
        put(entry, entry.agent.name, f"edit {root}\x1f{path}", repr(entry.now))


def edited_at(tx: Transaction, agent: str, root: str, path: str) -> float | None:
    """Return when the agent was last let edit a file, in seconds since the epoch; None where it never was."""
    at = tx.remembered(agent, f"edit {root}\x1f{path}")
    return None if at is None else float(at)


def strayed(entry: Entry, root: str) -> str:
    """Return in which other checkout of the project the agent's session began; empty where this is it, once told."""
    began = entry.tx.remembered(entry.agent.name, "root")
    return began if began and began != root and once(entry, f"strayed {root}") else ""


def time_of(path: str) -> float:
    """Return when a file changed; of one that is gone, when its folder did."""
    while True:
        try:
            return os.lstat(path).st_ctime
        except OSError:
            above = os.path.dirname(path)
            if above == path:
                return 0.0
            path = above


# -- who had a file before


class Turn(Record):
    """Who had a pattern last, and when its lease ran out; None when it has not ended, or ended otherwise."""

    agent: str
    ran_out: float | None = None


def granted(entry: Entry, lease: Lease) -> None:
    """Remember who has a pattern now."""
    put(entry, SYSTEM, f"holder {lease.pattern}", json.dumps(Turn(lease.agent)))


def ran_out(entry: Entry, lease: Lease) -> None:
    """Remember that a lease ended by the clock alone."""
    put(entry, SYSTEM, f"holder {lease.pattern}", json.dumps(Turn(lease.agent, lease.expires_at)))


def last(entry: Entry, pattern: str) -> Turn | None:
    """Return who was granted a pattern last; None when nobody is known."""
    kept = entry.tx.remembered(SYSTEM, f"holder {pattern}")
    return None if kept is None else Turn(*json.loads(kept))
