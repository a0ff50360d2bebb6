"""The tree of a task: the files in its scope, their digest, and what changed between two of them.

Left out always: `.interlock` and `artifacts` at the root, which hold Interlock's own state, and at any depth `.git` and
the caches that tools write while a gate's command runs (`__pycache__` and the like), which would void every verdict.
Installed packages belong outside the scope: take them out with a pattern like `!web/node_modules/**`. A symbolic link
is recorded by the text of its target and never followed, also where a folder of the scope was expected. Empty folders
are not recorded, as in git.

A pattern that is refused is a `TreeError` (`TREE101`, `TREE102`), and so is, for what lists or reads, a name that is
not UTF-8 (`TREE103`) and a file that cannot be read, or is too large (`TREE104`).
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from interlock.gates.errors import TreeError
from interlock.gates.patterns import Scope, Steps, compile_scope

# A gate's command may write these beside the code: were they in scope, every gate would void its own verdict.
_ANYWHERE: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_AT_ROOT: Final = frozenset({*_ANYWHERE, ".interlock", "artifacts"})
_CHUNK_BYTES: Final = 1024 * 1024
MAX_FILE_BYTES: Final = 4 * 1024**3
"""A larger file cannot be in a scope, or each look at the tree would take minutes."""

_SETTLED_NS: Final = 2 * 10**9
"""What changed so shortly before a look may change again unseen, within one tick of its file system's clock."""


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """What changed between two trees: paths, each list sorted."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def tree_files(root: str | Path, patterns: Iterable[str], *, contents: bool = True) -> dict[str, str]:
    """List the files in scope.

    Args:
        root: The folder that the patterns are relative to.
        patterns: The scope.
        contents: Whether every file is read. Else one that this process has read counts as it was then, while its
            inode, size and time of change are the same; a program can write through a memory map without changing
            any of these for a while, so what must hold is asked for with contents.

    Returns:
        Path to `<mode> <sha256>`, sorted by path. The mode is git's: `100644` a file, `100755` an executable one,
        `120000` a symbolic link, whose digest is that of its target's text; `other` (without digest) a pipe, socket
        or device.
    """
    value = _value if contents else _value_by_stamp
    return dict(sorted(_walk(os.fspath(root), compile_scope(patterns), value)))


def tree_digest(root: str | Path, patterns: Iterable[str], *, contents: bool = True) -> str:
    """Return `sha256:…` over the files in scope; equal exactly when `tree_files` is, which has the arguments."""
    return digest_of(tree_files(root, patterns, contents=contents))


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest of a listing that `tree_files` made."""
    # The name of the format goes in as well, so that a later one cannot come to the same digest.
    digest = hashlib.sha256(b"interlock.tree/1\0")
    for path, value in sorted(files.items()):
        digest.update(f"{path}\0{value}\0".encode())
    return f"sha256:{digest.hexdigest()}"


def tree_diff(old: Mapping[str, str], new: Mapping[str, str]) -> TreeDiff:
    """Compare two listings; a change of mode is a change."""
    return TreeDiff(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        tuple(sorted(path for path in old.keys() & new.keys() if old[path] != new[path])),
    )


