"""The tree of a task: the files in its scope, their digest, and what changed between two of them.

Left out always: `.interlock` and `artifacts` at the root, which hold Interlock's own state, and at any depth `.git` and
the caches that tools write while a gate's command runs (`__pycache__` and the like), which would void every verdict.
Installed packages belong outside the scope: take them out with a pattern like `!web/node_modules/**`. A symbolic link
is recorded by the text of its target and never followed, also where a folder of the scope was expected. Empty folders
are not recorded, as in git.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.gates.errors import TreeError
from interlock.gates.patterns import Scope, Steps, compile_scope

_ANYWHERE: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_AT_ROOT: Final = frozenset({*_ANYWHERE, ".interlock", "artifacts"})
_CHUNK_BYTES: Final = 1024 * 1024

IGNORED: Final = "ignored"
"""How the value of a name begins that a listing only names, because git ignores it."""


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """What changed between two trees: paths, each list sorted."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def tree_files(root: str | Path, patterns: Iterable[str]) -> dict[str, str]:
    """List the files in scope.

    Args:
        root: The project's root.
        patterns: Scope patterns; see `gates.patterns`.

    Returns:
        Path to `<mode> <sha256>`, sorted by path. The mode is git's: `100644` a file, `100755` an executable one,
        `120000` a symbolic link, whose digest is that of its target's text; `other` (without digest) a pipe, socket
        or device.

    Raises:
        TreeError: A pattern is refused, a name is not UTF-8, or a file cannot be read (`TREE101` to `TREE104`).
    """
    found = dict(_walk(os.fspath(root), compile_scope(patterns)))
    return dict(sorted(found.items()))


def tree_digest(root: str | Path, patterns: Iterable[str]) -> str:
    """Return `sha256:…` over the files in scope; equal exactly when `tree_files` is.

    Raises:
        TreeError: As `tree_files`.
    """
    return digest_of(tree_files(root, patterns))


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest of a listing that `tree_files` made."""
    digest = hashlib.sha256(b"interlock.tree/1\0")
    for path, value in sorted(files.items()):
        digest.update(f"{path}\0{value}\0".encode())
    return f"sha256:{digest.hexdigest()}"


def tree_diff(old: Mapping[str, str], new: Mapping[str, str]) -> TreeDiff:
    """Compare two listings; a change of mode is a change, and names that git ignores are left out."""
    old, new = _seen(old), _seen(new)
    return TreeDiff(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        tuple(sorted(path for path in old.keys() & new.keys() if old[path] != new[path])),
    )


def _seen(files: Mapping[str, str]) -> dict[str, str]:
    return {path: value for path, value in files.items() if not value.startswith(IGNORED)}


def in_scope(path: str, patterns: Iterable[str]) -> bool:
    """Say whether a relative path belongs to a scope, whether it exists or not.

    Raises:
        TreeError: A pattern is refused.
    """
    return not left_out(path) and compile_scope(patterns).matches(path)


def left_out(path: str) -> bool:
    """Say whether a relative path belongs to no scope: Interlock's own state, git's, and caches."""
    names = path.split("/")
    return names[0] in _AT_ROOT or not _ANYWHERE.isdisjoint(names)


def every_file(root: str | Path, folder: str = "", *, but: Iterable[str] = ()) -> dict[str, str]:
    """List every file below a folder of the root, with the values of `tree_files`.

    Args:
        root: The folder that paths are relative to.
        folder: Where to look.
        but: Patterns of files that are passed by, unread.

    Raises:
        TreeError: As `tree_files`.
    """
    return dict(_walk(os.fspath(root), compile_scope(["**", *(f"!{pattern}" for pattern in but)]), folder))


def file_value(root: str | Path, path: str) -> str:
    """Return the value of one path that is no folder, as `tree_files` lists it.

    Raises:
        TreeError: It cannot be read (`TREE104`).
    """
    return _value(os.fspath(root), path)


def paths_in_scope(root: str | Path, patterns: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the files in scope in no order; nothing is read of a file.

    Raises:
        TreeError: As `tree_files`, but for files that cannot be read.
    """
    return _paths(os.fspath(root), compile_scope(patterns), "")


def _walk(root: str, scope: Scope, start: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and value of every file in scope below a folder."""
    return ((path, _value(root, path)) for path in _paths(root, scope, start))


def _paths(root: str, scope: Scope, start: str) -> Iterator[str]:
    """Yield the path of every file in scope below a folder, depth first, without recursion."""
    pending: list[tuple[str, Steps]] = [(start, scope.start)]
    while pending:
        folder, at = pending.pop()
        for entry in _entries(root, folder):
            if entry.name in (_ANYWHERE if folder else _AT_ROOT):
                continue
            below = scope.descend(at, entry.name)
            if not below:
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                pending.append((path, below))
            elif (scope.accepts(below) or entry.is_symlink()) and not scope.excludes(path):
                yield path


def _entries(root: str, folder: str) -> list[os.DirEntry[str]]:
    """List one folder, refusing names that could not be written down."""
    try:
        with os.scandir(f"{root}/{folder}") as entries:
            listed = list(entries)
    except OSError as error:
        raise _unreadable(folder or ".", error) from error
    for entry in listed:
        try:
            entry.name.encode("utf-8")
        except UnicodeEncodeError as error:
            shown = f"{folder}/{entry.name}".encode("utf-8", "backslashreplace").decode()
            raise TreeError(
                "TREE103", shown, f"The file name {shown!r} is not UTF-8.", "Rename the file, or leave it out of scope."
            ) from error
    return listed


def _value(root: str, path: str) -> str:
    """Return mode and digest of one entry that is no folder."""
    try:
        descriptor = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return _link_value(root, path)
        if error.errno in {errno.ENXIO, errno.ENODEV}:
            return "other"
        raise _unreadable(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "other"
        digest = hashlib.sha256()
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            digest.update(chunk)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)
    return f"{'100755' if status.st_mode & stat.S_IXUSR else '100644'} {digest.hexdigest()}"


def _link_value(root: str, path: str) -> str:
    """Return the value of a symbolic link: its own text, not what it points at."""
    try:
        target = os.fsencode(Path(root, path).readlink())
    except OSError as error:
        raise _unreadable(path, error) from error
    return f"120000 {hashlib.sha256(target).hexdigest()}"


def _unreadable(path: str, error: OSError) -> TreeError:
    """Make the error of one file or folder."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return TreeError(
        "TREE104",
        path,
        f"{path!r} is in the task's scope and cannot be read: {reason}.",
        "Make it readable and let nothing else change the files meanwhile, or leave it out of the scope.",
    )
