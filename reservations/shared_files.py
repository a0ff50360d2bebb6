"""What belongs to all agents of a project: the store of the leases, and git's own files."""

import os.path
from collections.abc import Iterable, Sequence
from typing import Final

from interlock.reservations import place

_OF_GIT: Final = (
    "HEAD", "config", "config.worktree", "hooks", "index", "interlock", "logs", "modules", "objects", "packed-refs",
    "refs", "worktrees",
)  # fmt: skip
"""What in git's folder no program but git changes."""


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
