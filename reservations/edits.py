"""Marks for the edits that a hook let an agent make: whose change a change is.

A mark is kept in the store beside remembered answers, under a key that no agent can write, and is forgotten with them.
"""

from collections.abc import Iterable
from typing import Final

from interlock.reservations.entry import Entry
from interlock.reservations.store import Transaction

__all__ = ["edited_at", "note_edits"]

_PREFIX: Final = "\x1fedit "


def note_edits(entry: Entry, root: str, paths: Iterable[str]) -> None:
    """Remember that the agent may edit these files now.

    Args:
        entry: The open transaction.
        root: The checkout; worktrees share a store.
        paths: Relative to it.
    """
    for path in paths:
        entry.tx.remember(entry.agent.name, _key(root, path), "", repr(entry.now), entry.now)


def edited_at(tx: Transaction, agent: str, root: str, path: str) -> float | None:
    """Return when the agent was last let edit a file, in seconds since the epoch; None where it never was."""
    row = tx.remembered(agent, _key(root, path))
    return None if row is None else float(row[1])


def _key(root: str, path: str) -> str:
    return f"{_PREFIX}{root}\x1f{path}"
