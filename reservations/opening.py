"""Opening the reservations of a project: place, settings, store and identity put together."""

import os

from interlock.reservations import identity, place, process, settings
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.git import dirty, is_folder
from interlock.reservations.service import Reservations
from interlock.reservations.sqlite import SqliteStore

__all__ = ["open_desk", "open_reservations"]


def open_desk(found: place.Place) -> Desk:
    """Return the desk of a project.

    Raises:
        SettingsError: `[reservations]` of the configuration is wrong.
    """
    return Desk(
        SqliteStore(found.store_path),
        settings.read(found.root),
        is_running=process.is_running,
        dirty=dirty,
        is_folder=is_folder,
        exists=place.exists,
        nested=place.other_below,
    )


def open_reservations(start: str | None = None, client: str = "cli", *, name: str = "") -> Reservations:
    """Return the calls of an agent in the project around a folder.

    Args:
        start: Where to look for the project; default: here.
        client: The door, for the record.
        name: The agent; default: whoever this process belongs to.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
        SettingsError: `[reservations]` of the configuration is wrong.
        StoreBusy: The store is held by another for too long.
        StoreDamaged: The store cannot be read.
        StoreUnwritten: The store cannot be made.
    """
    found = place.find(start or os.getcwd())
    desk = open_desk(found)
    named = identity.Known(name, "agent", *process.client()) if name else None
    known = named or identity.who(os.environ, desk.store, door=client)
    caller = Caller(known.name, known.kind, found.root, client, process.host(), known.pid, known.started)
    return Reservations(desk, caller)
