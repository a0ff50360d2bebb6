"""The partial commit that git makes for `interlock commit`: exactly some paths, found again by a mark of its own.

`HEAD` may move on by other commits before, while and after git works; the mark is in the reflog and says which
commit this one is.
"""

import os
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from interlock.core import git
from interlock.reservations.git import commands
from interlock.reservations.leases.commit_lock import HOLD_SECONDS, LOCK_SECONDS, PAUSE_SECONDS
from interlock.reservations.leases.runtime import Context, Runtime

_OWN: tuple[str, ...] = ("GIT_OPTIONAL_LOCKS", "GIT_PAGER", "LC_ALL")
"""What `commands.environment` sets for questions, and a commit with the user's hooks does without."""


class PartialCommit(NamedTuple):
    """The commit that git made, None when git or a hook refused, and the one before it, None of a first one."""

    commit: str | None
    parent: str | None
    paths: list[str]
    said: str


def make(ctx: Context, message: str | None, paths: Sequence[str], new: Sequence[str]) -> PartialCommit:
    """Let git commit some paths, `new` ones for git among them; without a commit, the index is as it was."""
    root, mark = ctx.caller.root, f"interlock commit {os.urandom(8).hex()}"
    env = {name: value for name, value in git.environment().items() if name not in _OWN}
    env |= {"INTERLOCK_AGENT_ID": ctx.caller.name} if ctx.caller.kind == "agent" else {}
    env |= {"LC_ALL": os.environ["LC_ALL"]} if "LC_ALL" in os.environ else {}
    with _listed(paths) as listed, _listed(new) as fresh:
        if new:
            added = ["add", "--intent-to-add", f"--pathspec-from-file={fresh}", "--pathspec-file-nul"]
            status, said = _run(ctx.runtime, root, added, b"", env)
            if status:
                return PartialCommit(None, None, [], said)
        arguments = ["-c", "core.logAllRefUpdates=true", "commit", "--only"]
        arguments += [f"--pathspec-from-file={listed}", "--pathspec-file-nul"]
        arguments += [] if message is None else ["-q", "-F", "-"]
        data = None if message is None else os.fsencode(message)
        try:
            _, said = _run(ctx.runtime, root, arguments, data, {**env, "GIT_REFLOG_ACTION": mark})
        except BaseException:
            _forget(ctx.runtime, root, new, env)
            raise
    commit = ""
    if commands.commit_of(root, "HEAD") is not None:
        # The newest of the mark: a hook after the commit may have amended it.
        commit = commands.ask(root, ["rev-list", "-g", "-n1", f"--grep-reflog={mark}", "HEAD"]).decode().strip()
    if not commit:
        _forget(ctx.runtime, root, new, env)
        return PartialCommit(None, None, [], said)
    parent = commands.commit_of(root, f"{commit}^")
    return PartialCommit(commit, parent, sorted(commands.between(root, parent, commit)), said)


def undo(root: str, made: PartialCommit) -> bool:
    """Undo a commit, and return whether that was possible: nothing has come after it, and git's hooks agree."""
    assert made.commit is not None
    to = ["HEAD", made.parent, made.commit] if made.parent else ["-d", "HEAD", made.commit]
    return commands.answer(root, ["update-ref", "-m", "interlock commit: undone", *to]) is not None


def _run(
    runtime: Runtime, root: str, arguments: list[str], data: bytes | None, env: Mapping[str, str]
) -> tuple[int, str]:
    """Run git until its index is free; with data of None it has the terminal. Returns its status and what it said."""
    import subprocess  # noqa: PLC0415 - not on the path of a hook that says yes

    end = runtime.monotonic() + LOCK_SECONDS
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


@contextmanager
def _listed(paths: Sequence[str]) -> Generator[str]:
    """Write paths into a file as git reads them: literal, from the top. A variable would change the user's hooks."""
    with tempfile.NamedTemporaryFile(prefix="interlock-paths-") as file:
        file.write(_nul(f":(top,literal){path}" for path in paths))
        file.flush()
        yield file.name


def _nul(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
