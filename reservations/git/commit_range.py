"""The commits of a range as git has them: when each says it was made, by whom, and the paths that it changes."""

import os
import os.path
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from interlock.core.project import PROJECT
from interlock.reservations import place
from interlock.reservations.errors import ReservationError
from interlock.reservations.git import commands
from interlock.reservations.rules import shown


class CommitsUnreadError(ReservationError):
    """The commits, or the records of leases to check them against, cannot be read.

    Fix: The range names nothing here, the clone is too shallow, or the journal is missing. Fetch the commits, name
    a range such as origin/main..HEAD, and point at the journal.
    """

    code: ClassVar[str] = "RSV909"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit.

    Args:
        at: When it says it was made: the committer's time, whole seconds since the epoch.
        committer: Who it says made it; anybody can write that.
        paths: What it changes, relative to the project; of a merge, what differs from every parent.
    """

    id: str
    at: int
    committer: str
    paths: tuple[str, ...]
    parents: tuple[str, ...] = ()


def read_commits(start: str, root: str, wanted: str) -> list[Commit]:
    """Return the commits of a range, the newest first, with their paths relative to the project at `root`.

    The repository is in the project, or around it.
    """
    wrong = CommitsUnreadError(
        f"{shown(wanted)} names no commits in {start}", "Give a range such as origin/main..HEAD; fetch what it names."
    )
    if wanted.startswith("-"):
        raise wrong
    output = commands.answer(start, ["rev-parse", "--show-toplevel", "--is-shallow-repository"])
    if output is None:
        raise CommitsUnreadError(
            f"there is no git checkout at {start}", "Run it in the one whose commits are to be checked."
        )
    top, shallow = os.fsdecode(output).removesuffix("\n").rsplit("\n", 1)
    ids = commands.answer(start, ["--no-replace-objects", "rev-list", wanted, "--"])
    if ids is None or (not ids and ".." not in wanted):
        raise wrong
    if shallow == "true":
        raise CommitsUnreadError(
            "this clone is shallow: where its history is cut, a commit seems to change every file",
            "Fetch the whole history: `git fetch --unshallow`, or `fetch-depth: 0` in a workflow.",
        )
    return commits_of(start, os.path.realpath(top), root, ids)


def commits_of(start: str, top: str, root: str, ids: bytes) -> list[Commit]:
    """Return commits by their ids, one a line, in that order."""
    arguments = ["diff-tree", "--stdin", "--always", "-r", "-c", "-z", "--root", "--raw", "--no-renames"]
    arguments += ["--no-ext-diff", "--pretty=tformat:%H %ct %P%x09%cn <%ce>"]
    return [
        replace(commit, paths=_in_project(commit.paths, top, root))
        for commit in _parsed(commands.ask(start, ["--no-replace-objects", *arguments], data=ids))
    ]


def _parsed(output: bytes) -> Iterator[Commit]:
    """Read a header per commit, and per path a row that begins with a colon and then the path itself."""
    header, paths = "", list[str]()
    items = iter(output.split(b"\0"))
    for item in items:
        text = item.lstrip(b"\n")
        if text.startswith(b":"):
            paths.append(os.fsdecode(next(items)))
        elif text:
            if header:
                yield _commit(header, paths)
            header, paths = os.fsdecode(text), []
    if header:
        yield _commit(header, paths)


def _commit(header: str, paths: Sequence[str]) -> Commit:
    ids, committer = header.split("\t", 1)
    name, at, *parents = ids.split()
    return Commit(name, int(at), committer, tuple(paths), tuple(parents))


def in_git(path: str, top: str, root: str) -> str:
    """Return a path of the project as its repository names it."""
    return os.path.relpath(os.path.join(root, path), top)


def _in_project(paths: Sequence[str], top: str, root: str) -> tuple[str, ...]:
    """Return paths of a repository relative to the project; those outside of it are left out."""
    if place.inside(root, top):
        below = os.path.relpath(top, root)
        return tuple(paths) if below == "." else tuple(f"{below}/{path}" for path in paths)
    if place.inside(top, root):
        prefix = os.path.relpath(root, top) + "/"
        return tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
    raise CommitsUnreadError(f"the repository {top} is not part of the project {root}", f"Correct or unset {PROJECT}.")
