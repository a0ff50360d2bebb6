"""Reading and writing below a root: no path leaves it, and no reader ever sees a partial file.

Every function raises `RunnerError` when the path leaves the root, when a step of it is a symlink or no folder, when the
target is no plain file, when what is to be read is not there, and when the system refuses.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from interlock.agents.ask import RunnerError
from interlock.core.files import opened_beneath, write_in

MAX_PATH_CHARS: Final = 1024
"""A longer path is refused: folders nested deeper than that serve nobody."""


def split_path(path: str) -> tuple[str, ...]:
    """Return the segments of a relative path that stays below its root.

    Raises:
        RunnerError: For an absolute path, `..`, an empty or `.` segment, a backslash, a control character, half of a
            surrogate pair, or more than `MAX_PATH_CHARS`.
    """
    if len(path) > MAX_PATH_CHARS:
        raise RunnerError(f"the path has more than {MAX_PATH_CHARS} characters", "Write a shorter path.")
    segments = tuple(path.split("/"))
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
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RunnerError(f"{name!r} is not a plain file", "Name a plain file; links and folders are not read.")
            return file.read(limit + 1)


def entries_confined(root: str, folder: str = "") -> tuple[list[str], list[str]]:
    """Return the names of the folders and of the plain files in a folder below the root, each sorted, without links."""
    folders: list[str] = []
    files: list[str] = []
    segments = list(split_path(folder)) if folder else []
    with _refusals(folder, "listed"), opened_beneath(root, segments) as opened, os.scandir(opened) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
    return sorted(folders), sorted(files)


def delete_confined(root: str, path: str) -> None:
    """Delete a file below the root; one that is gone already is no error."""
    *folders, name = split_path(path)
    with _refusals(path), suppress(FileNotFoundError), opened_beneath(root, folders) as folder:
        if _mode(folder, name) is not None:
            os.unlink(name, dir_fd=folder)


@contextmanager
def _refusals(path: str, what: str = "written") -> Generator[None]:
    try:
        yield
    except OSError as error:
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
