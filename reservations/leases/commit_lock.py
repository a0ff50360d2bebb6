"""One `interlock commit` at a time in a repository; while its hooks may have unsaved work set aside, edits wait.

pre-commit and lint-staged take what is not staged off the disk while their checks run, the work of other agents too,
and write it back over whatever was written meanwhile.
"""

import os
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from interlock.core.locks import locked
from interlock.reservations.leases.runtime import Runtime
from interlock.reservations.place import Place

LOCK_SECONDS: Final = 30.0
"""How long a commit waits for the commit of another agent in the same checkout, or for git's index."""
HOLD_SECONDS: Final = 900.0
"""How long the leases are kept while git and the user's hooks work; git is stopped after that."""
PAUSE_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 5.0
"""How long an edit waits for a commit; clients give up on a hook after half a minute."""


@contextmanager
def alone(runtime: Runtime, common: str) -> Generator[int | None]:
    """Keep other commits of ours out of a repository, by the folder of git's that all its worktrees share.

    Yields the open file of the lock, for `announce`; None when another commit is at work for too long.
    """
    path = _path(common)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with locked(file, seconds=LOCK_SECONDS, clock=runtime.monotonic, pause=runtime.pause) as mine:
            try:
                yield file if mine else None
            finally:
                if mine:
                    os.truncate(file, 0)
    finally:
        os.close(file)


def announce(file: int, agent: str, root: str) -> None:
    """Let edits in a checkout wait until the commit has ended, or its process."""
    os.truncate(file, 0)
    os.pwrite(file, os.fsencode(f"{agent}\n{root}"), 0)


def at_work(common: str, root: str, now: float) -> str:
    """Return the agent whose commit is at work in a checkout and lets edits wait; empty for none.

    A commit that is older than git may take holds nobody up.
    """
    try:
        file = os.open(_path(common), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return ""  # nobody has taken it, or the store beside it says what is wrong
    try:
        agent, _, where = os.fsdecode(os.read(file, 8192)).partition("\n")
        if where != root or os.fstat(file).st_mtime + HOLD_SECONDS < now:
            return ""
        with locked(file, shared=True, seconds=0) as free:
            return "" if free else agent
    finally:
        os.close(file)


def outlasted(places: Iterable[Place]) -> str:
    """Wait until no commit is at work in some checkouts; return whose takes too long, empty for none."""
    end = time.monotonic() + PATIENCE_SECONDS
    for found in places:
        while found.common and (agent := at_work(found.common, found.root, time.time())):
            if time.monotonic() >= end:
                return agent
            time.sleep(PAUSE_SECONDS)
    return ""


def _path(common: str) -> str:
    return os.path.join(common, "interlock", "commit.lock")
