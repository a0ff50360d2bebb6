"""Git's hooks `pre-commit` and `pre-rebase`, and what all of git's hooks have in common.

Each looks at what others hold, and refuses on standard error or says nothing.
"""

import os
import os.path
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from interlock.core.errors import InterlockError
from interlock.reservations.git import commands, foreign_leases
from interlock.reservations.git.foreign_leases import Held, Hit, everything, touched
from interlock.reservations.leases.runtime import Context

COMMIT_FIX: Final = (
    "`interlock commit -m MESSAGE` commits all that you reserved and nothing else, and is recorded for `interlock "
    "verify`; what the other agents have staged may stay staged."
)
REBASE_FIX: Final = (
    "wait until these paths are free (`interlock reserve PATHS --wait 45`), or rebase in a worktree of your own."
)


class Verdict(NamedTuple):
    """What a hook would touch; nothing is a pass. `is_late`: git may have written files before it asked."""

    action: str
    hits: Sequence[Hit]
    fix: str
    is_late: bool = False


def judged(
    via: str, env: Mapping[str, str], look: Callable[[Held], Verdict | None], *, everywhere: bool = False
) -> int:
    """Return the exit status of a hook: 0 without a word, or 1 with the reason on standard error.

    `look` is called with what others hold, when they hold anything; `everywhere`, also on other machines. A store that
    cannot be read refuses: what it would have said is not known.
    """
    try:
        opened, held = foreign_leases.holdings(foreign_leases.project(os.getcwd()), "git", env, everywhere=everywhere)
        verdict = look(held) if held.values else None
        if opened is None or verdict is None or not verdict.hits:
            return 0
        return refused(opened, via, verdict)
    except InterlockError as error:
        text = f"interlock {error.code}: {via} cannot see what other agents hold: {error.message}"
        sys.stderr.write(f"{text}\n  fix: {error.fix}\n")
        return 1


def refused(ctx: Context, via: str, verdict: Verdict) -> int:
    """Print a refusal, add it to the events, put back what git wrote all the same before it asked, and return 1."""
    sys.stderr.write(f"{foreign_leases.explain(verdict.action, verdict.hits, verdict.fix)}\n")
    foreign_leases.note(ctx, via, verdict.action, verdict.hits)
    if verdict.is_late:
        from interlock.reservations import place  # noqa: PLC0415 - few refusals come too late
        from interlock.reservations.versions import watch  # noqa: PLC0415

        for line in watch.look_now(ctx, place.at(ctx.caller.root), watch.Did("git")):
            sys.stderr.write(f"  {line}\n")
    return 1


def is_zero(name: str) -> bool:
    """Return whether an id consists of zeros, as that of a ref that is not there."""
    return not name.strip("0")


def pre_commit(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:  # noqa: ARG001 - git gives this hook nothing
    """Return 0 when the index that is about to be committed leaves alone what others hold, else 1 with the reason.

    The index is the one that git names: that of `commit -a`, `commit -- PATHS` and of a linked worktree too. Additions,
    changes, deletions, both ends of a rename, changed modes and submodules count.
    """
    return judged("pre-commit", env, _committed, everywhere=True)


def _committed(held: Held) -> Verdict:
    return Verdict("this commit carries", touched(held, commands.staged_paths(os.getcwd(), in_hook=True)), COMMIT_FIX)


def pre_rebase(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:  # noqa: ARG001 - git sends this hook no input
    """Return 0 when the rebase leaves alone what others hold, else 1 with the reason; git asks before it begins.

    It names the upstream, and the branch when it is not the one checked out.
    """
    status = judged("pre-rebase", env, lambda held: _rebased(argv, held))
    if status:
        _put_back(os.getcwd())
    return status


def _rebased(argv: Sequence[str], held: Held) -> Verdict:
    """Judge the paths that differ on either side since the branches parted, and unsaved work that was set aside.

    Where it is not known what takes part, it may be everything.
    """
    here = os.getcwd()
    head = commands.commit_of(here, "HEAD", in_hook=True)
    others = [commands.commit_of(here, name, in_hook=True) for name in argv]
    if head is None or not others or None in others:
        return Verdict("this rebase rewrites", everything(held), REBASE_FIX)
    paths = [path for _, stash in _set_aside(here) for path in commands.stashed_paths(here, stash)]
    for other in filter(None, others):
        paths += commands.merged_paths(here, head, other)
        paths += commands.merged_paths(here, other, head)
    return Verdict("this rebase rewrites", touched(held, paths), REBASE_FIX)


def _set_aside(here: str) -> list[tuple[str, str]]:
    """Return where git notes what `--autostash` has put away before it asks this hook, and the commit that holds it."""
    rows: list[tuple[str, str]] = []
    for name in ("rebase-merge", "rebase-apply"):
        path = os.path.join(git_dir(here), name, "autostash")
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


def git_dir(here: str) -> str:
    """Return git's own folder of the present checkout."""
    return os.fsdecode(commands.ask(here, ["rev-parse", "--absolute-git-dir"], in_hook=True)).removesuffix("\n")
