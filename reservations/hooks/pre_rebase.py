"""`interlock hook pre-rebase`: a rebase rewrites no path that another agent holds; git asks before it begins."""

import os
import os.path
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Held, overlapping, touched
from interlock.reservations.git.rewrites import rebased_paths
from interlock.reservations.hooks.git_hook import Verdict, judged

FIX: Final = (
    "wait until these paths are free (`interlock reserve PATHS --wait 45`), or rebase in a worktree of your own."
)


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:  # noqa: ARG001 - git sends this hook no input
    """Return 0 when the rebase leaves alone what others hold, else 1 with the reason.

    Args:
        argv: The upstream, and the branch when it is not the one checked out.
    """
    status = judged("pre-rebase", env, partial(_look, list(argv)))
    if status:
        _put_back(os.getcwd())
    return status


def _look(argv: list[str], held: Held) -> Verdict:
    """Judge the paths that differ on either side since the branches parted, and unsaved work that was set aside."""
    here = os.getcwd()
    paths = rebased_paths(here, argv, in_hook=True)
    aside = [path for _, stash in _set_aside(here) for path in commands.stashed_paths(here, stash, in_hook=True)]
    hits = overlapping(held, "**") if paths is None else touched(held, [*paths, *aside])
    return Verdict("this rebase rewrites", hits, FIX)


def _set_aside(here: str) -> list[tuple[str, str]]:
    """Return where git notes what `--autostash` has put away before it asks this hook, and the commit that holds it."""
    folder = os.fsdecode(commands.ask(here, ["rev-parse", "--absolute-git-dir"], in_hook=True)).removesuffix("\n")
    rows: list[tuple[str, str]] = []
    for name in ("rebase-merge", "rebase-apply"):
        path = os.path.join(folder, name, "autostash")
        try:
            with open(path, encoding="ascii") as file:
                rows.append((path, file.read().strip()))
        except FileNotFoundError:
            continue
    return rows


def _put_back(here: str) -> None:
    """Put back what `--autostash` has put away: git does not when this hook refuses, and it may be another's work."""
    try:
        for path, stash in _set_aside(here):
            commands.ask(here, ["stash", "apply", "-q", "--index", stash], in_hook=True)
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
    except (commands.GitError, OSError) as error:
        sys.stderr.write(f"  unsaved work is set aside still: `git rebase --abort` puts it back ({error})\n")
