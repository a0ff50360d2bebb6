"""The tree of a task: the files in its scope, their digest, and what changed between two of them.

Left out always: `.interlock` and `artifacts` at the root, which hold Interlock's own state, and at any depth `.git` and
the caches that tools write while a gate's command runs (`__pycache__` and the like), which would void every verdict.
Installed packages belong outside the scope: take them out with a pattern like `!web/node_modules/**`. A symbolic link
is recorded by the text of its target and never followed, also where a folder of the scope was expected. Empty folders
are not recorded, as in git.

A pattern that is refused is a `TreeError` (`TREE101`, `TREE102`), and so is, for what lists or reads, a name that is
not UTF-8 (`TREE103`) and a file that cannot be read (`TREE104`) or is too large (`TREE106`).
"""

import errno
import hashlib
import math
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from interlock.gates.errors import TreeError
from interlock.gates.patterns import Scope, Steps, compile_scope

_ANYWHERE: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_AT_ROOT: Final = frozenset({*_ANYWHERE, ".interlock", "artifacts"})
_CHUNK_BYTES: Final = 1024 * 1024

MAX_FILE_BYTES: Final = 4 * 1024**3
"""How large one file may be: a larger one, sparse ones too, would be read for minutes at each look."""

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

    Returns:
        Path to `<mode> <sha256>`, sorted by path. The mode is git's: `100644` a file, `100755` an executable one,
        `120000` a symbolic link, whose digest is that of its target's text; `other` (without digest) a pipe, socket
        or device.
    """
    return dict(sorted(_walk(os.fspath(root), compile_scope(patterns))))


def tree_digest(root: str | Path, patterns: Iterable[str]) -> str:
    """Return `sha256:…` over the files in scope; equal exactly when `tree_files` is."""
    return digest_of(tree_files(root, patterns))


class TreeReader:
    """The files of one scope, for a process that looks at them again and again.

    A file is read again only where its inode, size or time of change differs from the look before. A program can write
    through a memory map without changing any of these for a while: what must hold is asked for with `contents`.

    Attributes:
        last: What the last look found; None before the first one.
    """

    def __init__(self, root: str | Path, patterns: Iterable[str]) -> None:
        self._root = os.fspath(root)
        self._scope = compile_scope(patterns)
        self.last: Look | None = None

    def look(self, *, contents: bool = False, within_seconds: float = 0.0) -> "Look":
        """Look at the files in scope.

        Every file is read for `contents`, whatever its inode and times say; else the last look counts where it is not
        older than `within_seconds`.
        """
        before = None if contents else self.last
        if before is not None and time.monotonic() - before.at <= within_seconds:
            return before
        try:
            found = self._look(before or Look({}, {}, ""))
        except TreeError:
            self.last = None
            raise
        self.last = found
        return found

    def expire(self) -> None:
        """Let no look count for the next one, however short ago it was."""
        if self.last is not None:
            self.last = replace(self.last, at=-math.inf)

    def _look(self, before: "Look") -> "Look":
        at, settled = time.monotonic(), time.time_ns() - _SETTLED_NS
        folders: dict[str, _Folder] = {}
        pending: list[tuple[str, Steps]] = [("", self._scope.start)]
        while pending:
            folder, steps = pending.pop()
            entries = _listed(self._root, folder)
            rows = _rows(entries)
            known = before.folders.get(folder, _Folder([], {}, []))
            if known.rows != rows:
                known = self._folder(folder, steps, entries, rows, known, settled)
            folders[folder] = known
            pending += known.folders
        if folders.keys() == before.folders.keys() and all(
            row.files is before.folders[name].files for name, row in folders.items()
        ):
            return Look(folders, before.files, before.digest, at)
        files = dict(sorted(item for row in folders.values() for item in row.files.items()))
        return Look(folders, files, digest_of(files), at)

    def _folder(
        self,
        folder: str,
        at: Steps,
        entries: list[os.DirEntry[str]],
        rows: "list[_Row]",
        known: "_Folder",
        settled: int,
    ) -> "_Folder":
        """List a folder that is not as it was; a file that is as it was keeps its value."""
        before, now = ({row[0]: row for row in some} for some in (known.rows, rows))
        found = _Folder([row if row[3] < settled else (row[0], 0, 0, 0) for row in rows], {}, [])
        for entry, path, below in _inside(self._scope, folder, at, _checked(folder, entries)):
            if below is not None:
                found.folders.append((path, below))
            elif path in known.files and before[entry.name] == now[entry.name]:
                found.files[path] = known.files[path]
            else:
                found.files[path] = _value(self._root, path)
        return found if found.files != known.files else replace(found, files=known.files)


_Row: TypeAlias = tuple[str, int, int, int]
"""Name, inode, size and time of change of an entry of a folder; without the last three it equals nothing."""

_SETTLED_NS: Final = 2 * 10**9
"""What changed so shortly before a look may change again unseen, within one tick of its file system's clock."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder as it was looked at: its entries, the values of its files in scope, the folders in it to look at."""

    rows: list[_Row]
    files: dict[str, str]
    folders: list[tuple[str, Steps]]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found, as `tree_files` and `tree_digest` return it; threads that look at once replace it whole.

    The next look is compared with `folders`; it began `at` a time on the clock of `time.monotonic`.
    """

    folders: Mapping[str, _Folder]
    files: Mapping[str, str]
    digest: str
    at: float = 0.0


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
    """Return whether a relative path belongs to a scope, whether it exists or not."""
    return not left_out(path) and compile_scope(patterns).matches(path)


def left_out(path: str) -> bool:
    """Return whether a relative path belongs to no scope: Interlock's own state, git's, and caches."""
    names = path.split("/")
    return names[0] in _AT_ROOT or not _ANYWHERE.isdisjoint(names)


def every_file(root: str | Path, folder: str = "", *, but: Iterable[str] = ()) -> dict[str, str]:
    """List every file below a folder of the root but those that match the patterns, with the values of `tree_files`."""
    return dict(_walk(os.fspath(root), compile_scope(["**", *(f"!{pattern}" for pattern in but)]), folder))


def file_value(root: str | Path, path: str) -> str:
    """Return the value of one path that is no folder, as `tree_files` lists it."""
    return _value(os.fspath(root), path)


def paths_in_scope(root: str | Path, patterns: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the files in scope in no order; nothing is read of a file."""
    return _paths(os.fspath(root), compile_scope(patterns), "")


