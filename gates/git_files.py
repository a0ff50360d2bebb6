"""Listing the tree that is observed while a stage is acted: git's files, or all of them."""

import os
import stat
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Final

from interlock.core import git
from interlock.gates.errors import TreeError
from interlock.gates.tree import every_file, file_value, left_out, unreadable

_TIMEOUT_SECONDS: Final = 60

_RULES: Final = ".gitignore"
_LIST: Final = ("ls-files", "-z", "--cached", "--others", f"--exclude-per-directory={_RULES}")
# What an agent can set in `.git/config` must neither start a program nor make git overlook a change.
_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.excludesFile=/dev/null",
    "core.ignoreCase=false",
)
_FIX: Final = "Make `git ls-files` work in this folder; where it is no checkout, remove what is left of its `.git`."


def list_tree(root: str | Path) -> dict[str, str]:
    """List what observation compares.

    In a git checkout that is what git lists, tracked or untracked and not ignored; elsewhere every file. Only
    `.gitignore` files count: what else makes git overlook a file, in `.git` or in the user's settings, is listed.
    Left out always: what `gates.tree` leaves out. A submodule or a repository inside is listed with every file in it.

    Returns:
        Path relative to the root to `<mode> <sha256>`, sorted, as `gates.tree.tree_files` returns it.

    Raises:
        TreeError: A name is not UTF-8 (`TREE103`), a file cannot be read (`TREE104`), or git cannot list the files
            (`TREE105`).
    """
    base = Path(root).resolve()
    top = _checkout_of(base)
    found = every_file(base) if top is None else _values(base, _paths(top, base))
    return dict(sorted(found.items()))


def ignored_paths(root: str | Path, paths: Iterable[str]) -> frozenset[str]:
    """Return those of some paths that git ignores, by every rule that it knows; tracked ones are not among them.

    A file in a repository inside is asked about there, and the repository itself outside of it. Where git gives no
    answer, the path counts as ignored; where there is no git, none does. Nothing needs to be at a path.
    """
    base = Path(root).resolve()
    try:
        outermost = _checkout_of(base) or base
    except TreeError:
        return frozenset(paths)
    asked: dict[Path, dict[str, list[str]]] = {}
    is_checkout = cache(_is_checkout)
    for path in paths:
        # From the inside out: what lies in a repository inside is asked there, and then that repository itself
        # further out.
        place = Path(os.path.normpath(base / path))
        for above in place.parents:
            if is_checkout(above) and above.is_relative_to(outermost):
                asked.setdefault(above, {}).setdefault(os.path.relpath(place, above), []).append(path)
                place = above
    return frozenset(
        path for checkout, names in asked.items() for name in _ignored_by(checkout, list(names)) for path in names[name]
    )


def _ignored_by(checkout: Path, names: list[str]) -> list[str]:
    """Return the names that one checkout ignores, or gives no answer about."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    settings = tuple(setting for setting in _SETTINGS if not setting.startswith("core.excludesFile"))
    try:
        done = _git(checkout, checkout, "check-ignore", "-z", "--stdin", given=given, good=(0, 1), settings=settings)
    except TreeError:
        # One name that git refuses, such as one beyond a link, spoils the answer about all others.
        return names if len(names) == 1 else [name for each in names for name in _ignored_by(checkout, [each])]
    return [os.fsdecode(name) for name in done.split(b"\0") if name]


def tracked_paths(root: str | Path, paths: Iterable[str]) -> frozenset[str]:
    """Return those of some paths below a root, as they were given, that git tracks; none where it gives no answer."""
    base = Path(root).resolve()
    return frozenset(path for path in paths if _is_tracked(base, path))


def _is_tracked(base: Path, path: str) -> bool:
    checkout = next((above for above in (base / path).parents if _is_checkout(above)), None)
    if checkout is None:
        return False
    name = os.path.relpath(base / path, checkout)
    try:
        return bool(_git(checkout, checkout, "--literal-pathspecs", "ls-files", "-z", "--", name))
    except TreeError:
        return False


def _is_checkout(folder: Path) -> bool:
    """Return whether git takes a folder for the top of a checkout: its `.git` is one, or a file."""
    return os.path.lexists(folder / ".git/HEAD") or os.path.isfile(folder / ".git")  # noqa: PTH113 - raises nothing


def _checkout_of(root: Path) -> Path | None:
    """Return the checkout that a root lies in; None where there is none, or its `.gitignore` files ignore the root."""
    top = next((above for above in (root, *root.parents) if os.path.lexists(above / ".git")), None)
    if top is None or top == root:
        return top
    # A root that its checkout ignores (a scratch folder) would list as empty: there every file counts instead.
    answer = _git(top, root, "check-ignore", "-v", "-n", "-z", "--stdin", given=b".\0", good=(0, 1))
    source, _, pattern, *_ = os.fsdecode(answer).split("\0")
    is_ignored = source.rpartition("/")[2] == _RULES and not pattern.startswith("!")
    return None if is_ignored else top


def _paths(top: Path, root: Path) -> list[str]:
    """Return the paths that git lists below the root."""
    paths: list[str] = []
    for name in _git(top, root, *_LIST).split(b"\0"):
        try:
            paths.append(name.decode("utf-8"))
        except UnicodeDecodeError as error:
            shown = name.decode("utf-8", "backslashreplace")
            message = f"The file name {shown!r} is not UTF-8."
            raise TreeError("TREE103", shown, message, "Rename the file, or have git ignore it.") from error
    return [path for path in paths if path]


def _git(
    top: Path,
    root: Path,
    *arguments: str,
    given: bytes = b"",
    good: Collection[int] = (0,),
    settings: Iterable[str] = _SETTINGS,
) -> bytes:
    """Return what git says; no setting of a repository or an environment can start a program or point elsewhere."""
    options = (part for setting in settings for part in ("-c", setting))
    # `core.worktree` in `.git/config` could name another folder.
    words = [*options, f"--work-tree={top}", *arguments]
    done = git.run(root, words, "listing", data=given, timeout_seconds=_TIMEOUT_SECONDS)
    if done.status is None or done.status not in good:
        why = done.why[:300] or f"status {done.status}"
        raise TreeError("TREE105", str(root), f"git cannot list the files of {str(root)!r}: {why}.", _FIX)
    return done.output


def _values(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the value of each path that git lists and that is there."""

    @cache
    def is_real(folder: str) -> bool:
        """Return whether a folder is reached without a link: behind one, git's file is gone and another is there."""
        return os.path.realpath(root / folder) == str(root / folder)

    found: dict[str, str] = {}
    # A file in the middle of a merge is listed once for each side.
    for path in dict.fromkeys(paths):
        name = path.rstrip("/")
        if left_out(name) or not is_real(name.rpartition("/")[0]):
            continue
        try:
            mode = os.lstat(root / name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            # Git lists what its index has, also when somebody removed it.
            continue
        except OSError as error:
            raise unreadable(name, error) from error
        if stat.S_ISDIR(mode):
            # A repository inside: git names the folder alone.
            found.update(every_file(root, name))
        else:
            found[name] = file_value(root, name)
    return found
