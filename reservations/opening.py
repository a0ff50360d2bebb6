"""Opening the reservations of a project: place, settings, store and identity put together."""

import os
from functools import partial
from typing import Final

from interlock.reservations import identity, place, process, settings
from interlock.reservations.git.uncommitted import unsaved
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.store.sqlite import SqliteStore

LOOK_SECONDS: Final = 1.0
"""So long an answer waits for a look into other worktrees: each costs some runs of git."""


def open_runtime(found: place.Place) -> Runtime:
    """Return the runtime of a project, or raise `SettingsError`."""
    return Runtime(
        SqliteStore(found.store_path),
        settings.read(found.root),
        is_running=process.is_running,
        dirty=partial(unsaved, seconds=LOOK_SECONDS),
        changed_here=partial(unsaved, seconds=0.0),
        is_folder=place.is_folder,
        exists=place.exists,
        nested=place.other_below,
        real=place.real,
    )


def open_reservations(start: str | None = None, client: str = "cli", *, name: str = "") -> Reservations:
    """Return the calls of an agent in the project around a folder; default: here.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
        SettingsError: `[reservations]` of the configuration is wrong.
        ReservationError: The store cannot be used.
    """
    found = place.find(start or os.getcwd())
    runtime = open_runtime(found)
    named = identity.Known(name, "agent", *process.client()) if name else None
    known = named or identity.who(os.environ, runtime.store, via=client)
    caller = Caller(known.name, known.kind, found.root, client, process.host(), known.pid, known.started)
    return Reservations(runtime, caller)
