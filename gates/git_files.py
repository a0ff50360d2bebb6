"""Listing the tree that is observed while a stage is acted: git's files, or all of them."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from interlock.core import git
from interlock.gates.errors import TreeError
from interlock.gates.tree import IGNORED, every_file, file_value, left_out

_TIMEOUT_SECONDS: Final = 60
_NAMES_AT_ONCE: Final = 500

_RULES: Final = ".gitignore"
_LIST: Final = ("ls-files", "-z", "--cached", "--others", f"--exclude-per-directory={_RULES}")
_LIST_IGNORED: Final = ("ls-files", "-z", "--others", "--ignored", "--directory", f"--exclude-per-directory={_RULES}")
_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.excludesFile=/dev/null",
    "core.ignoreCase=false",
)
_GIT: Final = ".git/"
_FIX: Final = "Make `git ls-files` work in this folder; where it is no checkout, remove what is left of its `.git`."


def list_tree(root: str | Path) -> dict[str, str]:
    """List what observation compares.

    In a git checkout that is what git lists, tracked or untracked and not ignored; elsewhere every file. Only
    `.gitignore` files count: what else makes git overlook a file, in `.git` or in the user's settings, is listed.
    What they ignore is named without a digest, so that `revealed` can list what a changed one hides. Left out always:
    what `gates.tree` leaves out. A submodule or a repository inside is listed with every file in it.

    Returns:
        Path relative to the root to `<mode> <sha256>`, sorted, as `gates.tree.tree_files` returns it. In a checkout
        also: ignored files, and ignored folders with a final `/`, to `ignored`; an ignored `.gitignore` to `ignored`
        and its value; `.git/` to `ignored`; and the `.gitignore` files above the root as `../.gitignore`.

    Raises:
        TreeError: A name is not UTF-8 (`TREE103`), a file cannot be read (`TREE104`), or git cannot list the files
            (`TREE105`).
    """
    base = Path(root).resolve()
    top = next((above for above in (base, *base.parents) if os.path.lexists(above / ".git")), None)
    if top is None or _ignores(top, base):
        return dict(sorted(every_file(base).items()))
    found = _values(base, _paths(top, base, *_LIST))
    names = _paths(top, base, *_LIST_IGNORED, errors="backslashreplace")
    # The folders of which git names the content: they only happen to hold nothing else.
    split = {f"{name[:at]}/" for name in names for at, char in enumerate(name[:-1]) if char == "/"}
    for name in names:
        if name not in split and not left_out(name.rstrip("/")) and name not in found:
            rules = name.rpartition("/")[2] == _RULES
            found[name] = f"{IGNORED} {file_value(base, name)}" if rules else IGNORED
    for steps in range(1, len(base.relative_to(top).parts) + 1):
        above = "/".join([".."] * steps)
        if (base / above / _RULES).is_file():
            found[f"{above}/{_RULES}"] = file_value(base, f"{above}/{_RULES}")
    found[_GIT] = IGNORED
    return dict(sorted(found.items()))


def revealed(root: str | Path, before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """List the tree as if no `.gitignore` had changed, by two listings of `list_tree`.

    What was ignored before stays out of sight, also where git lists it now. What is ignored now and was not before is
    listed again, below every `.gitignore` that changed; so is a file of before that git no longer tracks. Limit: the
    rules of before are not kept, so below a changed one also a new file counts that they would have ignored.
    """
    shown = {path: value for path, value in now.items() if not ignored_in(before, path)}
    folders = _changed_rules(before, now)
    for name, value in now.items():
        if not value.startswith(IGNORED) or name not in shown or name == _GIT:
            continue
        if name in before or name.startswith(folders):
            found = every_file(root, name[:-1]) if name.endswith("/") else {name: file_value(root, name)}
            shown.pop(name)
            shown.update({path: digest for path, digest in found.items() if not ignored_in(before, path)})
    return dict(sorted(shown.items()))


def ignored_in(listing: Mapping[str, str], path: str) -> bool:
    """Return whether a listing names a path, or a folder above it, as ignored."""
    if path in listing:
        return path != _GIT and listing[path].startswith(IGNORED)
    return any(path[: at + 1] in listing for at, char in enumerate(path) if char == "/")


def ignored_paths(root: str | Path, paths: Iterable[str]) -> frozenset[str]:
    """Return those of some paths that git ignores, by every rule that it knows; tracked ones are not among them.

    A file in a repository inside is asked about there, and the repository itself outside of it. Where git gives no
    answer, the path counts as ignored; where there is no git, none does. Nothing needs to be at a path.
    """
    base = Path(root).resolve()
    top = next((above for above in (base, *base.parents) if _is_checkout(above)), None)
    outer = [] if top is None or _ignores(top, base) else [top]
    asked: dict[Path, dict[str, list[str]]] = {}
    known: dict[str, list[tuple[Path, str]]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in known:
            known[folder] = _checkouts_around(base, outer, folder)
        rows = known[folder]
        itself = ((checkout, os.path.normpath(f"{below}/{name}")) for checkout, below in rows[-1:])
        for checkout, below in (*rows[:-1], *itself):
            asked.setdefault(checkout, {}).setdefault(below, []).append(path)
    return frozenset(
        path for checkout, names in asked.items() for name in _ignored_by(checkout, list(names)) for path in names[name]
    )


def _checkouts_around(base: Path, outer: list[Path], folder: str) -> list[tuple[Path, str]]:
    """Return the checkouts around a folder, each with the way to the next one in it, the last with that to the folder.

    Many files lie in one folder: what is the same for all of them is found out once.
    """
    parts = folder.split("/") if folder else []
    inner = (base.joinpath(*parts[:count]) for count in range(1, len(parts) + 1))
    checkouts = [*outer, *filter(_is_checkout, inner)]
    return [(checkout, os.path.relpath(below, checkout)) for checkout, below in pairwise([*checkouts, base / folder])]


def _is_checkout(folder: Path) -> bool:
    """Return whether git takes a folder for the top of a checkout: its `.git` is one, or a file."""
    return os.path.lexists(folder / ".git/HEAD") or (folder / ".git").is_file()


def _ignored_by(checkout: Path, names: list[str]) -> list[str]:
    """Return the names that one checkout ignores, or gives no answer about."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    settings = tuple(setting for setting in _SETTINGS if not setting.startswith("core.excludesFile"))
    try:
        done = _git(checkout, checkout, "check-ignore", "-z", "--stdin", given=given, good=(0, 1), settings=settings)
    except TreeError:
        return names if len(names) == 1 else [name for each in names for name in _ignored_by(checkout, [each])]
    return [os.fsdecode(name) for name in done.split(b"\0") if name]


