"""Merges that throw away what an agent committed while it held the file.

A merge that keeps one side of a file changes nothing of what that side has, and at the time of the merge nobody may
hold the file any more. So for each parent, the files are looked at that commits recorded by `interlock commit` changed
on that parent's side alone, and what that side added and removed there, line by line, is held against the merge.
"""

import os.path
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from interlock.reservations.git import commands
from interlock.reservations.git.commit_range import Commit, commits_of, in_git
from interlock.reservations.store.history import RecordedCommit


@dataclass(frozen=True, slots=True)
class Discarded:
    """A file in which a merge does not keep what one of its parents brought, in the newest recorded commit (`source`).

    It is `whole` when the merge has the file as another parent has it, so that nothing of the change is left.
    """

    path: str
    source: str
    whole: bool


def discarded(start: str, root: str, merge: Commit, made: Mapping[str, RecordedCommit]) -> Iterator[Discarded]:
    """Yield what a merge discards of recorded commits, each file once."""
    if not made:
        return
    top = os.path.realpath(os.fsdecode(commands.ask(start, ["rev-parse", "--show-toplevel"])).removesuffix("\n"))
    reported = set[str]()
    for side in merge.parents:
        for other in merge.parents:
            own = [name for name in _ids(start, "rev-list", side, f"^{other}", "--") if name in made]
            for commit in commits_of(start, top, root, "".join(f"{name}\n" for name in own).encode()) if own else ():
                for path in commit.paths:
                    lost = None if path in reported else _lost(start, merge, side, other, in_git(path, top, root))
                    if lost is not None:
                        reported.add(path)
                        yield Discarded(path, commit.id, lost)


def _lost(start: str, merge: Commit, side: str, other: str, path: str) -> bool | None:
    """Return whether all of what a side changed in a file is lost, or only some; None when the merge has it."""
    base = _ids(start, "merge-base", side, other)
    before = _blob(start, base[0], path) if base else None
    brought, kept = _blob(start, side, path), _blob(start, merge.id, path)
    if brought in (before, kept) or not _is_missing(before, brought, kept):
        return None
    return kept is None or any(kept == _blob(start, parent, path) for parent in merge.parents)


def _is_missing(before: bytes | None, brought: bytes | None, kept: bytes | None) -> bool:
    """Return whether lines that a side added are not there, or lines that it took out are there again."""
    if (brought is None) != (kept is None):
        return True
    old, new, now = (Counter((data or b"").splitlines()) for data in (before, brought, kept))
    return bool((new - old) - (now - old) or (old - new) - (old - now))


def _blob(start: str, commit: str, path: str) -> bytes | None:
    return commands.answer(start, ["--no-replace-objects", "cat-file", "blob", f"{commit}:{path}"])


def _ids(start: str, *arguments: str) -> list[str]:
    return (commands.answer(start, ["--no-replace-objects", *arguments]) or b"").decode().split()
