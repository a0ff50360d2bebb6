"""`interlock commit`: exactly the agent's own paths, whatever others have staged or changed in the same checkout.

Git itself makes the partial commit (`git commit --only`): the index keeps everybody else's entries as they were, the
user's hooks run, and a commit that fails leaves the index as it was found. `HEAD` may move on by other commits before,
while and after git works; a mark of its own in the reflog says which commit this one is.
"""

import os
import os.path
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NotRequired, TypedDict

from interlock.core import git
from interlock.core.patterns import matches, quote
from interlock.reservations import place
from interlock.reservations.answers import Conflict, Refusal
from interlock.reservations.errors import ReservationError
from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import foreign, touched
from interlock.reservations.leases import calls
from interlock.reservations.leases.commit_lock import HOLD_SECONDS, LOCK_SECONDS, PAUSE_SECONDS, alone, announce
from interlock.reservations.leases.fencing import NotCoveredError, guarded
from interlock.reservations.leases.runtime import Context, Runtime
from interlock.reservations.rules import refuse, shown, some
from interlock.reservations.versions import watch
from interlock.reservations.versions.watch import MAX_NAMED

OWN_FOLDER: Final = "artifacts/interlock"
"""Where Interlock writes by itself: committed when it is named, and otherwise nobody's change."""
MAX_EVENT_PATHS: Final = 50
_EXPECTED: Final = "changed files under own leases, in a checkout where git can commit"
_UNMERGED: Final = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
"""Git's letters for a path with conflicts. Git itself refuses it only during a merge: of a file that is named to
`git commit --only`, it takes what is on the disk, conflict markers too."""


class CommitAnswer(TypedDict):
    """The answer of a commit: `commit` is null when none was made.

    `said` is what git or a hook printed; `disturbed` says what a hook of yours did to files of others.
    """

    commit: str | None
    paths: list[str]
    released: list[str]
    branch: NotRequired[str]
    said: NotRequired[str]
    disturbed: NotRequired[list[str]]
    errors: list[Refusal]


def commit(
    ctx: Context, message: str | None, paths: Sequence[str] = (), *, release: bool = False, on: str = ""
) -> CommitAnswer:
    """Commit the changed paths that own exclusive leases cover, and nothing else.

    New files and deletions are taken along. A path counts as a whole: what is staged of it and what is not.

    Args:
        message: The message; None opens the user's editor.
        paths: Files and folders relative to the root, all of whose changes must be own ones; none: every own one.
        release: Give up the leases of what was committed, where nothing else below them is changed.
        on: The branch that it may go to although the files were reserved on another one.

    Raises:
        GitError: There is no git, or it hangs.
        ReservationError: The store cannot be used.
    """
    common = place.at(ctx.caller.root).common
    if not common:
        fix = "Run it at the top of a git checkout, or commit there with `git commit -m MESSAGE -- PATHS`."
        return _refused("There is no git checkout with its top here.", ctx.caller.root, fix)
    with alone(ctx.runtime, common) as lock:
        if lock is None:
            text = "Another `interlock commit` is at work in this repository."
            return _refused(text, "commit.lock", "Try again when it has ended.")
        _look(ctx)
        if message is not None:
            announce(lock, ctx.caller.name, ctx.caller.root)  # not while an editor is open, which sets nothing aside
        answer = _commit(ctx, message, paths, release=release, on=on)
    if answer["commit"] and (disturbed := _look(ctx, watch.Did("interlock commit"))):
        answer["disturbed"] = disturbed
    return answer


def _look(ctx: Context, event: watch.Did | None = None) -> list[str]:
    """Look at what is held; what cannot be kept, or is over the bound, can be committed all the same."""
    with suppress(ReservationError):
        return watch.look_now(ctx, place.at(ctx.caller.root), event)
    return []


