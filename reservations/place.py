"""Which project a path belongs to, and where its store is. Nothing is run: git's files are read by hand."""

import os
from dataclasses import dataclass
from typing import Final

from interlock.reservations.errors import NoProject

__all__ = ["Place", "find", "inside"]

PROJECT: Final = "INTERLOCK_PROJECT"
STORE: Final = "reservations.sqlite"
_MARKS: Final = ("interlock.toml", ".interlock")
_MAX_POINTER_BYTES: Final = 8192


@dataclass(frozen=True, slots=True)
class Place:
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
    folder = here = _folder(os.path.realpath(start))
    while True:
        if common := _common(folder):
            return _place(folder, common)
        above = os.path.dirname(folder)
        if above == folder:
            return _place(_marked(here), "")
        folder = above


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


def _marked(folder: str) -> str:
    """Return the nearest folder upwards that has one of our marks, else the folder itself."""
    at = folder
    while not any(os.path.exists(os.path.join(at, mark)) for mark in _MARKS):
        above = os.path.dirname(at)
        if above == at:
            return folder
        at = above
    return at


def _common(root: str) -> str:
    """Return the shared git folder of a checkout's root, or nothing when the folder is no such root.

    `.git` is a folder, or a file that points to one: of a submodule, or of a linked worktree, whose folder has a file
    `commondir` that points on.
    """
    git = os.path.join(root, ".git")
    if not os.path.isdir(git):
        pointer = _line(git)
        if not pointer.startswith("gitdir:"):
            return ""
        git = os.path.join(root, pointer.removeprefix("gitdir:").strip())
    if not os.path.lexists(os.path.join(git, "HEAD")):
        return ""
    return os.path.realpath(os.path.join(git, _line(os.path.join(git, "commondir"))))


def _line(path: str) -> str:
    """Return the text of a small file without the newline, or nothing when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MAX_POINTER_BYTES).rstrip("\n")
    except (FileNotFoundError, NotADirectoryError):
        return ""
