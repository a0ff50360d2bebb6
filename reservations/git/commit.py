"""`interlock commit`: exactly the agent's own paths, whatever others have staged or changed in the same checkout.

Git itself makes the partial commit (`git commit --only`): the index keeps everybody else's entries as they were, the
user's hooks run, and a commit that fails leaves the index as it was found.
"""

import os
import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NotRequired, TypedDict

from interlock.core.project import PROJECT
from interlock.reservations import place
from interlock.reservations.answers import Refusal
from interlock.reservations.errors import ReservationError
from interlock.reservations.git import commands, partial_commit
from interlock.reservations.git.foreign_leases import foreign, touched
from interlock.reservations.git.hook_scripts import KEPT_SUFFIX, MARK
from interlock.reservations.git.uncommitted import EXPECTED, MAX_LEFT, Left, Owned, nothing, whose
from interlock.reservations.leases import calls
from interlock.reservations.leases.commit_lock import HOLD_SECONDS, alone, announce
from interlock.reservations.leases.fencing import NotCoveredError, guarded
from interlock.reservations.leases.runtime import Context
from interlock.reservations.patterns import matches
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import SYSTEM
from interlock.reservations.versions import watch
from interlock.reservations.versions.watch import MAX_NAMED

OWN_FOLDER: Final = "artifacts/interlock"
"""Where Interlock writes by itself: committed when it is named, and otherwise nobody's change."""
MAX_EVENT_PATHS: Final = 50

