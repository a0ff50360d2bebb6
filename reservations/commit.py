"""`interlock commit`: exactly one's own paths, whatever others have staged or changed in the same checkout.

Git itself makes the partial commit (`git commit --only`): the index keeps everybody else's entries as they were, the
user's hooks run, and a commit that fails leaves the index as it was found.
"""

import os
import os.path
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NotRequired, TypedDict

from interlock.reservations import git, leases
from interlock.reservations.answers import Refusal
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.guard import GuardRefused, guarded
from interlock.reservations.held import foreign, touched
from interlock.reservations.patterns import matches
from interlock.reservations.rules import refuse, shown

HOLD_SECONDS: Final = 900.0
"""So long the leases are kept while git and the user's hooks work; git is stopped after that."""
LOCK_SECONDS: Final = 30.0
"""So long a commit waits for the commit of another agent in the same checkout, or for git's index."""
PAUSE_SECONDS: Final = 0.05
MAX_EVENT_PATHS: Final = 50

_UNMERGED: Final = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_UNDERWAY: Final = {
    "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}  # fmt: skip


class CommitAnswer(TypedDict):
    """The answer of a commit: `commit` is null when it was refused.

    `left` counts the changed paths that stay as they are; `said` is what git or a hook printed.
    """

    commit: str | None
    paths: list[str]
    left: int
    released: list[str]
    said: NotRequired[str]
    errors: list[Refusal]


def commit(
    desk: Desk, caller: Caller, message: str | None, paths: Sequence[str] = (), *, release: bool = False
) -> CommitAnswer:
    """Commit the changed paths that own exclusive leases cover, and nothing else.

    New files and deletions are taken along. A path counts as a whole: what is staged of it and what is not.

    Args:
        desk: The store and the world.
        caller: Who commits.
        message: The message; None opens the user's editor.
        paths: Files and folders relative to the root, all of whose changes must be own ones; none: every own one.
        release: Give up the leases of what was committed, where nothing else below them is changed.

    Raises:
        GitFailed: There is no git, or it hangs.
        ReservationError: The store cannot be used.
    """
    where = _where(caller.root)
    if where is None:
        fix = (
            "Run it in a git checkout. What INTERLOCK_PROJECT names is none: commit in the repository itself with "
            "`git commit -m MESSAGE -- PATHS`, which its hooks judge by the same leases."
        )
        return _refused("There is no git checkout with its top here.", caller.root, fix)
    folder, common = where
    for name, what in _UNDERWAY.items():
        if os.path.lexists(os.path.join(folder, name)):
            text = f"A {what} is under way, and git makes no partial commit then."
            return _refused(
                text, name, f"Finish it with `git commit` or `--continue`, or go back: `git {what} --abort`."
            )
    with _alone(desk, common) as mine:
        if not mine:
            text = "Another `interlock commit` is at work in this repository."
            return _refused(text, "commit.lock", "Try again when it has ended.")
        return _commit(desk, caller, message, paths, release=release)


def _commit(desk: Desk, caller: Caller, message: str | None, paths: Sequence[str], *, release: bool) -> CommitAnswer:
    """Commit while no other commit of ours is at work."""
    changed = git.changed(caller.root)
    own = [lease for lease in leases.mine(desk, caller)["reservations"] if lease["exclusive"]]
    covered = {path for path in changed if any(matches(lease["pattern"], path) for lease in own)}
    wanted, missing = (sorted(covered), []) if not paths else _named(caller.root, changed, paths)
    if missing:
        text = f"{shown(missing[0])} is no file here, and git knows none."
        return _refused(text, missing[0], "Correct the path.")
    if not wanted:
        return _nothing(changed, covered, paths)
    unmerged = [path for path in wanted if changed[path] in _UNMERGED]
    if unmerged:
        return _refused(f"{shown(unmerged[0])} has conflicts.", unmerged[0], "Settle them, then `git add` the file.")
    try:
        with guarded(desk, caller, wanted, hold_seconds=HOLD_SECONDS):
            answer = _made(desk, caller, message, wanted, [path for path in wanted if changed[path] == "??"])
    except GuardRefused as refused:
        return {"commit": None, "paths": [], "left": len(changed), "released": [], "errors": refused.errors}
    answer["left"] = len(changed) - len(answer["paths"])
    if answer["commit"] is None:
        return answer
    _record(desk, caller, answer)
    if release:
        touched_ids = {row["reservation_id"]: row["pattern"] for row in own
                       if any(matches(row["pattern"], path) for path in wanted)}  # fmt: skip
        still = git.dirty(caller.root, list(touched_ids.values()))
        clean = [key for key, pattern in touched_ids.items() if still[pattern] is False]
        answer["released"] = leases.release(desk, caller, clean)["released"] if clean else []
    return answer


def _made(desk: Desk, caller: Caller, message: str | None, paths: list[str], new: list[str]) -> CommitAnswer:
    """Let git make the commit; without one, the index is as it was."""
    root = caller.root
    before = git.commit_of(root, "HEAD")
    env = git.environment() | ({"INTERLOCK_AGENT_ID": caller.name} if caller.kind == "agent" else {})
    env = {name: value for name, value in env.items() if name not in {"GIT_OPTIONAL_LOCKS", "GIT_PAGER", "LC_ALL"}}
    env |= {"LC_ALL": os.environ["LC_ALL"]} if "LC_ALL" in os.environ else {}
    with _listed(paths) as listed, _listed(new) as fresh:
        arguments = ["commit", "--only", f"--pathspec-from-file={listed}", "--pathspec-file-nul"]
        arguments += [] if message is None else ["-q", "-F", "-"]
        if new:
            added = ["add", "--intent-to-add", f"--pathspec-from-file={fresh}", "--pathspec-file-nul"]
            status, said = _run(desk, root, added, b"", env)
            if status:
                return _git_refused(said, paths)
        try:
            status, said = _run(desk, root, arguments, None if message is None else os.fsencode(message), env)
        except BaseException:
            _forget(desk, root, new, env)
            raise
    after = git.commit_of(root, "HEAD")
    if status or after is None or after == before:
        _forget(desk, root, new, env)
        return _git_refused(said, paths)
    ours = git.ask(root, ["rev-list", "--first-parent", *([f"{before}..{after}"] if before else [after])])
    made = ours.decode().split()[-1]
    carried = git.between(root, before, made)
    strange = touched(foreign(desk, caller), set(carried) - set(paths))
    if strange and before:
        git.ask(root, ["update-ref", "-m", "interlock commit: undone", "HEAD", before, made])
        path, holder = strange[0][0], strange[0][1]["holder"]
        text = f"A hook of yours added {shown(path)}, which {shown(holder)} holds; the commit was undone."
        return _refused(text, path, "Let the hook stage only the files of the commit.")
    answer: CommitAnswer = {"commit": made, "paths": sorted(carried), "left": 0, "released": [], "errors": []}
    return _saying(answer, said)


def _run(desk: Desk, root: str, arguments: list[str], data: bytes | None, env: Mapping[str, str]) -> tuple[int, str]:
    """Run git until its index is free; with data of None it has the terminal. Returns its status and what it said."""
    import subprocess  # noqa: PLC0415 - not on the path of a hook that says yes

    end = desk.monotonic() + LOCK_SECONDS
    while True:
        pipe = None if data is None else subprocess.PIPE
        merged = None if data is None else subprocess.STDOUT
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=root, env=env, input=data, stdout=pipe, stderr=merged, check=False,
                timeout=HOLD_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            text = f"git did not end within {HOLD_SECONDS:.0f} seconds"
            raise git.GitFailed(text, "See which of your hooks hangs, then commit again.") from None
        said = os.fsdecode(done.stdout or b"").strip()
        if done.returncode == 0 or "index.lock" not in said or desk.monotonic() >= end:
            return done.returncode, said
        desk.pause(PAUSE_SECONDS)


def _forget(desk: Desk, root: str, new: Sequence[str], env: Mapping[str, str]) -> None:
    """Take files that were made known for a commit out of the index again, unless somebody has staged them since."""
    if not new:
        return
    raw = git.ask(root, ["diff", "--name-only", "-z", "--diff-filter=A", "--no-ext-diff", "--no-renames"])
    noted = [path for path in git.names(raw) if path in set(new)]
    if noted:
        _run(desk, root, ["update-index", "-z", "--force-remove", "--stdin"], _nul(noted), env)


def _where(root: str) -> tuple[str, str] | None:
    """Return git's folder of this checkout and the one that all worktrees share; None outside of a checkout's top."""
    try:
        output = git.ask(root, ["rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-cdup"])
    except git.GitFailed as error:
        if error.status is None:
            raise
        return None
    folder, common, up = (os.fsdecode(output) + "\n").split("\n")[:3]
    return None if up else (folder, os.path.join(root, common))


def _named(root: str, changed: Mapping[str, str], paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the changed files that paths name, and the paths that name nothing at all."""
    found: set[str] = set()
    missing: list[str] = []
    for path in paths:
        below = [name for name in changed if path in {"", "."} or name == path or name.startswith(f"{path}/")]
        found.update(below)
        known = below or os.path.lexists(os.path.join(root, path)) or git.ask(root, ["ls-files", "--", path])
        missing += [] if known else [path]
    return sorted(found), missing


def _nothing(changed: Mapping[str, str], covered: set[str], paths: Sequence[str]) -> CommitAnswer:
    """Refuse a commit of nothing."""
    fix = "Reserve the files that you change: `interlock reserve FILE`. The edit hook does it at the first edit."
    if paths or not changed:
        fix = "Change something first; `git status` shows what is changed."
    found = f"{len(changed)} changed paths, {len(covered)} of them covered by leases of yours"
    return _refused("There is nothing to commit.", found, fix, left=len(changed))


def _git_refused(said: str, paths: Sequence[str]) -> CommitAnswer:
    """Refuse with what git or a hook said; files and index are as they were."""
    lines = said.splitlines() or ["no message"]
    text = "Git or one of your hooks refused the commit; nothing was committed, and your files are as they are."
    answer = _refused(text, lines[-1], "See what it said, mend that, and commit again.", left=len(paths))
    return _saying(answer, said)


def _saying(answer: CommitAnswer, said: str) -> CommitAnswer:
    """Add what git or a hook printed, if anything."""
    if said:
        answer["said"] = said
    return answer


def _refused(message: str, found: str, fix: str, *, left: int = 0) -> CommitAnswer:
    """Return the refusal of a commit that could not be made."""
    expected = "changed files under own leases, in a checkout where git can commit"
    row = refuse("RSV208", message, place="commit", found=found, expected=expected, fix=fix)
    return {"commit": None, "paths": [], "left": left, "released": [], "errors": [row]}


def _record(desk: Desk, caller: Caller, answer: CommitAnswer) -> None:
    """Add the commit to the events."""
    paths = [shown(path) for path in answer["paths"][:MAX_EVENT_PATHS]]
    with leases.entered(desk, caller) as entry:
        entry.event("committed", agent=caller.name, commit=answer["commit"], paths=paths, count=len(answer["paths"]))


@contextmanager
def _alone(desk: Desk, common: str) -> Generator[bool]:
    """Keep other commits of ours out of this repository; False when one is at work for too long."""
    import fcntl  # noqa: PLC0415 - not on the path of a hook

    folder = os.path.join(common, "interlock")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = os.open(os.path.join(folder, "commit.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        end = desk.monotonic() + LOCK_SECONDS
        mine = False
        while not mine:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = True
            except BlockingIOError:
                if desk.monotonic() >= end:
                    break
                desk.pause(PAUSE_SECONDS)
        yield mine
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile would keep it
        os.close(file)


@contextmanager
def _listed(paths: Sequence[str]) -> Generator[str]:
    """Write paths into a file as git reads them: literal, from the top. A variable would change the user's hooks."""
    with tempfile.NamedTemporaryFile(prefix="interlock-paths-") as file:
        file.write(_nul(f":(top,literal){path}" for path in paths))
        file.flush()
        yield file.name


def _nul(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
