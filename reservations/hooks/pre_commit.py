"""`interlock hook pre-commit`: a commit carries no path that another agent holds."""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Held, touched
from interlock.reservations.hooks.git_hook import Verdict, judged

FIX: Final = (
    "commit your own paths alone: `git commit -m MESSAGE -- PATHS`, or `interlock commit -m MESSAGE` for all that you "
    "reserved; what the other agents have staged may stay staged."
)


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:  # noqa: ARG001 - git gives this hook nothing
    """Return 0 when the index that is about to be committed leaves alone what others hold, else 1 with the reason.

    The index is the one that git names: that of `commit -a`, `commit -- PATHS` and of a linked worktree too. Additions,
    changes, deletions, both ends of a rename, changed modes and submodules count.
    """
    return judged("pre-commit", env, _look)


def _look(held: Held) -> Verdict:
    """Judge the staged paths."""
    staged = commands.staged_paths(os.getcwd(), in_hook=True)
    return Verdict("this commit carries", touched(held, staged), FIX)