_HOOKS: Final = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_HEAD_BYTES: Final = 200
_MORE: Final = re.compile(r" and [0-9]+ more\b")
_UNMERGED: Final = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_UNDERWAY: Final = {
    "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}  # fmt: skip


class CommitAnswer(TypedDict):
    """The answer of a commit: `commit` is null when none was made; with errors beside it, it was made all the same.

    `left` are the changed paths that stay as they are, those that nobody holds first: of `left_count` at most
    `MAX_LEFT`; `said` is what git or a hook printed; `disturbed` says what a hook of yours did to files of others.
    """

    commit: str | None
    paths: list[str]
    left: list[Left]
    left_count: int
    released: list[str]
    branch: NotRequired[str]
    said: NotRequired[str]
    disturbed: NotRequired[list[str]]
    errors: list[Refusal]


def commit(
    ctx: Context,
    message: str | None,
    paths: Sequence[str] = (),
    *,
    release: bool = False,
    anyway: bool = False,
    on: str = "",
) -> CommitAnswer:
    """Commit the changed paths that own exclusive leases cover, and nothing else.

    New files and deletions are taken along. A path counts as a whole: what is staged of it and what is not.

    Args:
        message: The message; None opens the user's editor.
        paths: Files and folders relative to the root, all of whose changes must be own ones; none: every own one.
        release: Give up the leases of what was committed, where nothing else below them is changed.
        anyway: Commit also what another agent wrote over, with the message about it unread.
        on: The branch that it may go to although the files were reserved on another one.

    Raises:
        GitError: There is no git, or it hangs.
        ReservationError: The store cannot be used.
    """
    where = _where(ctx.caller.root)
    if where is None:
        fix = "Run it in a git checkout; `git init` makes one."
        if os.environ.get(PROJECT):
            fix = (
                f"What {PROJECT} names is not a git checkout: commit in the repository itself with "
                "`git commit -m MESSAGE -- PATHS`, which its hooks judge by the same leases."
            )
        return _refused("There is no git checkout with its top here.", ctx.caller.root, fix)
    folder, common = where
    for name, what in _UNDERWAY.items():
        if os.path.lexists(os.path.join(folder, name)):
            text = f"A {what} is under way, and git makes no partial commit then."
            return _refused(
                text, name, f"Finish it with `git commit` or `--continue`, or go back: `git {what} --abort`."
            )
    with alone(ctx.runtime, common) as lock:
        if lock is None:
            text = "Another `interlock commit` is at work in this repository."
            return _refused(text, "commit.lock", "Try again when it has ended.")
        _look(ctx)
        if message is not None and _runs_hooks(ctx.caller.root):
            announce(lock, ctx.caller.name, ctx.caller.root)  # not while an editor is open, which sets nothing aside
        answer = _commit(ctx, message, paths, release=release, anyway=anyway, on=on)
    if answer["commit"] and (disturbed := _look(ctx, watch.Did("interlock commit"))):
        answer["disturbed"] = disturbed
    return answer


def _look(ctx: Context, event: watch.Did | None = None) -> list[str]:
    """Look at what is held; what cannot be kept, or is over the bound, can be committed all the same."""
    with suppress(ReservationError):
        return watch.look_now(ctx, place.at(ctx.caller.root), event)
    return []


def _unread(ctx: Context, paths: Iterable[str]) -> list[str]:
    """Return which of some paths were kept twice, as messages say that the caller has not read."""
    with calls.entered(ctx) as entry:
        name = entry.agent.name
        rows = entry.tx.inbox(name, after=0, unread_only=True, limit=entry.tx.unread_count(name))
    bodies = [row.body for row in rows if row.topic == watch.TOPIC and row.sender == SYSTEM]
    return [path for path in paths if any(shown(path) in body or _MORE.search(body) for body in bodies)]


def _commit(
    ctx: Context, message: str | None, paths: Sequence[str], *, release: bool, anyway: bool, on: str
) -> CommitAnswer:
    named = {*paths}
    changed = {path: state for path, state in commands.changed(ctx.caller.root).items()
               if not path.startswith(f"{OWN_FOLDER}/") or named & {path, OWN_FOLDER}}  # fmt: skip
    own = [lease for lease in calls.mine(ctx)["reservations"] if lease["exclusive"]]
    covered = {path for path in changed if any(matches(lease["pattern"], path) for lease in own)}
    wanted, missing = (sorted(covered), []) if not paths else _named(ctx.caller.root, changed, paths)
    if missing:
        text = f"{shown(missing[0])} is not a file here, nor known to git."
        return _refused(text, missing[0], "Correct the path.")
    if not wanted:
        rows = whose(ctx, changed, covered)
        return _with_left(_none([nothing(ctx, rows, paths)]), rows)
    unmerged = [path for path in wanted if changed[path] in _UNMERGED]
    if unmerged:
        return _refused(f"{shown(unmerged[0])} has conflicts.", unmerged[0], "Settle them, then `git add` the file.")
    if refusal := _on_another_branch(ctx, wanted, on):
        return refusal
    if not anyway and (over := _unread(ctx, wanted)):
        text = f"{shown(over[0])} was written while you held it, maybe by another agent; you have not read the message."
        fix = (
            "Read `interlock inbox`, look at `git diff`, and commit again where it is as you want it; or give --anyway."
        )
        return _refused(text, ", ".join(map(shown, over[:MAX_NAMED])), fix)
    try:
        with guarded(ctx, wanted, hold_seconds=HOLD_SECONDS):
            answer = _made(ctx, message, wanted, changed)
    except NotCoveredError as refused:
        answer = _none(refused.errors)
    _with_left(answer, whose(ctx, changed.keys() - set(answer["paths"]), covered))
    if answer["commit"] is None:
        return answer
    _record(ctx, answer)
    if release and not answer["errors"]:
        touched_ids = {row["reservation_id"]: row["pattern"] for row in own
                       if any(matches(row["pattern"], path) for path in wanted)}  # fmt: skip
        still = ctx.runtime.dirty(ctx.caller.root, tuple(touched_ids.values()))
        clean = [key for key, pattern in touched_ids.items() if still[pattern] is False]
        answer["released"] = calls.release(ctx, clean, report_unsaved=False)["released"] if clean else []
    return answer


def _on_another_branch(ctx: Context, paths: Sequence[str], on: str) -> CommitAnswer | None:
    """Refuse a commit that would go to another branch than the one on which its files were reserved."""
    head = place.head(ctx.caller.root)
    name = head.removeprefix("refs/heads/")
    with calls.entered(ctx) as entry:
        own = [lease for lease in entry.tx.leases_of(entry.agent.name) if lease.root == ctx.caller.root]
    strange = [
        lease
        for lease in own
        if lease.branch.startswith("refs/")
        and lease.branch != head
        and any(matches(lease.pattern, path) for path in paths)
    ]
    if not strange or on == name:
        return None
    was = strange[0].branch.removeprefix("refs/heads/")
    text = f"This checkout is on {shown(name)} now, and {shown(strange[0].pattern)} was reserved on {shown(was)}."
    fix = (
        f"If it belongs on {shown(name)}: `interlock commit --on {shown(name)} …`. Else ask who switched to go back to "
        f"{shown(was)}, or work in a worktree of your own."
    )
    return _refused(text, name, fix)


def _made(ctx: Context, message: str | None, paths: list[str], changed: Mapping[str, str]) -> CommitAnswer:
    """Let git make the commit, and undo it if a hook added what others hold."""
    made = partial_commit.make(ctx, message, paths, [path for path in paths if changed[path] == "??"])
    answer = _judged(ctx, made, paths)
    if made.said:
        answer["said"] = made.said
    return answer


def _judged(ctx: Context, made: partial_commit.PartialCommit, paths: Sequence[str]) -> CommitAnswer:
    if made.commit is None:
        lines = made.said.splitlines() or ["no message"]
        text = "Git or one of your hooks refused the commit; nothing was committed."
        return _refused(text, lines[-1], "See what it said, fix that, and commit again.")
    branch = place.head(ctx.caller.root).removeprefix("refs/heads/")
    answer: CommitAnswer = {**_none([]), "commit": made.commit, "paths": made.paths, "branch": branch}
    strange = touched(foreign(ctx), sorted({*made.paths} - {*paths}))
    if not strange:
        return answer
    path, holder = strange[0][0], strange[0][1]["holder"]
    text, fix = f"A hook of yours added {shown(path)}, which {shown(holder)} holds", "Let the hook stage only the files"
    if partial_commit.undo(ctx.caller.root, made):
        return _refused(f"{text}; the commit was undone.", path, f"{fix} of the commit.")
    refusal = _refused(
        f"{text}; the commit could not be undone.", path,
        f"{fix} of the commit, show {shown(holder)} `git show {made.commit}`, and revert it unless that agent agrees.",
    )  # fmt: skip
    answer["errors"] = refusal["errors"]
    return answer


def _where(root: str) -> tuple[str, str] | None:
    """Return git's folder of this checkout and the one that all worktrees share; None outside of a checkout's top."""
    output = commands.answer(root, ["rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-cdup"])
    if output is None:
        return None
    folder, common, up = (os.fsdecode(output) + "\n").split("\n")[:3]
    return None if up else (folder, os.path.join(root, common))


def _runs_hooks(root: str) -> bool:
    """Return whether a commit runs hooks of the user's: Interlock's own set nothing aside, and end at once."""
    folder = os.path.join(
        root, os.fsdecode(commands.ask(root, ["rev-parse", "--git-path", "hooks"])).removesuffix("\n")
    )
    for name in _HOOKS:
        path = os.path.join(folder, name)
        if os.access(path + KEPT_SUFFIX, os.X_OK):
            return True
        if os.access(path, os.X_OK):
            with open(path, "rb") as file:
                if MARK.encode() not in file.read(_HEAD_BYTES):
                    return True
    return False


def _named(root: str, changed: Mapping[str, str], paths: Iterable[str]) -> tuple[list[str], list[str]]:
    found: set[str] = set()
    missing: list[str] = []
    for path in paths:
        below = [name for name in changed if path in {"", "."} or name == path or name.startswith(f"{path}/")]
        found.update(below)
        known = below or os.path.lexists(os.path.join(root, path)) or commands.ask(root, ["ls-files", "--", path])
        missing += [] if known else [path]
    return sorted(found), missing


def _refused(message: str, found: str, fix: str) -> CommitAnswer:
    return _none([refuse("RSV208", message, place="commit", found=found, expected=EXPECTED, fix=fix)])


def _with_left(answer: CommitAnswer, rows: Sequence[Owned]) -> CommitAnswer:
    answer["left"], answer["left_count"] = [each.row for each in rows[:MAX_LEFT]], len(rows)
    return answer


def _none(errors: list[Refusal]) -> CommitAnswer:
    return {"commit": None, "paths": [], "left": [], "left_count": 0, "released": [], "errors": errors}


def _record(ctx: Context, answer: CommitAnswer) -> None:
    paths = [shown(path) for path in answer["paths"][:MAX_EVENT_PATHS]]
    with calls.entered(ctx) as entry:
        entry.event(
            "committed", agent=ctx.caller.name, commit=answer["commit"], paths=paths, count=len(answer["paths"])
        )
