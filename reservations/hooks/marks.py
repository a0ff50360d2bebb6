"""When a shell command of an agent began, when a file changed, and what was said already.

A mark stands in the store beside remembered answers, under a key that no agent can write.
"""

import os
from collections.abc import Mapping
from typing import Final

from interlock.reservations import leases
from interlock.reservations.entry import Entry
from interlock.reservations.held import Opened
from interlock.reservations.hooks import door
from interlock.reservations.hooks.reading import Call
from interlock.reservations.place import Place

__all__ = ["GRAIN_SECONDS", "begin", "begun", "once", "time_of"]

GRAIN_SECONDS: Final = 0.05
"""File systems take the time of a change from a clock that ticks every few milliseconds."""

_PREFIX: Final = "\x1fhook "


def begin(found: Place, call: Call, env: Mapping[str, str], client: str) -> Opened | None:
    """Remember when a tool call begins, while others hold anything.

    Returns:
        The store, opened; None where nothing was ever reserved.

    Raises:
        ReservationError: The store cannot be used.
    """
    if not os.path.lexists(found.store_path):
        return None
    desk, caller = door.opened(found, call, env, client)
    with leases.entered(desk, caller) as entry:
        if call.tool_use_id and entry.tx.others_hold(entry.agent.name):
            key = f"{_PREFIX}tool {call.tool_use_id}"
            entry.tx.remember(entry.agent.name, key, "", repr(entry.now), entry.now)
    return desk, caller


def begun(entry: Entry, call: Call) -> float | None:
    """Return when a tool call began, or None when that was not remembered."""
    row = entry.tx.remembered(entry.agent.name, f"{_PREFIX}tool {call.tool_use_id}") if call.tool_use_id else None
    return None if row is None else float(row[1])


def once(entry: Entry, what: str) -> bool:
    """Say whether this is the first time that something is asked about in the agent's name."""
    key = f"{_PREFIX}{what}"
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
