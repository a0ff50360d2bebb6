"""What the hooks remember: edits that they let pass, when a shell command began, and what was reported already.

A mark is kept in the store beside remembered answers, under a key that no agent can write, and is forgotten with them.
"""

import os
from collections.abc import Iterable
from typing import Final

from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.sqlite_rows import Transaction

GRAIN_SECONDS: Final = 0.05
"""File systems take the time of a change from a clock that ticks every few milliseconds."""

_EDIT: Final = "\x1fedit "
_HOOK: Final = "\x1fhook "


def note_edits(entry: Entry, root: str, paths: Iterable[str]) -> None:
    """Remember that the agent may edit these files now."""
    for path in paths:
        entry.tx.remember(entry.agent.name, _key(root, path), "", repr(entry.now), entry.now)


def edited_at(tx: Transaction, agent: str, root: str, path: str) -> float | None:
    """Return when the agent was last let edit a file, in seconds since the epoch; None where it never was."""
    row = tx.remembered(agent, _key(root, path))
    return None if row is None else float(row[1])


def _key(root: str, path: str) -> str:
    return f"{_EDIT}{root}\x1f{path}"


def note_root(entry: Entry, root: str) -> None:
    """Remember in which checkout the agent's session began."""
    entry.tx.remember(entry.agent.name, f"{_HOOK}root", "", root, entry.now)


def strayed(entry: Entry, root: str) -> str:
    """Return in which other checkout of the project the agent's session began; empty where this is it, once told."""
    row = entry.tx.remembered(entry.agent.name, f"{_HOOK}root")
    return row[1] if row is not None and row[1] != root and once(entry, f"strayed {root}") else ""


def once(entry: Entry, what: str) -> bool:
    """Return whether this is the first time that something is asked about in the agent's name."""
    key = f"{_HOOK}{what}"
    if entry.tx.remembered(entry.agent.name, key) is not None:
        return False
    entry.tx.remember(entry.agent.name, key, "", "", entry.now)
    return True


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
