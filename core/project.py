"""Which folder is the project: what `INTERLOCK_PROJECT` names, or the nearest folder upwards that is marked as one."""

import os
from collections.abc import Iterator
from typing import Final

from interlock.core.errors import InterlockError

PROJECT: Final = "INTERLOCK_PROJECT"
"""The variable that names the project for every command, hook and server."""
_MARKS: Final = ("interlock.toml", ".interlock")
_SHARED: Final = 0o1002
"""The mode of a folder in which every user may make files, and only its owner may take a file away."""


class NoProject(InterlockError):  # noqa: N818 - users see the name, as `kind` of an error
    """There is no project here, or the one that is named does not exist.

    Fix: Change to a folder of the project, or name it with `--root`; `interlock init` makes one of this folder.
    """

    code = "RSV905"


def find_root(start: str) -> str:
    """Return the root of the project around a folder: where its configuration, its runs and its evidence are.

    `INTERLOCK_PROJECT` names it; else it is the nearest folder upwards with `.git`, `interlock.toml` or `.interlock`,
    of the last two only one that `counts`; else the folder itself. A folder inside a git checkout that has a mark is a
    project of its own; its reservations are those of the checkout (`reservations.place`).

    Args:
        start: A folder; relative to the current one, which empty text is.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
    """
    if given := os.environ.get(PROJECT, ""):
        folder = os.path.realpath(os.path.join(start, os.path.expanduser(given)))
        if not os.path.isdir(folder):
            raise NoProject(f"{PROJECT} names {given}, which is no folder.", f"Correct or unset {PROJECT}.")
        return folder
    here = os.path.realpath(start)
    # In a linked worktree and in a submodule `.git` is a file.
    roots = (each for each in upwards(here) if os.path.lexists(os.path.join(each, ".git")) or is_marked(each))
    return next(roots, here)


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder, and each one above it."""
    above = ""
    while folder != above:
        yield folder
        above, folder = folder, os.path.dirname(folder)


def counts(mark: os.stat_result, folder: os.stat_result, *, user: int) -> bool:
    """Return whether `interlock.toml` or `.interlock` makes the folder that it lies in a project.

    What somebody else put there does not, and neither does anything in a folder that all users share, such as `/tmp`.

    Args:
        mark: What `lstat` says of it.
        folder: What `stat` says of the folder.
        user: Who works here. Root works in the folders of others: there the marks of their owner count as well.
    """
    trusted = (0, user) if user else (0, folder.st_uid)
    is_shared = folder.st_mode & _SHARED == _SHARED
    return mark.st_uid in trusted and not is_shared


def is_marked(folder: str) -> bool:
    """Return whether a folder has one of our marks that counts; one in the home folder would hold all that is below."""
    for name in _MARKS:
        try:
            mark = os.lstat(os.path.join(folder, name))
        except OSError:
            continue
        if counts(mark, os.stat(folder), user=os.geteuid()) and folder != os.path.realpath(os.path.expanduser("~")):
            return True
    return False