def _walk(root: str, scope: Scope, start: str = "") -> Iterator[tuple[str, str]]:
    return ((path, _value(root, path)) for path in _paths(root, scope, start))


def _paths(root: str, scope: Scope, start: str) -> Iterator[str]:
    """Yield the path of every file in scope below a folder, depth first, without recursion."""
    pending: list[tuple[str, Steps]] = [(start, scope.start)]
    while pending:
        folder, at = pending.pop()
        for _, path, below in _inside(scope, folder, at, _checked(folder, _listed(root, folder))):
            if below is None:
                yield path
            else:
                pending.append((path, below))


def _inside(
    scope: Scope, folder: str, at: Steps, entries: Iterable[os.DirEntry[str]]
) -> Iterator[tuple[os.DirEntry[str], str, Steps | None]]:
    """Yield what of a folder belongs to a scope: a file with None, a folder with the steps that may follow in it."""
    for entry in entries:
        if entry.name in (_ANYWHERE if folder else _AT_ROOT):
            continue
        below = scope.descend(at, entry.name)
        if not below:
            continue
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield entry, path, below
        elif (scope.accepts(below) or entry.is_symlink()) and not scope.excludes(path):
            yield entry, path, None


def _rows(entries: list[os.DirEntry[str]]) -> list[_Row]:
    """Return what the entries of a folder are; one that is gone again is an error only where it is in scope."""
    found: list[_Row] = []
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            found.append((entry.name, -1, -1, sys.maxsize))
        else:
            found.append((entry.name, status.st_ino, status.st_size, status.st_ctime_ns))
    return found


def _listed(root: str, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(f"{root}/{folder}") as entries:
            return list(entries)
    except OSError as error:
        raise _unreadable(folder or ".", error) from error


def _checked(folder: str, entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, refusing names that could not be written down."""
    for entry in entries:
        try:
            entry.name.encode("utf-8")
        except UnicodeEncodeError as error:
            shown = f"{folder}/{entry.name}".encode("utf-8", "backslashreplace").decode()
            raise TreeError(
                "TREE103", shown, f"The file name {shown!r} is not UTF-8.", "Rename the file, or leave it out of scope."
            ) from error
    return entries


def _value(root: str, path: str) -> str:
    """Return mode and digest of one entry that is no folder."""
    try:
        descriptor = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            # A symbolic link: its own text counts, not what it points at.
            try:
                return f"120000 {hashlib.sha256(os.fsencode(Path(root, path).readlink())).hexdigest()}"
            except OSError as gone:
                raise _unreadable(path, gone) from gone
        if error.errno in {errno.ENXIO, errno.ENODEV}:
            return "other"
        raise _unreadable(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "other"
        if status.st_size > MAX_FILE_BYTES:
            message = f"{path!r} is in the task's scope and has {status.st_size} bytes"
            fix = f"Remove it, or leave it out of the scope with the pattern `!{path}`."
            raise TreeError("TREE106", path, f"{message}; the most for one file are {MAX_FILE_BYTES}.", fix)
        # Most files come with one read, which is shorter than what was asked for.
        digest, asked = hashlib.sha256(), min(status.st_size + 1, _CHUNK_BYTES)
        while chunk := os.read(descriptor, asked):
            digest.update(chunk)
            if len(chunk) < asked == status.st_size + 1:
                break
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)
    return f"{'100755' if status.st_mode & stat.S_IXUSR else '100644'} {digest.hexdigest()}"


def _unreadable(path: str, error: OSError) -> TreeError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return TreeError(
        "TREE104",
        path,
        f"{path!r} is in the task's scope and cannot be read: {reason}.",
        "Make it readable and let nothing else change the files meanwhile, or leave it out of the scope.",
    )
