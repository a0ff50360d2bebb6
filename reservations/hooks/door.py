"""What the clients' hooks have in common: opening the project in the agent's name, and answering the client."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Final

from interlock.reservations import git, identity, place, process, settings
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.hooks.reading import Call
from interlock.reservations.sqlite import SqliteStore

__all__ = ["answer", "identified", "opened", "relatives", "seconds"]

MAX_CONTEXT: Final = 4000
"""So many characters of context an agent is given at once."""


def opened(found: place.Place, call: Call, env: Mapping[str, str], client: str) -> tuple[Desk, Caller]:
    """Return the desk of a project and the agent whose client called.

    Raises:
        ReservationError: The settings or the store cannot be used.
    """
    store = SqliteStore(found.store_path)
    desk = Desk(
        store,
        settings.read(found.root),
        is_running=process.is_running,
        dirty=git.dirty,
        is_folder=git.is_folder,
    )
    known = identity.who(env, store, call.session_id, client)
    return desk, Caller(known.name, known.kind, found.root, "hook", process.host(), known.pid, known.started)


def identified(env: Mapping[str, str], call: Call, client: str) -> dict[str, str]:
    """Return the variables that let a program know the agent by its name; none when only the store knows it."""
    name = identity.told(env, call.session_id, client)
    return {identity.NAMES[0]: name, identity.EXPORTED: ""} if name else {}


def relatives(found: place.Place, cwd: str, path: str) -> list[str]:
    """Return a path relative to the project's root: as it is spelled, and where its symbolic links lead.

    A path in another worktree of the same repository counts from the root of that one, since they share their leases.
    One that lies outside the project has none.

    Args:
        found: The project.
        cwd: What a relative path counts from.
        path: As the client gave it.
    """
    spelled = os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))
    actual = os.path.realpath(spelled)
    rows: dict[str, None] = {}
    for text in (actual, spelled):
        root = _root_of(found, text)
        if root and text != root:
            rows[os.path.relpath(text, root)] = None
    return list(rows)


def _root_of(found: place.Place, path: str) -> str:
    """Return the root that a path counts from, or nothing when it lies outside the project."""
    if found.common:
        own = place.find(os.path.dirname(path))
        if own.store_path == found.store_path and place.inside(own.root, path):
            return own.root
    return found.root if place.inside(found.root, path) else ""


def answer(call: Call, default_event: str, context: str) -> None:
    """Give the agent some context, in the form that the clients read; nothing when there is none."""
    if not context:
        return
    text = context if len(context) <= MAX_CONTEXT else f"{context[: MAX_CONTEXT - 1]}…"
    output = {"hookEventName": call.event or default_event, "additionalContext": text}
    sys.stdout.write(json.dumps({"hookSpecificOutput": output}) + "\n")


def seconds(value: float) -> str:
    """Return a span of time in words: `40 s`, `12 min`, `3 h`."""
    whole = max(0, int(value))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
