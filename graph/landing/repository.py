"""Git as landing needs it: merge without a checkout, commit, and move the target branch by compare-and-swap.

A branch that nobody has checked out is moved by `git update-ref NEW OLD`. Where a worktree has it checked out, the
files have to follow: `git merge --ff-only` there, which takes no file that holds other changes. With a remote, the
branch of the remote is moved first, by a push that is a fast-forward or nothing.
"""

import os
import shlex
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from interlock.core import git
from interlock.core.locks import locked
from interlock.core.text import few
from interlock.gates.sealed import Entry
from interlock.graph.errors import GIT, LOCAL, TARGET, GraphError

_LIMIT_SECONDS: Final = 600.0
"""Git may have to read a large tree, or wait for a remote."""
_OWN: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
"""Hooks are for what a person does in a checkout; what lands was judged by its gates."""
_WORK: Final = "refs/interlock/work/"
"""Below this are the work commits of runs while they land: what says after a kill that a run has landed."""


class Merged(NamedTuple):
    """What a merge came to: a tree, in which the conflicting files have both sides."""

    tree: str
    conflicts: tuple[str, ...] = ()


class Repository:
    """The repository of a checkout, and the branch in it that runs land on.

    Args:
        top: The checkout.
        target: The branch; by default the one that is checked out.
        remote: The remote on which it is moved first; empty for none.
        notice: Takes a line about what happens.
        held: Returns who holds which of some files of a checkout.
    """

    def __init__(
        self,
        top: Path,
        target: str = "",
        remote: str = "",
        notice: Callable[[str], object] = lambda _line: None,
        held: Callable[[Path, Sequence[str]], Mapping[str, str]] = lambda _place, _paths: {},
    ) -> None:
        self.top, self.remote, self._notice, self._held = top, remote, notice, held
        self.target = target or self._answer("symbolic-ref", "--quiet", "--short", "HEAD")
        self._nothing = "0" * (64 if self._answer("rev-parse", "--show-object-format") == "sha256" else 40)

    # -- questions -----------------------------------------------------------------------------------------------------

    def run(
        self, *words: str, at: Path | None = None, data: bytes = b"", also: Mapping[str, str] | None = None
    ) -> git.Ran:
        """Run git for the person whose checkout it is, without hooks."""
        return git.run(at or self.top, (*_OWN, *words), data=data, also=also, timeout_seconds=_LIMIT_SECONDS)

    def ask(
        self, *words: str, at: Path | None = None, data: bytes = b"", also: Mapping[str, str] | None = None
    ) -> bytes:
        """Run git to a good end, and return what it printed.

        Raises:
            GraphError: `LND707` it refused.
        """
        done = self.run(*words, at=at, data=data, also=also)
        if done.status != 0:
            raise GraphError(f"git refused: {done.why[-600:]}", "Correct what git names.", GIT)
        return done.output

    def name(self, *words: str, data: bytes = b"", also: Mapping[str, str] | None = None) -> str:
        """Run git to a good end, and return the one name that it printed."""
        return self.ask(*words, data=data, also=also).decode().strip()

    def _answer(self, *words: str) -> str:
        done = self.run(*words)
        return done.output.decode().strip() if done.status == 0 else ""

    def head(self) -> str:
        """Return the commit that the target is at.

        Raises:
            GraphError: `LND701` there is no such branch.
        """
        if not self.target:
            fix = "Name one: `--target BRANCH`, or `target` in [landing]."
            raise GraphError("no branch is checked out, so that there is none to land on", fix, TARGET)
        if name := self._answer("rev-parse", "--verify", "--quiet", f"refs/heads/{self.target}^{{commit}}"):
            return name
        fix = f"Make it: `git branch {self.target}`, or name another one with `--target BRANCH`."
        raise GraphError(f"there is no branch {self.target} with a commit", fix, TARGET)

    def has(self, commit: str, *, since: str = "") -> bool:
        """Return whether a commit is part of the target, or of the commit `since`."""
        place = since or f"refs/heads/{self.target}"
        return bool(commit) and self.run("merge-base", "--is-ancestor", commit, place).status == 0

    def common(self, one: str, other: str) -> str:
        """Return the best common ancestor of two commits; empty where there is none."""
        return self._answer("merge-base", one, other)

    def bringer_of(self, commit: str) -> str:
        """Return the commit by which the target got a commit: the first on its own line that has it."""
        target = f"refs/heads/{self.target}"
        line = self.name("rev-list", "--first-parent", f"{commit}^..{target}").split()
        later = self.name("rev-list", "--first-parent", "--ancestry-path", f"{commit}..{target}").split()
        return commit if commit in line or not later else later[-1]

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        return self.name("rev-parse", f"{commit}^{{tree}}")

    def changes(self, old: str, new: str) -> dict[str, Entry | None]:
        """Return the files in which two commits or trees differ: path to the new entry, None for a removed file."""
        words = self.ask("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new).split(b"\0")
        found: dict[str, Entry | None] = {}
        for row, path in zip(words[0::2], words[1::2], strict=False):
            _, mode, _, oid, status = row.decode("ascii").split(" ")
            found[os.fsdecode(path)] = None if status == "D" else Entry(mode, oid)
        return found

    # -- commits -------------------------------------------------------------------------------------------------------

    def merge(self, ours: str, theirs: str) -> Merged:
        """Merge two commits without a checkout."""
        done = self.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
        if done.status not in (0, 1):
            message = f"git cannot merge {theirs[:12]}: {done.why[-300:]}"
            raise GraphError(message, "Correct what git names; git 2.38 or newer is needed.", GIT)
        tree, *files = done.output.split(b"\0")
        return Merged(tree.decode(), tuple(os.fsdecode(path) for path in files if path))

    def commit(self, tree: str, parents: tuple[str, ...], message: str, at: str = "") -> str:
        """Make a commit, by the user that git knows; `at` is its time, as git reads one, and now by default."""
        also = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
        above = [word for parent in parents for word in ("-p", parent)]
        return self.name("commit-tree", tree, *above, data=message.encode(), also=also)

    def stage(self, index: str, rows: Mapping[str, Entry | None], at: Path | None = None) -> None:
        """Make some files of an index what they are in these rows; an empty name is the index of the checkout `at`."""
        # Removed ones first, since a file may take the place of a folder.
        ordered = sorted(rows.items(), key=lambda row: row[1] is not None)
        lines = (
            f"{entry.mode} {entry.oid}\t{path}" if entry else f"0 {self._nothing}\t{path}" for path, entry in ordered
        )
        data = b"".join(os.fsencode(line) + b"\0" for line in lines)
        self.ask(
            "update-index", "-z", "--index-info", at=at, data=data, also={"GIT_INDEX_FILE": index} if index else {}
        )

    def with_files(self, tree: str, rows: Mapping[str, Entry | None]) -> str:
        """Return a tree with some files changed or, where the entry is None, removed."""
        with TemporaryDirectory(prefix="interlock-") as folder:
            own = {"GIT_INDEX_FILE": f"{folder}/index"}
            self.ask("read-tree", tree, also=own)
            self.stage(own["GIT_INDEX_FILE"], rows)
            return self.name("write-tree", also=own)

    def works(self) -> dict[str, str]:
        """Return the work commits of runs that are landing, or were when a process was killed, by run."""
        lines = self.ask("for-each-ref", "--format=%(refname) %(objectname)", _WORK).decode().splitlines()
        return {name.removeprefix(_WORK): commit for name, commit in (line.split(" ") for line in lines)}

    def keep_work(self, run_id: str, commit: str) -> None:
        """Keep the work commit of a run until it has landed."""
        self.ask("update-ref", f"{_WORK}{run_id}", commit)

    def forget_work(self, run_id: str) -> None:
        """Keep the work commit of a run no longer: the journal says that it has landed."""
        self.run("update-ref", "-d", f"{_WORK}{run_id}")

    # -- the target ----------------------------------------------------------------------------------------------------

    def advance(self, new: str, old: str) -> bool:
        """Move the target from one commit to a later one; False where it is not at the old one any more.

        Raises:
            GraphError: `LND706` files of a checkout hold other changes, `LND707` git or the remote refused. The target
                is where it was.
        """
        with self._alone():
            if self.head() != old:
                return False
            place = self._checked_out()
            if not self.remote:
                return self._move(place, new, old)
            # Whether the files can follow is asked first: what was pushed cannot be taken back.
            if place is not None:
                self._prepared(place, new, old)
            if not self._push(new):
                return False
            try:
                self._move(place, new, old)
            except GraphError as error:
                self._notice(f"{self.target} landed on {self.remote} and not yet here: {error.message}")
            return True

    def follow_remote(self) -> None:
        """Bring the target to where it is on the remote, if there is one.

        Raises:
            GraphError: `LND701` it has commits that the remote does not have, or the remote cannot be read.
        """
        if not self.remote:
            return
        there = f"refs/remotes/{self.remote}/{self.target}"
        done = self.run("fetch", "-q", "--no-tags", self.remote, f"+refs/heads/{self.target}:{there}")
        push = f"git push {self.remote} {self.target}"
        if done.status != 0:
            fix = f"Check the remote; a branch that it does not have yet is made by `{push}`."
            raise GraphError(f"{self.target} cannot be read from {self.remote}: {done.why[-300:]}", fix, TARGET)
        theirs, ours = self.name("rev-parse", there), self.head()
        if theirs == ours:
            return
        if not self.has(ours, since=theirs):
            message = f"{self.target} has commits here that {self.remote} does not have"
            first = "" if self.has(theirs) else f"git pull {self.remote} {self.target} && "
            raise GraphError(message, f"Push them first: {first}{push}", TARGET)
        with self._alone():
            self._move(self._checked_out(), theirs, ours)

    def _push(self, new: str) -> bool:
        # Hooks of the person are for this, too: a push leaves the machine.
        words = ("push", "-q", self.remote, f"{new}:refs/heads/{self.target}")
        done = git.run(self.top, words, timeout_seconds=_LIMIT_SECONDS)
        if done.status != 0 and "non-fast-forward" not in done.why and "fetch first" not in done.why:
            raise GraphError(f"{self.remote} refused the push: {done.why[-300:]}", "Correct what it names.", GIT)
        return done.status == 0

    def _checked_out(self) -> Path | None:
        """Return the worktree in which the target is checked out."""
        place = ""
        for line in map(os.fsdecode, self.ask("worktree", "list", "--porcelain", "-z").split(b"\0")):
            if line.startswith("worktree "):
                place = line.removeprefix("worktree ")
            if line == f"branch refs/heads/{self.target}" and Path(place).is_dir():
                return Path(place)
        return None

    def _move(self, place: Path | None, new: str, old: str) -> bool:
        if place is None:
            done = self.run("update-ref", "-m", "interlock land", f"refs/heads/{self.target}", new, old)
        else:
            before, ready = self._prepared(place, new, old)
            if ready:
                self.stage("", ready, at=place)
            done = self.run("merge", "--ff-only", "-q", new, at=place)
            if done.status != 0 and ready:
                self.stage("", before, at=place)
        if done.status == 0:
            return True
        if self.head() != old:
            return False
        raise GraphError(f"{self.target} cannot be moved: {done.why[-600:]}", "Correct what git names.", GIT)

    def _prepared(self, place: Path, new: str, old: str) -> tuple[dict[str, Entry | None], dict[str, Entry | None]]:
        """Return which files of a checkout are already as in the new commit, with their entries before and after.

        That is so after a run in the checkout itself, whose work is uncommitted there. Git would refuse to fast-forward
        over such a file unless the index has it as in the new commit, too.

        Raises:
            GraphError: `LND706` a file that differs between the commits holds something else, or is held.
        """
        rows = self.changes(old, new)
        # Git's hooks would say it of anybody else's merge.
        if held := self._held(place, sorted(rows)):
            message = f"others hold files that are to land: {few([f'{path} ({who})' for path, who in held.items()])}"
            ask = f"interlock negotiate {shlex.quote(min(held))}"
            fix = f"Wait until they release them, or ask for it (`{ask}`), and land again."
            raise GraphError(message, fix, LOCAL)
        with TemporaryDirectory(prefix="interlock-") as folder:
            index, own = f"{folder}/index", {"GIT_INDEX_FILE": f"{folder}/index"}
            own_index = place / self.ask("rev-parse", "--git-path", "index", at=place).decode().strip()
            if own_index.exists():
                # With its time, by which git knows of a file of the same second that it may have changed since.
                shutil.copy2(own_index, index)

            def differing(*words: str) -> set[str]:
                found = self.ask(words[0], "--name-only", "-z", *words[1:], at=place, also=own).split(b"\0")
                return {os.fsdecode(path) for path in found if path}

            def refresh() -> None:
                # By its stamps a file that was only touched would count as changed.
                self.run("update-index", "-q", "--refresh", at=place, also=own)

            refresh()
            staged, dirty = differing("diff-index", "--cached", old), differing("diff-index", old)
            wrongly = staged & differing("diff-index", "--cached", new) & rows.keys()
            self.stage(index, rows, at=place)
            refresh()
            others = differing("diff-files")
        before = self.changes(new, old)
        there = {path for path in rows if os.path.lexists(place / path)}
        same = {path for path, entry in rows.items() if (path not in others if entry else path not in there)}
        changed = {path for path in rows if path in dirty or (before[path] is None and path in there)}
        if found := sorted((changed - same) | wrongly):
            message = f"{place} has changes of files that are to land: {few(found)}"
            aside = f"git -C {shlex.quote(os.fspath(place))} stash"
            fix = (
                f"Commit them, or put them aside: `{aside} push -u -- {shlex.join(found)}`, land again, `{aside} pop`."
            )
            raise GraphError(message, fix, LOCAL)
        ready = changed & same - staged
        return {path: before[path] for path in ready}, {path: rows[path] for path in ready}

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Let no other process of ours move the target, and the files of its checkout, meanwhile."""
        folder = self.top / self.name("rev-parse", "--git-common-dir")
        with (folder / "interlock-landing.lock").open("ab") as file, locked(file):
            yield
