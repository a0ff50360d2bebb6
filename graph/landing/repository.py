"""Git as landing needs it: merge without a checkout, commit, and move the target branch by compare-and-swap.

A branch that nobody has checked out is moved by `git update-ref NEW OLD`. Where a worktree has it checked out, the
files have to follow: `git merge --ff-only` there, which takes no file that holds other changes. With a remote, the
branch of the remote is moved first, by a push that is a fast-forward or nothing.
"""

import os
import shlex
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from interlock.core import git
from interlock.core.locks import locked
from interlock.core.text import few
from interlock.graph.errors import GIT, LOCAL, TARGET, GraphError

_LIMIT_SECONDS: Final = 600.0
"""Git may have to read a large tree, or wait for a remote."""
_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null")
"""Hooks are for what happens in a checkout, and for what leaves the machine."""
_GONE: Final = "000000 "
"""How the entry of a removed file begins."""


class Repository:
    """The repository of a checkout, and the branch in it that runs land on.

    Args:
        top: The checkout.
        target: The branch; by default the one that is checked out.
        remote: The remote, or the address of one, on which it is moved first; empty for none.
    """

    def __init__(self, top: Path, target: str = "", remote: str = "") -> None:
        self.top, self.remote = top, remote
        self.target = target or self.answer("symbolic-ref", "--quiet", "--short", "HEAD")

    # -- questions -----------------------------------------------------------------------------------------------------

    def run(
        self, *words: str, at: Path | None = None, data: bytes = b"", also: Mapping[str, str] | None = None
    ) -> git.Ran:
        """Run git for the person whose checkout it is, without hooks."""
        return git.run(at or self.top, (*_NO_HOOKS, *words), data=data, also=also, timeout_seconds=_LIMIT_SECONDS)

    def ask(self, *words: str, at: Path | None = None, data: bytes = b"", also: Mapping[str, str] | None = None) -> str:
        """Run git to a good end, and return what it printed.

        Raises:
            GraphError: `LND707` it refused.
        """
        done = self.run(*words, at=at, data=data, also=also)
        if done.status != 0:
            raise GraphError(f"git refused: {done.why[-600:]}", "Correct what git names.", GIT)
        return os.fsdecode(done.output).removesuffix("\n")

    def answer(self, *words: str) -> str:
        """Return the one name that git prints; empty where it has none to print."""
        return self.run(*words).output.decode().strip()

    def head(self) -> str:
        """Return the commit that the target is at.

        Raises:
            GraphError: `LND701` there is no such branch.
        """
        if not self.target:
            fix = "Name one: `--target BRANCH`, or `target` in [landing]."
            raise GraphError("no branch is checked out, so that there is none to land on", fix, TARGET)
        if name := self.answer("rev-parse", "--verify", "--quiet", f"refs/heads/{self.target}^{{commit}}"):
            return name
        fix = f"Make it: `git branch {self.target}`, or name another one with `--target BRANCH`."
        raise GraphError(f"there is no branch {self.target} with a commit", fix, TARGET)

    def has(self, head: str, commit: str) -> bool:
        """Return whether a commit is an ancestor of another, or that commit itself."""
        return self.run("merge-base", "--is-ancestor", commit, head).status == 0

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        return self.ask("rev-parse", f"{commit}^{{tree}}")

    def changes(self, old: str, new: str) -> dict[str, str]:
        """Return the files in which two commits or trees differ, with their entries in the new one: mode and object."""
        words = _paths(self.ask("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new))
        found: dict[str, str] = {}
        for row, path in zip(words[0::2], words[1::2], strict=True):
            _, mode, _, oid, _ = row.split(" ")
            found[path] = f"{mode} {oid}"
        return found

    # -- trees and commits ---------------------------------------------------------------------------------------------

    def merge(self, tree: str, work: str, base: str) -> tuple[str, tuple[str, ...]]:
        """Merge what a commit changed since its parent `base` into a tree, without a checkout.

        Returns:
            The tree, in which files in conflict have both sides, and their names.
        """
        ours = self.commit(tree, (base,), "The target, as if it were made of the same commit as the work")
        return self.merge_commits(ours, work)

    def merge_commits(self, ours: str, work: str) -> tuple[str, tuple[str, ...]]:
        """Merge a commit into another one, and return what `merge` does."""
        done = self.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, work)
        if done.status not in (0, 1):
            message = f"git cannot merge {work[:12]}: {done.why[-300:]}"
            raise GraphError(message, "Correct what git names; git 2.38 or newer is needed.", GIT)
        merged, *files = _paths(os.fsdecode(done.output))
        return merged, tuple(files)

    def commit(self, tree: str, parents: tuple[str, ...], message: str, at: str = "") -> str:
        """Make a commit, by the user that git knows; `at` is its time, as git reads one, and now by default."""
        also = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
        above = [word for parent in parents for word in ("-p", parent)]
        return self.ask("commit-tree", tree, *above, data=message.encode(), also=also)

    def stage(self, rows: Mapping[str, str], at: Path | None = None, also: Mapping[str, str] | None = None) -> None:
        """Give files of an index these entries."""
        data = b"".join(os.fsencode(f"{entry}\t{path}") + b"\0" for path, entry in rows.items())
        self.ask("update-index", "-z", "--index-info", at=at, data=data, also=also)

    def with_files(self, tree: str, rows: Mapping[str, str]) -> str:
        """Return a tree, or that of a commit, in which files have these entries."""
        with TemporaryDirectory(prefix="interlock-") as folder:
            own = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.ask("read-tree", tree, also=own)
            self.stage(rows, also=own)
            return self.ask("write-tree", also=own)

    # -- the target ----------------------------------------------------------------------------------------------------

    def advance(self, new: str, old: str) -> bool:
        """Move the target from one commit to a later one; False where it is not at the old one any more.

        Raises:
            GraphError: `LND706` files of a checkout hold other changes, `LND707` git or the remote refused.
        """
        moved = self._move(new, old, push=bool(self.remote))
        if not moved:
            self.follow_remote()
        return moved

    def check_files(self, new: str, old: str) -> None:
        """Refuse a landing that the files of the target's checkout could not follow, before anything is judged.

        Raises:
            GraphError: `LND706` a file that differs between the commits holds something else.
        """
        place = self._checked_out()
        if place is not None:
            self._ready(place, new, old)

    def changed_there(self, paths: Iterable[str]) -> list[str]:
        """Return those of some files that are changed and not committed in the checkout of the target."""
        place = self._checked_out()
        words = ("diff-index", "--name-only", "-z", "HEAD", "--", *paths)
        return [] if place is None else _paths(self.ask(*words, at=place))

    def follow_remote(self) -> None:
        """Bring the target to where it is on the remote, if there is one.

        Raises:
            GraphError: `LND701` it has commits that the remote does not have, `LND707` that cannot be read.
        """
        if not self.remote:
            return
        there = f"refs/interlock/remote/{self.target}"
        self.ask("fetch", "-q", "--no-tags", self.remote, f"+refs/heads/{self.target}:{there}")
        theirs, ours = self.ask("rev-parse", there), self.head()
        if not self.has(theirs, ours):
            message = f"{self.target} has commits here that {self.remote} does not have"
            push = f"git push {self.remote} {self.target}"
            fix = f"Push them: `{push}`, after `git pull {self.remote} {self.target}` if it refuses."
            raise GraphError(message, fix, TARGET)
        if theirs != ours:
            self._move(theirs, ours, push=False)

    def _move(self, new: str, old: str, *, push: bool) -> bool:
        with self._alone():
            if self.head() != old:
                return False
            place = self._checked_out()
            # Whether the files can follow is asked first: what was pushed cannot be taken back.
            ready = {} if place is None else self._ready(place, new, old)
            if push and not self._push(new):
                return False
            if place is None:
                done = self.run("update-ref", "-m", "interlock land", f"refs/heads/{self.target}", new, old)
            else:
                self.stage(ready, at=place)
                # With the hooks of the checkout: those of Interlock keep files that other agents hold.
                done = git.run(place, ("merge", "--ff-only", "-q", new), timeout_seconds=_LIMIT_SECONDS)
                if done.status != 0:
                    before = self.changes(new, old)
                    self.stage({path: before[path] for path in ready}, at=place)
        if done.status == 0:
            return True
        if self.head() != old:
            return False
        raise GraphError(f"{self.target} cannot be moved: {done.why[-600:]}", "Correct what git names.", GIT)

    def _push(self, new: str) -> bool:
        # Hooks of the person are for this, too.
        words = ("push", "-q", self.remote, f"{new}:refs/heads/{self.target}")
        done = git.run(self.top, words, timeout_seconds=_LIMIT_SECONDS)
        if done.status != 0 and "non-fast-forward" not in done.why and "fetch first" not in done.why:
            fix = "Correct what it names; if it is protected, open a pull request of what `interlock commit RUN` makes."
            raise GraphError(f"{self.remote} refused the push: {done.why[-900:]}", fix, GIT)
        return done.status == 0

    def _checked_out(self) -> Path | None:
        """Return the worktree in which the target is checked out."""
        place = ""
        for line in _paths(self.ask("worktree", "list", "--porcelain", "-z")):
            if line.startswith("worktree "):
                place = line.removeprefix("worktree ")
            if line == f"branch refs/heads/{self.target}" and Path(place).is_dir():
                return Path(place)
        return None

    def _ready(self, place: Path, new: str, old: str) -> dict[str, str]:
        """Return the files of a checkout that are as in the new commit already, as after a run in the checkout itself.

        Git would refuse to fast-forward over such a file unless the index has it as in the new commit, too.

        Raises:
            GraphError: `LND706` a file that differs between the commits holds something else.
        """
        rows = self.changes(old, new)
        as_new, as_old = self._as_in(place, rows), self._as_in(place, self.changes(new, old))
        differing = ("diff-index", "--cached", "--name-only", "-z")
        staged, not_new = ({*_paths(self.ask(*differing, commit, at=place))} for commit in (old, new))
        local = (rows.keys() - as_new - as_old) | (rows.keys() & staged & not_new)
        if local:
            message = f"{place} has changes of files that are to land: {few(sorted(local))}"
            aside = f"git -C {shlex.quote(os.fspath(place))} stash"
            files = shlex.join(sorted(local))
            fix = f"Commit them, or put them aside: `{aside} push -u -- {files}`, land again, `{aside} pop`."
            raise GraphError(message, fix, LOCAL)
        return {path: rows[path] for path in as_new - staged}

    def _as_in(self, place: Path, rows: Mapping[str, str]) -> set[str]:
        """Return which files of a checkout are what these entries say, as git's filters take them in."""
        with TemporaryDirectory(prefix="interlock-") as folder:
            own = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.stage(rows, at=place, also=own)
            self.run("update-index", "-q", "--refresh", at=place, also=own)
            others = _paths(self.ask("diff-files", "--name-only", "-z", at=place, also=own))
        others += [path for path, entry in rows.items() if entry.startswith(_GONE) and os.path.lexists(place / path)]
        return {*rows}.difference(others)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Let no other process of ours move the target, and the files of its checkout, meanwhile."""
        folder = self.top / self.ask("rev-parse", "--git-common-dir")
        with (folder / "interlock-landing.lock").open("ab") as file, locked(file):
            yield


def _paths(output: str) -> list[str]:
    return [path for path in output.split("\0") if path]
