"""`interlock hook reference-transaction`: the checked-out branch and the stash leave alone what other agents hold.

Git asks this hook before it moves any ref, with `--no-verify` too. Judged are moves of HEAD and its branch, a new stash
(before git takes the changes out of the working tree), and the start of a merge (its ORIG_HEAD, before the working tree
changes). Fetches, pushes, tags, notes and other branches pass.
"""

import os
import os.path
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Held, Hit, touched
from interlock.reservations.hooks.git_hook import Verdict, git_dir, is_zero, judged

MOVE_FIX: Final = (
    "leave these paths out: `interlock commit -m MESSAGE` commits your own alone. If this was a cherry-pick, revert, "
    "rebase or am, go back with its `--abort`."
)
STASH_FIX: Final = "set aside your own paths alone: `git stash push -- PATHS`, or commit them: `interlock commit`."
MERGE_FIX: Final = "wait until these paths are free (`interlock reserve PATHS --wait 45`), then merge."
_STARTS: Final = ("rebase-merge/orig-head", "rebase-apply/orig-head", "rebase-apply/abort-safety", "sequencer/head")
"""Where git keeps the commit that `--abort` goes back to; going back always passes."""
_THERE: Final = ("--all", "--reflog")
"""Every commit that a ref of the repository points to, or has pointed to."""


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0 when the moves leave alone what others hold, else 1 with the reason.

    Only in the state `prepared` can they be refused; the input is a line for each ref: old id, new id, name.
    """
    if list(argv[:1]) != ["prepared"]:
        return 0
    moves = [tuple(line.split(" ", 2)) for line in os.fsdecode(data).split("\n")]
    wanted = [move for move in moves if len(move) == 3 and _concerns(move, env)]
    return judged("reference-transaction", env, partial(_look, wanted, env)) if wanted else 0


def _concerns(move: tuple[str, ...], env: Mapping[str, str]) -> bool:
    """Return whether a move may touch a working tree, by what git says alone."""
    old, new, name = move
    if name == "ORIG_HEAD":
        return _action(env) in {"merge", "pull"}
    if is_zero(new):
        # A branch that is deleted alone is one that git packs away; the deletion of the checked-out one names HEAD too.
        return name == "HEAD"
    return old != new and (name in {"HEAD", "refs/stash"} or name.startswith("refs/heads/"))


def _look(moves: Sequence[tuple[str, ...]], env: Mapping[str, str], held: Held) -> Verdict | None:
    """Judge the moves, the first that touches something is the answer."""
    here = os.getcwd()
    folder = git_dir(here)
    branch = _first_line(os.path.join(folder, "HEAD")).removeprefix("ref: ")
    own = os.path.basename(os.path.dirname(folder)) == "worktrees"
    for old, new, name in moves:
        if name == "refs/stash":
            verdict = Verdict("this stash would take away", _stashed(here, new, held), STASH_FIX)
        elif name == "ORIG_HEAD":
            verdict = Verdict("this merge would change", touched(held, _merging(here, folder, env, own=own)), MERGE_FIX)
        elif name not in {"HEAD", branch}:
            continue
        else:
            before = commands.commit_of(here, name, in_hook=True) if is_zero(old) else old
            # A worktree that is just being made has nothing in it that could be changed.
            is_fresh = before is None and own and not os.path.exists(os.path.join(folder, "index"))
            goes_back = any(_first_line(os.path.join(folder, *start.split("/"))) == new for start in _STARTS)
            if before == new or is_fresh or goes_back:
                continue
            if own and not is_zero(new) and commands.reaches(here, _THERE, new):
                # Nothing new comes about, and the files that change are those of this worktree alone.
                continue
            after = commands.empty_tree(here, in_hook=True) if is_zero(new) else new
            hits = touched(held, commands.between(here, before, after, in_hook=True))
            action = f"this move of {'HEAD' if name == 'HEAD' else name} changes"
            verdict = Verdict(action, hits, MOVE_FIX, is_late=True)
        if verdict.hits:
            return verdict
    return None


def _action(env: Mapping[str, str]) -> str:
    return env.get("GIT_REFLOG_ACTION", "").partition(" ")[0]


def _stashed(here: str, stash: str, held: Held) -> list[Hit]:
    """Return what is held and about to be taken out of the working tree; what is gone there is only being saved."""
    hits = touched(held, commands.stashed_paths(here, stash))
    still = commands.changed(here, [path for path, _ in hits], in_hook=True) if hits else {}
    return [hit for hit in hits if hit[0] in still]


def _merging(here: str, folder: str, env: Mapping[str, str], *, own: bool) -> list[str]:
    """Return the paths that the merge at hand may change; in a worktree of its own, only by a commit made there."""
    named = env.get("GIT_REFLOG_ACTION", "").split()[1:] if _action(env) == "merge" else []
    tips = [commit for name in named if (commit := commands.commit_of(here, name, in_hook=True))]
    if not tips:
        tips = _fetched(os.path.join(folder, "FETCH_HEAD"))
    head = commands.commit_of(here, "HEAD", in_hook=True)
    if own and head:
        tips = [tip for tip in tips if not commands.reaches(here, [tip], head)]
    return [path for tip in tips if head for path in commands.merged_paths(here, head, tip)]


def _fetched(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        return []
    return [line.split("\t")[0] for line in lines if line and "\tnot-for-merge\t" not in line]


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().rstrip("\n")
    except OSError:
        return ""