def is_tracked(root: str | Path, path: str) -> bool:
    """Return whether git tracks a path below a root, or files in it; where git gives no answer, it does not."""
    return bool(tracked_paths(root, (path,)))


def tracked_paths(root: str | Path, paths: Iterable[str]) -> frozenset[str]:
    """Return those of some paths below a root, as they were given, that git tracks, as `is_tracked` does."""
    base = Path(root).resolve()
    asked: dict[Path, dict[str, list[str]]] = {}
    for path in paths:
        checkout = next((above for above in (base / path).parents if _is_checkout(above)), None)
        if checkout is not None:
            asked.setdefault(checkout, {}).setdefault(os.path.relpath(base / path, checkout), []).append(path)
    return frozenset(
        path for checkout, names in asked.items() for name in _tracked_by(checkout, list(names)) for path in names[name]
    )


def _tracked_by(checkout: Path, names: list[str]) -> list[str]:
    """Return the names that one checkout tracks; where it gives no answer about all of them, each is asked for."""
    found: set[str] = set()
    for at in range(0, len(names), _NAMES_AT_ONCE):
        some = names[at : at + _NAMES_AT_ONCE]
        try:
            listed = _git(checkout, checkout, "--literal-pathspecs", "ls-files", "-z", "--", *some)
        except TreeError:
            if len(some) > 1:
                found.update(name for each in some for name in _tracked_by(checkout, [each]))
            continue
        for path in map(os.fsdecode, filter(None, listed.split(b"\0"))):
            while path and path not in found:  # a folder is tracked with what is in it
                found.add(path)
                path = path.rpartition("/")[0]  # noqa: PLW2901
    return [name for name in names if name in found]


def _changed_rules(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders, each with a final `/` or empty, whose ignored files may not be those of before."""
    if (_GIT in now) != (_GIT in before):
        return ("",)
    names = {path for path in (*before, *now) if path.rpartition("/")[2] == _RULES}
    changed = (path.removesuffix(_RULES) for path in names if before.get(path) != now.get(path))
    return tuple("" if folder.startswith("../") else folder for folder in changed)


def _ignores(top: Path, root: Path) -> bool:
    """Return whether the `.gitignore` files of a checkout ignore the root itself."""
    if top == root:
        return False
    answer = _git(top, root, "check-ignore", "-v", "-n", "-z", "--stdin", given=b".\0", good=(0, 1))
    source, _, pattern, *_ = os.fsdecode(answer).split("\0")
    return source.rpartition("/")[2] == _RULES and not pattern.startswith("!")


def _paths(top: Path, root: Path, *arguments: str, errors: str = "strict") -> list[str]:
    """Return the paths that git lists below the root; `errors` is what becomes of names that are not UTF-8."""
    paths: list[str] = []
    for name in _git(top, root, *arguments).split(b"\0"):
        try:
            paths.append(name.decode("utf-8", errors))
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
    words = [*options, f"--work-tree={top}", *arguments]
    done = git.run(root, words, "listing", data=given, timeout_seconds=_TIMEOUT_SECONDS)
    if done.status is None or done.status not in good:
        why = done.why[:300] or f"status {done.status}"
        raise TreeError("TREE105", str(root), f"git cannot list the files of {str(root)!r}: {why}.", _FIX)
    return done.output


def _values(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the value of each path that git lists and that is there."""
    found: dict[str, str] = {}
    folders: dict[str, bool] = {"": True}
    for path in dict.fromkeys(paths):
        name = path.rstrip("/")
        if left_out(name) or not _real_folder(root, name.rpartition("/")[0], folders):
            continue
        try:
            mode = os.lstat(root / name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            message = f"{name!r} cannot be read: {reason}."
            raise TreeError("TREE104", name, message, "Make it readable, or have git ignore it.") from error
        if stat.S_ISDIR(mode):
            found.update(every_file(root, name))
        else:
            found[name] = file_value(root, name)
    return found


def _real_folder(root: Path, folder: str, known: dict[str, bool]) -> bool:
    """Return whether a folder is reached without a link: behind one, git's file is gone and another is in its place."""
    if folder not in known:
        real = _real_folder(root, folder.rpartition("/")[0], known)
        known[folder] = real and not (root / folder).is_symlink()
    return known[folder]
