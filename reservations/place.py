"""Which project a path belongs to, and where its store is. Nothing is run: git's files are read by hand.

A file belongs to the innermost git checkout around it, whoever asks and from wherever: a submodule or a repository
inside another one is a project of its own, with a store of its own. What is held in a project around it counts as well.
"""

import os
from collections.abc import Iterator
from functools import cache
from typing import Final

from interlock.core.project import PROJECT, find_root, is_marked, upwards
from interlock.core.record import Record

STORE: Final = "reservations.sqlite"
_DATABASE: Final = "INTERLOCK_DATABASE"
"""What `core.database` has as well, which a hook has no time to import."""


class Place(Record):
    """A project on this machine.

    Args:
        root: The checkout: absolute, without symbolic links. Patterns are relative to it.
        common: Git's folder that all worktrees of the repository share; empty without git.
        store_path: The file of the store. Worktrees of one repository have one store.
    """

    root: str
    common: str
    store_path: str


def find(path: str) -> Place:
    """Return where the reservations around a path, which may not exist yet, are: those of its git checkout.

    A project that `INTERLOCK_PROJECT` names and that is not a folder raises `NoProject`.
    """
    root = find_root(_folder(os.path.realpath(path)))
    if os.environ.get(PROJECT):
        return at(root)
    return next(iter(upwards_of(root)), None) or _place(root, "")


def at(root: str) -> Place:
    """Return the project whose root is known, whatever the environment names."""
    return _place(root, _common(root))


def has_database(found: Place) -> bool:
    """Return whether the reservations of a project are in a database that several machines share; see `core.database`.

    All worktrees go by the configuration of the main one, as for their settings. Hooks ask this at each call.
    """
    given = os.environ.get(_DATABASE)
    return _names_database(main_root(found.root)) if given is None else bool(given)


@cache
def _names_database(main: str) -> bool:
    try:
        with open(os.path.join(main, "interlock.toml"), "rb") as file:
            may_name = b"database" in file.read()
    except OSError:
        return False
    if not may_name:
        return False
    from interlock.core.database import address_of  # noqa: PLC0415 - slow to import

    return bool(address_of(main))


def is_used(found: Place) -> bool:
    """Return whether anything may be reserved in a project: on this machine or, with a database, on another one."""
    return os.path.lexists(found.store_path) or has_database(found)


def git_dir_of(root: str) -> str:
    """Return the folder of git's that belongs to the top of a checkout, linked worktrees and submodules included."""
    return os.path.realpath(_git_folder(root) or os.path.join(root, ".git"))


def head(root: str) -> str:
    """Return what HEAD of the checkout at a root is: the full name of a branch, or a commit; empty outside of git."""
    return _line(os.path.join(_git_folder(root), "HEAD")).removeprefix("ref:").strip() if _git_folder(root) else ""


def commit_at(root: str) -> str:
    """Return the commit of HEAD as git's files have it; empty before the first one, or where they are not plain."""
    name, git = head(root), _git_folder(root)
    if not name.startswith("refs/"):
        return name
    common = _shared(git)
    if found := _line(os.path.join(common, name)):
        return found
    packed = _whole(os.path.join(common, "packed-refs"))
    return next((line.split(" ")[0] for line in packed.splitlines() if line.endswith(f" {name}")), "")


def around(path: str, here: Place) -> list[Place]:
    """Return the projects that may have leases on a file, the one that it belongs to first; empty for none.

    The file alone decides to which it belongs, so that all agents find one store: to the innermost git checkout around
    it, else to the nearest folder upwards with one of our marks, else to the folder that the agent works in. What
    `INTERLOCK_PROJECT` names goes before, for what is in it. The others follow, as far as they are used or are where
    the agent works. The path is absolute, in a folder without symbolic links, and may not exist yet.
    """
    rows = upwards_of(_folder(os.path.realpath(os.path.dirname(path))))
    is_here = inside(here.root, path)
    if is_here and os.environ.get(PROJECT):
        # In a worktree below the checkout that is named, a file counts from the worktree's root, as everywhere.
        rows.insert(0, next((row for row in rows if row.store_path == here.store_path), here))
    elif is_here:
        rows.append(here)
    kept = {row.store_path: row for row in reversed(rows)}
    first = rows[0].store_path if rows else ""
    stores = {first, here.store_path if is_here else first}
    order = dict.fromkeys(row.store_path for row in rows)
    return [kept[store] for store in order if store in stores or is_used(kept[store])]


