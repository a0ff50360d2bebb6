"""Asking git, and nothing else: no lock taken, no configuration changed, file names as bytes from end to end.

Paths are relative to the top of the checkout with `/` between parts; a name that is not UTF-8 is decoded with
surrogates, as `os.fsdecode` does it, and encoded again the same way. Every question raises `GitError` where there is no
git, or it hangs or ends with an error; `in_hook`: it is asked for the purpose `hook` (`core.git`).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from interlock.core import git
from interlock.core.finding import Finding
from interlock.core.patterns import canonical, matches
from interlock.reservations.errors import ReservationError


class GitError(ReservationError):
    """Git did not answer, or answered with an error; no `status` when it did not run or did not end in time.

    Fix: Git is not installed, hangs, or refuses the repository. Run the command of the message by hand, and repair
    what it says.
    """

    code: ClassVar[str] = "RSV906"

    def __init__(self, message: str, fix: str, status: int | None = None) -> None:
        super().__init__(message, fix)
        self.status = status


def ask(
    root: str,
    arguments: Sequence[str],
    *,
    in_hook: bool = False,
    data: bytes = b"",
    also: Mapping[str, str] | None = None,
) -> bytes:
    """Return what git writes to its standard output; pathspecs are taken literally. `also` is that of `core.git.run`.

    Raises:
        GitError: There is no git, it took longer than `core.git` waits, or it ended with an error.
    """
    purpose = "hook" if in_hook else "user"
    done = git.run(root, ["--literal-pathspecs", "--no-pager", *arguments], purpose, data=data, also=also)
    if done.status is None:
        fix = "Install git, or put it on the PATH; see whether another git process hangs here."
        raise GitError(f"git {arguments[0]} cannot be run in {root}: {done.why}", fix)
    if done.status != 0:
        said = done.why.partition("\n")[0] or "no message"
        fix = f"Run `git {arguments[0]}` by hand to see what is wrong with the repository."
        raise GitError(f"git {arguments[0]} failed in {root}: {said}", fix, done.status)
    return done.output


def answer(root: str, arguments: Sequence[str], *, in_hook: bool = False) -> bytes | None:
    """Return the same; None where git ends with an error."""
    try:
        return ask(root, arguments, in_hook=in_hook)
    except GitError as error:
        if error.status is None:
            raise
        return None


def names(output: bytes) -> list[str]:
    """Return the paths of an answer in which each ends with a NUL byte."""
    return [os.fsdecode(item) for item in output.split(b"\0") if item]


def changed(
    root: str, prefixes: Iterable[str] = (), *, in_hook: bool = False, more: Sequence[str] = ()
) -> dict[str, str]:
    """Return the paths with uncommitted changes and git's two letters for each: index, then working tree.

    New files are there one by one (`??`), ignored ones are not unless an option in `more` asks for them; a rename is a
    deletion and an addition. Prefixes are folders or files to look at, none for everything.
    """
    arguments = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", *more, *_only(prefixes)]
    return {item[3:]: item[:2] for item in names(ask(root, arguments, in_hook=in_hook))}


def dirty(root: str, patterns: Sequence[str]) -> dict[str, bool | None]:
    """Return whether each pattern covers what no commit has; None where git does not know, as outside a repository.

    Besides `changed` that is what git is told not to see: files that are ignored, and those that are marked
    `assume-unchanged` or `skip-worktree`. A folder that is ignored as a whole, such as one of caches, counts for the
    patterns alone that name something in it. A root below the top of its repository is understood: paths are counted
    from the root.
    """
    wanted = {text: canonical(text) for text in patterns}
    known = {text: pattern for text, pattern in wanted.items() if not isinstance(pattern, Finding)}
    answer: dict[str, bool | None] = dict.fromkeys(patterns)
    if not known:
        return answer
    prefixes = [pattern.prefix for pattern in known.values()]
    try:
        below = os.fsdecode(ask(root, ["rev-parse", "--show-prefix"])).removesuffix("\n")
        found = changed(root, prefixes, more=["--ignored=matching"])
        hidden = _hidden(root, below, prefixes)
    except GitError:
        return answer
    folders = [path for path, letters in found.items() if letters == "!!" and path.endswith("/")]
    unsaved = [path for path in (*found, *hidden) if path.startswith(below) and path not in folders]
    seen = [path[len(below) :].removesuffix("/") for path in unsaved]
    for text, pattern in known.items():
        is_ignored = any(f"{below}{pattern.prefix}/".startswith(folder) for folder in folders)
        is_there = is_ignored and os.path.lexists(os.path.join(root, pattern.prefix))
        answer[text] = is_there or any(matches(pattern, path) for path in seen)
    return answer


def _hidden(root: str, below: str, prefixes: Iterable[str]) -> list[str]:
    """Return the files that git does not look at, since the index marks them `assume-unchanged` or `skip-worktree`.

    What a sparse checkout leaves out is not there.
    """
    rows = names(ask(root, ["ls-files", "-v", "-z", "--full-name", *_only(prefixes)]))
    marked = [row[2:] for row in rows if row[0].islower() or row[0] == "S"]
    return [path for path in marked if os.path.lexists(os.path.join(root, path[len(below) :]))]


def _only(prefixes: Iterable[str]) -> list[str]:
    asked = sorted(set(prefixes))
    return [] if not asked or "" in asked else ["--", *asked]


def staged_paths(root: str, *, in_hook: bool = False) -> list[str]:
    """Return the paths that the index changes against the last commit: both ends of a rename, submodules too."""
    arguments = ["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty"]
    return names(ask(root, arguments, in_hook=in_hook))


def commit_of(root: str, name: str, *, in_hook: bool = False) -> str | None:
    """Return the id of the commit that a name resolves to; None without one."""
    if name.startswith("-"):
        return None
    output = answer(root, ["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], in_hook=in_hook)
    return (output or b"").decode().strip() or None


def between(root: str, old: str | None, new: str, *, in_hook: bool = False) -> list[str]:
    """Return the paths that differ between two commits or trees; an `old` of None means no files at all."""
    first = old or empty_tree(root, in_hook=in_hook)
    return names(ask(root, ["diff-tree", "-r", "-z", "--name-only", "--no-renames", first, new], in_hook=in_hook))


def paths_of(root: str, commit: str) -> list[str]:
    """Return the paths that a commit changes, as seen from a folder; none of a commit that is not here any more."""
    wanted = ["diff-tree", "--root", "--no-commit-id", "--name-only", "--relative", "-r", "-z", commit]
    return names(answer(root, wanted) or b"")


def empty_tree(root: str, *, in_hook: bool = False) -> str:
    """Return the id of the tree without files, in the kind of ids that this repository has."""
    return ask(root, ["hash-object", "-t", "tree", "--stdin"], in_hook=in_hook).decode().strip()


def merged_paths(root: str, ours: str, theirs: str) -> list[str]:
    """Return the paths that bringing `theirs` into `ours` may change: what differs from where they parted."""
    base = (answer(root, ["merge-base", ours, theirs], in_hook=True) or b"").decode().partition("\n")[0] or None
    return between(root, base, theirs, in_hook=True)


def reaches(root: str, tips: Sequence[str], commit: str) -> bool:
    """Return whether a commit is one of some others (commits, or options such as `--all`), or comes before one."""
    return not ask(root, ["rev-list", "--max-count=1", commit, "--not", *tips], in_hook=True)


def stashed_paths(here: str, stash: str) -> list[str]:
    """Return the paths whose changes a stash holds: working tree, index, and new files."""
    parents = ask(here, ["rev-list", "--parents", "-n1", stash], in_hook=True).decode().split()[1:]
    paths = [path for parent in parents[:2] for path in between(here, parent, stash, in_hook=True)]
    return paths + [path for new_files in parents[2:] for path in between(here, None, new_files, in_hook=True)]
