"""Reading and writing below a root: no path leaves it, and no reader ever sees a partial file.

Every function raises `RunnerError` when the path leaves the root, when a step of it is a symlink or no folder, when the
target is no plain file, when what is to be read is not there, and when the system refuses.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from interlock.agents.ask import RunnerError
from interlock.core.files import opened_beneath, write_in

MAX_DEPTH: Final = 64
"""So many folders within each other are walked: each takes a descriptor and a frame of Python's stack."""


def split_path(path: str) -> tuple[str, ...]:
    """Return the segments of a relative path that stays below its root.

    Raises:
        RunnerError: For an absolute path, `..`, an empty or `.` segment, a backslash, a control character, or half of a
            surrogate pair.
    """
    segments = tuple(path.split("/"))
    # What a terminal, a prompt or another system would read as something else is no path here.
    bad = "\\" in path or any(ord(char) < 32 or ord(char) == 127 or "\ud800" <= char <= "\udfff" for char in path)
    if bad or path.startswith("~") or any(segment in ("", ".", "..") for segment in segments):
        message = f"the path {path!r} is not a plain path below the root"
        raise RunnerError(message, "Write it relative to the root, with `/`, without `..`.")
    return segments


def write_confined(root: str, path: str, data: bytes) -> None:
    """Put bytes at a path below the root, whole or not at all, making folders on the way.

    A file that holds the same bytes already is left as it is, so a repeated write changes nothing. A file that is
    replaced keeps its permissions.
    """
    *folders, name = split_path(path)
    with _refusals(path), opened_beneath(root, folders, make=True) as folder:
        mode = _mode(folder, name)
        if mode is not None and _holds(folder, name, data):
            return
        # The name is the same each time, so what a killed writer left is replaced when the ask is made again.
        temporary = f".interlock-{hashlib.sha256(name.encode()).hexdigest()[:16]}.part"
        write_in(folder, name, data, chmod=0o644 if mode is None else mode & 0o777, part=temporary)


def read_confined(root: str, path: str, limit: int) -> bytes:
    """Return the first `limit` + 1 bytes of a plain file below the root."""
    *folders, name = split_path(path)
    with _refusals(path, "read"), opened_beneath(root, folders) as folder:
        # To open a pipe would wait for somebody who writes into it; with O_NONBLOCK it does not.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RunnerError(f"{name!r} is not a plain file", "Name a plain file; links and folders are not read.")
            # The one byte more tells the caller that the file is larger.
            return file.read(limit + 1)


def walk_confined(
    root: str, start: str, enters: Callable[[str], bool], unseen: Callable[[object], object] = lambda _folder: None
) -> Iterator[str]:
    """Yield the plain files below a folder of the root, by name, whose path `split_path` takes; links are left out.

    `enters` says of each path, of a folder or of a file, whether it is looked at. A folder that is not there, or is
    reached by a link, is refused. `unseen` is called for each folder below it that is too deep or cannot be opened.
    """
    segments = split_path(start) if start else ()
    with _refusals(start, "listed"), opened_beneath(root, segments) as folder:
        # By descriptors: a folder that becomes a link meanwhile is not entered.
        for below, folders, names, here in os.fwalk(".", onerror=unseen, dir_fd=folder, follow_symlinks=False):
            prefix = "/".join(part for part in (start, below.removeprefix(".").removeprefix("/")) if part)
            prefix = f"{prefix}/" if prefix else ""
            # The walk goes on with what is left in the list, in its order.
            folders[:] = sorted(name for name in folders if _is_plain(prefix + name) and enters(prefix + name))
            if folders and prefix.count("/") >= MAX_DEPTH:
                unseen(prefix)
                folders.clear()
            for name in sorted(names):
                if _is_plain(prefix + name) and enters(prefix + name):
                    # A name may have gone since the folder was read.
                    with suppress(FileNotFoundError):
                        if stat.S_ISREG(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                            yield prefix + name


def _is_plain(path: str) -> bool:
    """Return whether an agent could name a path to us."""
    try:
        return bool(split_path(path))
    except RunnerError:
        return False


def delete_confined(root: str, path: str) -> None:
    """Delete a file below the root; one that is gone already is no error."""
    *folders, name = split_path(path)
    with _refusals(path), suppress(FileNotFoundError), opened_beneath(root, folders) as folder:
        # Asked for its refusal too: `unlink` would take away a link as well.
        if _mode(folder, name) is not None:
            os.unlink(name, dir_fd=folder)


@contextmanager
def _refusals(path: str, what: str = "written") -> Generator[None]:
    try:
        yield
    except OSError as error:
        # The names that the system has for a link and for a file in the place of a folder.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            message = f"a step of the path {path!r} is a symbolic link or no folder"
        else:
            message = f"the path {path!r} cannot be {what}: {error.strerror}"
        raise RunnerError(message, "Name a plain file in plain folders below the root.") from error


def _mode(folder: int, name: str) -> int | None:
    """Return the mode of a plain file, None when nothing is there; refuse every other kind."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise RunnerError(f"{name!r} is not a plain file", "Name a plain file; links and folders are not replaced.")
    return mode


def _holds(folder: int, name: str, data: bytes) -> bool:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(len(data) + 1) == data