def _commit(ctx: Context, message: str | None, paths: Sequence[str], *, release: bool, on: str) -> CommitAnswer:
    root = ctx.caller.root
    changed = {
        path: state
        for path, state in commands.changed(root).items()
        if not path.startswith(f"{OWN_FOLDER}/") or not {path, OWN_FOLDER}.isdisjoint(paths)
    }
    own = [lease for lease in calls.mine(ctx)["reservations"] if lease["exclusive"]]
    wanted = sorted(path for path in changed if any(matches(lease["pattern"], path) for lease in own))
    if paths:
        below = {path: _below(changed, path) for path in paths}
        missing = [path for path, rows in below.items() if not rows and not _is_known(root, path)]
        if missing:
            return _refused(
                f"{shown(missing[0])} is not a file here, nor known to git.", missing[0], "Correct the path."
            )
        wanted = sorted({path for rows in below.values() for path in rows})
    if not wanted:
        return _none([_nothing(ctx, [*changed], paths)])
    if unmerged := [path for path in wanted if changed[path] in _UNMERGED]:
        fix = "Settle them and `git add` the file; commit again, or during a merge finish that with `git commit`."
        return _refused(f"{shown(unmerged[0])} has conflicts.", some(unmerged), fix)
    if refusal := _on_another_branch(ctx, wanted, on):
        return refusal
    try:
        with guarded(ctx, wanted, hold_seconds=HOLD_SECONDS):
            new = [path for path in wanted if changed[path] == "??"]
            answer = _answered(root, *_make(ctx, message, wanted, new))
    except NotCoveredError as refused:
        return _none(refused.errors)
    if answer["commit"] is None:
        return answer
    named = [shown(path) for path in answer["paths"][:MAX_EVENT_PATHS]]
    with calls.entered(ctx) as entry:
        entry.event(
            "committed", agent=ctx.caller.name, commit=answer["commit"], paths=named, count=len(answer["paths"])
        )
    if release:
        done = [row for row in own if any(matches(row["pattern"], path) for path in wanted)]
        still = ctx.runtime.dirty(root, tuple(row["pattern"] for row in done))
        clean = [row["reservation_id"] for row in done if still[row["pattern"]] is False]
        answer["released"] = calls.release(ctx, clean, report_unsaved=False)["released"] if clean else []
    return answer


def _on_another_branch(ctx: Context, paths: Sequence[str], on: str) -> CommitAnswer | None:
    """Refuse a commit that would go to another branch than the one on which its files were reserved."""
    head = place.head(ctx.caller.root)
    now = head.removeprefix("refs/heads/")
    if on == now:
        return None
    with calls.entered(ctx) as entry:
        own = [lease for lease in entry.tx.leases_of(entry.agent.name) if lease.root == ctx.caller.root]
    for lease in own:
        is_elsewhere = lease.branch.startswith("refs/") and lease.branch != head
        if is_elsewhere and any(matches(lease.pattern, path) for path in paths):
            was = shown(lease.branch.removeprefix("refs/heads/"))
            text = f"This checkout is on {shown(now)} now, and {shown(lease.pattern)} was reserved on {was}."
            fix = (
                f"If it belongs on {shown(now)}: `interlock commit --on {shown(now)} …`. Else ask who switched to go "
                f"back to {was}, or work in a worktree of your own."
            )
            return _refused(text, now, fix)
    return None


def _answered(root: str, made: str, said: str) -> CommitAnswer:
    """Return the answer to a commit that git made, or refused: `made` is empty then."""
    answer = _none([])
    if said:
        answer["said"] = said
    if not made:
        text = "Git or one of your hooks refused the commit; nothing was committed."
        last = (said.splitlines() or ["no message"])[-1]
        answer["errors"] = [_refusal(text, last, "See what it said, fix that, and commit again.")]
        return answer
    answer["commit"], answer["paths"] = made, sorted(commands.paths_of(root, made))
    answer["branch"] = place.head(root).removeprefix("refs/heads/")
    return answer


def _below(changed: Iterable[str], path: str) -> list[str]:
    return [name for name in changed if path in {"", ".", name} or name.startswith(f"{path}/")]


def _is_known(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path)) or bool(commands.ask(root, ["ls-files", "--", path]))


def _refused(message: str, found: str, fix: str) -> CommitAnswer:
    return _none([_refusal(message, found, fix)])


def _refusal(message: str, found: str, fix: str, conflict: Conflict | None = None) -> Refusal:
    return refuse("RSV208", message, place="commit", found=found, expected=_EXPECTED, fix=fix, conflict=conflict)


def _none(errors: list[Refusal]) -> CommitAnswer:
    return {"commit": None, "paths": [], "released": [], "errors": errors}