def links(path: str) -> tuple[str, ...]:
    """Return the names of an absolute path by which it is held, all without symbolic links in their folders.

    The last is where it leads; one before it is the link that it is itself: replacing that changes what is found there.
    """
    own = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return (own, os.path.realpath(own)) if os.path.islink(own) else (own,)


def real(root: str, path: str) -> tuple[str, ...]:
    """Return the names by which a path below a project's root is held, as `links` says, as all entry points count them.

    They are relative to the checkout that they are in, which may be another worktree; empty for its root. One that is
    in no checkout of the project is absolute. The path has no wildcards, and may not exist yet.
    """
    here = at(root)
    return tuple(_counted(name, here) for name in links(os.path.normpath(os.path.join(root, path))))


def _counted(path: str, here: Place) -> str:
    """Return an absolute path as the project counts it; as it is when it is in none of its checkouts."""
    folder = path if os.path.isdir(path) and not os.path.islink(path) else os.path.dirname(path)
    if inside(here.root, path):
        tops = [row.root for row in _below(here.root, os.path.relpath(folder, here.root)) if row.common == here.common]
        top = tops[-1] if tops else here.root
    else:
        top = next((row.root for row in upwards_of(_folder(folder)) if row.store_path == here.store_path), "")
    if not top:
        return path
    name = os.path.relpath(path, top)
    return "" if name == "." else name


def nested(root: str, path: str) -> Place | None:
    """Return the checkout that a path below a project's root lies in when that is another one; the innermost."""
    return next(iter([*_below(root, path)][-1:]), None)


def other_below(root: str, path: str) -> str:
    """Return the folder, relative to a project's root, of the other project that a path lies in; empty for none.

    A linked worktree below its main one is not another project, and there is none in what `INTERLOCK_PROJECT` names.
    """
    inner = None if os.environ.get(PROJECT) else nested(root, path)
    if inner is None or inner.common == _common(root):
        return ""
    return os.path.relpath(inner.root, os.path.realpath(root))


def main_root(root: str) -> str:
    """Return the folder whose configuration counts for a store: the main worktree of the repository.

    A linked worktree is somebody's own, and its configuration would apply to everybody. A bare repository has no main
    worktree: its own folder counts.
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
    """Return whether anything is at a path below a root, a dangling link included."""
    return os.path.lexists(os.path.join(root, path))


def is_folder(root: str, path: str) -> bool:
    """Return whether a path below a root is a folder, or a link to one."""
    return os.path.isdir(os.path.join(root, path))


def inside(root: str, path: str) -> bool:
    """Return whether an absolute, normal path lies in a folder."""
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def _place(root: str, common: str) -> Place:
    folder = os.path.join(common, "interlock") if common else os.path.join(root, ".interlock")
    return Place(root, common, os.path.join(folder, STORE))


def _folder(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _below(root: str, path: str) -> Iterator[Place]:
    """Yield the other checkouts on the way from a project's root to a path below it, the outermost first."""
    folder = root
    for part in path.split("/"):
        folder = os.path.join(folder, part)
        if part and not os.path.isdir(folder):
            return
        if part and (common := _common(folder)):
            yield _place(os.path.realpath(folder), common)


def upwards_of(folder: str) -> list[Place]:
    """Return the projects around a folder: git's checkouts, then other folders with our marks; innermost first."""
    checkouts: list[Place] = []
    marked: list[Place] = []
    for above in upwards(folder):
        if common := _common(above):
            checkouts.append(_place(above, common))
        elif is_marked(above):
            marked.append(_place(above, ""))
    return checkouts + marked


def _common(root: str) -> str:
    """Return the shared git folder of a checkout's root, or nothing when the folder is not such a root.

    `.git` is a folder, or a file that points to one: of a submodule, or of a linked worktree, whose folder has a file
    `commondir` that points on.
    """
    git = _git_folder(root)
    if not git or not os.path.lexists(os.path.join(git, "HEAD")):
        return ""
    return _shared(git)


def _shared(git: str) -> str:
    """Return the folder that all worktrees of a repository share, from the one of git's that belongs to one of them."""
    return os.path.realpath(os.path.join(git, _line(os.path.join(git, "commondir"))))


def _git_folder(root: str) -> str:
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
    return _whole(path).rstrip("\n")


def _whole(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""
