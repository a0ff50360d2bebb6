"""Files that no lease is about: git's own and the store, which belong to all agents, and agents' copies of tickets."""

import json
import os
import stat
from collections.abc import Iterable, Sequence
from typing import Final

from interlock.reservations import place

_OF_GIT: Final = (
    "HEAD",
    "config",
    "config.worktree",
    "hooks",
    "index",
    "interlock",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "worktrees",
)
"""What in git's folder no program but git changes."""
_TICKETS: Final = "tickets"


def paths(found: place.Place) -> list[str]:
    """Return the files and folders of a project that belong to all agents."""
    common = found.common
    return [os.path.dirname(found.store_path), *(os.path.join(common, name) for name in _OF_GIT if common)]


def has(shared: Iterable[str], path: str) -> bool:
    """Return whether a path is one of them, or lies in one; a `.git` that only points to a repository is one too."""
    return os.path.basename(path) == ".git" or any(place.inside(one, path) for one in shared)


def named(projects: Iterable[place.Place], cwd: str, files: Sequence[str]) -> str:
    """Return the first of some files, as a client gave them, that belongs to all agents of a project; empty for none.

    A link counts as what it leads to.
    """
    shared = [path for found in projects for path in paths(found)]
    real = ((file, os.path.realpath(os.path.join(cwd, os.path.expanduser(file)))) for file in files)
    return next((file for file, path in real if has(shared, path)), "")


def is_ticket_file(root: str | os.PathLike[str], path: str) -> bool:
    """Return whether a path is an agent's copy of a ticket: `tickets/ticket.json`, or `tickets/RUN.json` of a run.

    The file must hold a ticket, or be missing or empty: a file of the project with such a name is not one. The root has
    a folder in `.interlock/tickets` for each run.
    """
    folder, _, name = path.rpartition("/")
    if folder != _TICKETS or not name.endswith(".json"):
        return False
    run = os.path.join(root, ".interlock", _TICKETS, name.removesuffix(".json"), "run.json")
    return (name == "ticket.json" or os.path.isfile(run)) and _is_ticket(os.path.join(root, path))


def _is_ticket(path: str) -> bool:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return False
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return not text.strip() or "run_id" in json.loads(text)
    except FileNotFoundError:
        return True
    except (OSError, ValueError, TypeError, RecursionError):
        return False