def _nothing(ctx: Context, changed: Sequence[str], paths: Sequence[str]) -> Refusal:
    """Return the refusal of a commit that has nothing to carry; what `paths` name has not changed."""
    found = some(sorted(changed)) or "no changed file"
    if paths:
        return _refusal(f"{some(paths)}: nothing is changed there.", found, "`git status` shows what is changed.")
    others = dict(touched(foreign(ctx, everywhere=True), sorted(changed)))
    free = [quote(path) for path in sorted(changed) if path not in others]
    fix = "Reserve what is yours and nobody holds: `interlock reserve FILE`; ask for the rest: `interlock negotiate`."
    answer = _refusal("You hold none of the changed files.", found, fix, next(iter(others.values()), None))
    if not free:
        return answer
    return {**answer, "next": {"tool": "reserve_files", "arguments": {"patterns": free[:MAX_NAMED]}}}


def _make(ctx: Context, message: str | None, paths: Sequence[str], new: Sequence[str]) -> tuple[str, str]:
    """Let git commit some paths, `new` ones for git among them; return the commit and what git and hooks said.

    Without a commit, which is empty then, the index is as it was.
    """
    root, mark = ctx.caller.root, f"interlock commit {os.urandom(8).hex()}"
    # The variables that questions to git keep, but with the user's own values: the user's hooks run.
    env = {name: os.environ[name] for name in git.environment() if name in os.environ}
    env |= {"INTERLOCK_AGENT_ID": ctx.caller.name} if ctx.caller.kind == "agent" else {}
    made = ""
    if new:
        add = ["add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"]
        status, said = _run(ctx.runtime, root, add, _pathspecs(new), env)
        if status:
            return "", said
    with tempfile.NamedTemporaryFile(prefix="interlock-paths-") as file:
        file.write(_pathspecs(paths))
        file.flush()
        arguments = ["-c", "core.logAllRefUpdates=true", "commit", "--only"]
        arguments += [f"--pathspec-from-file={file.name}", "--pathspec-file-nul"]
        arguments += [] if message is None else ["-q", "-F", "-"]
        data = None if message is None else os.fsencode(message)
        try:
            _, said = _run(ctx.runtime, root, arguments, data, {**env, "GIT_REFLOG_ACTION": mark})
            if commands.commit_of(root, "HEAD") is not None:
                # The newest of the mark: a hook after the commit may have amended it.
                newest = ["rev-list", "-g", "-n1", f"--grep-reflog={mark}", "HEAD"]
                made = commands.ask(root, newest).decode().strip()
        finally:
            if not made:
                _forget(ctx.runtime, root, new, env)
    return made, said


def _run(
    runtime: Runtime, root: str, arguments: list[str], data: bytes | None, env: Mapping[str, str]
) -> tuple[int, str]:
    """Run git until its index is free; with data of None it has the terminal. Returns its status and what it said."""
    import subprocess  # noqa: PLC0415 - not on the path of a hook that says yes

    end = runtime.monotonic() + LOCK_SECONDS
    arguments = ["git", *arguments]
    pipe, merged = (None, None) if data is None else (subprocess.PIPE, subprocess.STDOUT)
    while True:
        try:
            done = subprocess.run(
                arguments, cwd=root, env=env, input=data, stdout=pipe, stderr=merged, check=False, timeout=HOLD_SECONDS
            )
        except subprocess.TimeoutExpired:
            text = f"git did not end within {HOLD_SECONDS:.0f} seconds"
            raise commands.GitError(text, "See which of your hooks hangs, then commit again.") from None
        said = os.fsdecode(done.stdout or b"").strip()
        if done.returncode == 0 or "index.lock" not in said or runtime.monotonic() >= end:
            return done.returncode, said
        runtime.pause(PAUSE_SECONDS)


def _forget(runtime: Runtime, root: str, new: Sequence[str], env: Mapping[str, str]) -> None:
    """Take files that were made known for a commit out of the index again, unless somebody has staged them since."""
    if not new:
        return
    raw = commands.ask(root, ["diff", "--name-only", "-z", "--diff-filter=A", "--no-ext-diff", "--no-renames"])
    noted = [path for path in commands.names(raw) if path in set(new)]
    if noted:
        _run(runtime, root, ["update-index", "-z", "--force-remove", "--stdin"], _nul(noted), env)


def _pathspecs(paths: Iterable[str]) -> bytes:
    """Return paths as git reads them: literal, from the top. A variable would change the user's hooks."""
    return _nul(f":(top,literal){path}" for path in paths)


def _nul(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
