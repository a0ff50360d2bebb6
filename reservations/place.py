"""Which project a path belongs to, and where its store is. Nothing is run: git's files are read by hand.

A file belongs to the innermost git checkout around it, whoever asks and from wherever: a submodule or a repository
inside another one is a project of its own, with a store of its own.
"""

import os
from typing import Final, NamedTuple

from interlock.reservations.errors import NoProject

__all__ = ["Place", "covering", "exists", "find", "inside", "main_root", "nested"]

PROJECT: Final = "INTERLOCK_PROJECT"
STORE: Final = "reservations.sqlite"
_MARKS: Final = ("interlock.toml", ".interlock")
_MAX_POINTER_BYTES: Final = 8192


class Place(NamedTuple):
    """A project on this machine.

    Args:
        root: The checkout: absolute, without symbolic links. Patterns are relative to it.
        common: Git's folder that all worktrees of the repository share; empty without git.
        store_path: The file of the store. Worktrees of one repository have one store.
    """

    root: str
    common: str
    store_path: str


def find(start: str) -> Place:
    """Return the project around a path.

    `INTERLOCK_PROJECT` names it; else it is the git checkout around the path, else the nearest folder upwards that has
    `interlock.toml` or `.interlock`, else the folder itself.

    Args:
        start: A folder, or a file that may not exist yet.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
    """
    named = os.environ.get(PROJECT, "")
    if named:
        folder = os.path.realpath(os.path.join(start, os.path.expanduser(named)))
        if not os.path.isdir(folder):
            raise NoProject(f"{PROJECT} names {named}, which is no folder.", f"Correct or unset {PROJECT}.")
        return _place(folder, _common(folder))
    folder = _folder(os.path.realpath(start))
    return _checkout(folder) or _place(_marked(folder) or folder, "")


def covering(path: str, here: Place) -> Place | None:
    """Return the project whose store has the leases on a file; None for a file of no project.

    The file alone decides, so that all agents find the same store: the innermost git checkout around it, else the
    nearest folder upwards with one of our marks. Before that comes a project that `INTERLOCK_PROJECT` names, for the
    files in it; after that the folder that the agent works in.

    Args:
        path: Absolute; it may not exist yet.
        here: What `find` says of the folder that the agent works in.
    """
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if os.environ.get(PROJECT) and inside(here.root, path):
        return here
    folder = _folder(os.path.dirname(path))
    if found := _checkout(folder):
        return found
    if marked := _marked(folder):
        return _place(marked, "")
    return here if inside(here.root, path) else None


def nested(root: str, path: str) -> Place | None:
    """Return the checkout that a path below a project's root lies in when that is another one; the innermost.

    Args:
        root: The project's root.
        path: Relative to it, without wildcards; it may not exist yet.
    """
    if os.environ.get(PROJECT):
        return None
    found = None
    folder = root
    for part in path.split("/"):
        folder = os.path.join(folder, part)
        if part and not os.path.isdir(folder):
            break
        if part and (common := _common(folder)):
            found = _place(os.path.realpath(folder), common)
    return found


def main_root(root: str) -> str:
    """Return the folder whose configuration counts for a store: the main worktree of the repository.

    A linked worktree is somebody's own, and its configuration would speak for everybody. A bare repository has no main
    worktree: its own folder it is.
    """
    common = _common(root)
    if not common:
        return root
    if os.path.basename(common) == ".git":
        return os.path.dirname(common)
    # The folder of a submodule, and what `git init --separate-git-dir` makes, lie elsewhere.
    if os.path.realpath(_git_folder(root)) == common:
        return root
    named = _worktree_of(common)
    return os.path.realpath(os.path.join(common, named)) if named else common


def exists(root: str, path: str) -> bool:
    """Say whether anything is at a path below a root, a dangling link included."""
    return os.path.lexists(os.path.join(root, path))


def inside(root: str, path: str) -> bool:
    """Say whether an absolute, normal path lies in a folder."""
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def _place(root: str, common: str) -> Place:
    folder = os.path.join(common, "interlock") if common else os.path.join(root, ".interlock")
    return Place(root, common, os.path.join(folder, STORE))


def _folder(path: str) -> str:
    """Return the nearest folder that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _checkout(folder: str) -> Place | None:
    """Return the innermost git checkout around a folder."""
    while True:
        if common := _common(folder):
            return _place(folder, common)
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _marked(folder: str) -> str:
    """Return the nearest folder upwards that has one of our marks; empty without one."""
    while not any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def _common(root: str) -> str:
    """Return the shared git folder of a checkout's root, or nothing when the folder is no such root.

    `.git` is a folder, or a file that points to one: of a submodule, or of a linked worktree, whose folder has a file
    `commondir` that points on.
    """
    git = _git_folder(root)
    if not git or not os.path.lexists(os.path.join(git, "HEAD")):
        return ""
    return os.path.realpath(os.path.join(git, _line(os.path.join(git, "commondir"))))


def _git_folder(root: str) -> str:
    """Return what `.git` is or points to, or nothing."""
    git = os.path.join(root, ".git")
    if os.path.isdir(git):
        return git
    pointer = _line(git)
    return os.path.join(root, pointer.removeprefix("gitdir:").strip()) if pointer.startswith("gitdir:") else ""


def _worktree_of(common: str) -> str:
    """Return `core.worktree` of a repository's configuration, as git writes it for a submodule; empty without it."""
    section = ""
    for line in _line(os.path.join(common, "config")).splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text.lower()
        name, sign, value = text.partition("=")
        if sign and section == "[core]" and name.strip().lower() == "worktree":
            return value.strip().strip('"')
    return ""


def _line(path: str) -> str:
    """Return the text of a small file without the newline, or nothing when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MAX_POINTER_BYTES).rstrip("\n")
    except (FileNotFoundError, NotADirectoryError):
        return ""