def in_scope(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a relative path belongs to a scope, whether it exists or not."""
    return not left_out(path) and compile_scope(patterns).matches(path)


def left_out(path: str) -> bool:
    """Return whether a relative path belongs to no scope: Interlock's own state, git's, and caches."""
    names = path.split("/")
    return names[0] in _AT_ROOT or not _ANYWHERE.isdisjoint(names)


def every_file(root: str | Path, folder: str = "") -> dict[str, str]:
    """List every file below a folder of the root, with the values of `tree_files`."""
    return dict(_walk(os.fspath(root), compile_scope(["**"]), _value, folder))


def file_value(root: str | Path, path: str) -> str:
    """Return the value of one path that is no folder, as `tree_files` lists it."""
    return _value(os.fspath(root), path)


def paths_in_scope(root: str | Path, patterns: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the files in scope in no order; nothing is read of a file."""
    return _paths(os.fspath(root), compile_scope(patterns), "")


def _walk(root: str, scope: Scope, value: Callable[[str, str], str], start: str = "") -> Iterator[tuple[str, str]]:
    return ((path, value(root, path)) for path in _paths(root, scope, start))


def _paths(root: str, scope: Scope, start: str) -> Iterator[str]:
    """Yield the path of every file in scope below a folder, depth first, without recursion."""
    pending: list[tuple[str, Steps]] = [(start, scope.start)]
    while pending:
        folder, at = pending.pop()
        # Most files lie in folders of which all is in scope, where matching each name would take longer than reading.
        takes_all = scope.takes_all(at)
        for entry in _listed(root, folder):
            if entry.name in (_ANYWHERE if folder else _AT_ROOT):
                continue
            below = at if takes_all else scope.descend(at, entry.name)
            if not below:
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                pending.append((path, below))
            # A link where a folder of the scope was expected counts itself: it changes what the scope means.
            elif (takes_all or scope.accepts(below) or entry.is_symlink()) and not scope.excludes(path):
                yield path


def _listed(root: str, folder: str) -> list[os.DirEntry[str]]:
    """List a folder, refusing names that could not be written down."""
    try:
        with os.scandir(f"{root}/{folder}") as found:
            entries = list(found)
    except OSError as error:
        raise unreadable(folder or ".", error) from error
    for entry in entries:
        try:
            # The listing goes into JSON and into prompts.
            entry.name.encode("utf-8")
        except UnicodeEncodeError as error:
            shown = f"{folder}/{entry.name}".encode("utf-8", "backslashreplace").decode()
            message = f"The file name {shown!r} is not UTF-8."
            raise TreeError("TREE103", shown, message, "Rename the file, or leave it out of scope.") from error
    return entries


def _value(root: str, path: str) -> str:
    """Return mode and digest of one entry that is no folder."""
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            # A symbolic link: its own text counts, not what it points at.
            try:
                return f"120000 {hashlib.sha256(os.fsencode(Path(root, path).readlink())).hexdigest()}"
            except OSError as gone:
                raise unreadable(path, gone) from gone
        if error.errno in {errno.ENXIO, errno.ENODEV}:
            return "other"
        raise unreadable(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "other"
        # Also of a sparse file, which takes no space and would be read for hours.
        if status.st_size > MAX_FILE_BYTES:
            raise unreadable(path, OSError(errno.EFBIG, ""))
        # Most files come with one read, which is shorter than what was asked for.
        digest, asked = hashlib.sha256(), min(status.st_size + 1, _CHUNK_BYTES)
        while chunk := os.read(descriptor, asked):
            digest.update(chunk)
            if len(chunk) < asked == status.st_size + 1:
                break
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(descriptor)
    return f"{'100755' if status.st_mode & stat.S_IXUSR else '100644'} {digest.hexdigest()}"


def _value_by_stamp(root: str, path: str) -> str:
    """Return the value of one entry, read again only where it was touched since this process read it, or just now."""
    try:
        status = os.lstat(f"{root}/{path}")
    except OSError as error:
        raise unreadable(path, error) from error
    if time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
        return _value(root, path)
    # A file that changes between the two lines gets another time of change, and so is read at the next look.
    return _settled_value(root, path, status.st_ino, status.st_size, status.st_ctime_ns)


@lru_cache(maxsize=2**18)
def _settled_value(root: str, path: str, *_stamp: int) -> str:
    return _value(root, path)


def unreadable(path: str, error: OSError) -> TreeError:
    """Return the error of a file that is there and cannot be read (`TREE104`)."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return TreeError(
        "TREE104",
        path,
        f"{path!r} is in the task's scope and cannot be read: {reason}.",
        "Make it readable and let nothing else change the files meanwhile, or leave it out of the scope.",
    )
