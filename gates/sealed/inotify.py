"""What happens to files and folders while a command runs, and leaves no trace on them: inotify of Linux reports it.

A file that is written, replaced or renamed has another time of change. There are exceptions: a folder may be put aside
for a while, with another in its place, and named back at the end; its rights may be taken and given back; a file may be
made and removed again; and some ways of writing set no time, as through a map on file systems in memory, or by
exchanging the blocks of two files.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from interlock.gates.sealed.errors import SealError

_ATTRIB: Final = 0x4
_CLOSE_WRITE: Final = 0x8
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_MOVE_SELF: Final = 0x800
_NO_LINK: Final = 0x0200_0000
_IS_FOLDER: Final = 0x4000_0000
_EVENT: Final = struct.Struct("iIII")
_BUFFER_BYTES: Final = 64 * 1024
_TICK_SECONDS: Final = 0.02
"""Longer than the resolution of the times of change that a kernel sets."""


@dataclass(slots=True)
class Seen:
    """Folders that were moved or have other rights, files that were open for writing, and names that were made.

    Paths are relative to the folder that was watched; that of a folder that was made ends in `/`.
    """

    moved: set[str] = field(default_factory=set[str])
    written: set[str] = field(default_factory=set[str])
    made: set[str] = field(default_factory=set[str])


@contextmanager
def watched(top: str, folders: Collection[str], files: Collection[str]) -> Generator[Seen]:
    """Watch folders below `top`, itself named by the empty path, and the files in them, until the context ends.

    Yields what happened, which is whole when the context ends; elsewhere than on Linux it stays empty. `SEAL123` where
    they cannot be watched.
    """
    seen = Seen()
    if sys.platform != "linux" or not folders:
        yield seen
        return
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if queue < 0:
        raise _unwatched("max_user_instances")
    stop, stopping = os.pipe2(os.O_CLOEXEC)
    try:
        names: dict[int, str] = {}
        mask = _MOVE_SELF | _ATTRIB | _CLOSE_WRITE | _CREATE | _MOVED_TO | _NO_LINK
        for path in folders:
            number = libc.inotify_add_watch(queue, os.fsencode(f"{top}/{path}"), mask)
            if number >= 0:
                names[number] = path
            elif ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR):  # a command of `prepare` may have removed it
                raise _unwatched("max_user_watches")
        reader = threading.Thread(target=_read, args=(queue, stop, names, seen), daemon=True)
        reader.start()
        try:
            yield seen
            # Before the last events are read: whoever closes a file later than this still has it open now.
            seen.written |= {path for path in files if _is_open(f"{top}/{path}")}
        finally:
            os.write(stopping, b".")
            reader.join()
    finally:
        for descriptor in (queue, stop, stopping):
            os.close(descriptor)


def _read(queue: int, stop: int, names: Mapping[int, str], seen: Seen) -> None:
    """Take events, so that the queue has space, until there are no more and `stop` is written to."""
    poll = select.poll()
    for descriptor in (queue, stop):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if queue not in ready:
            return
        with suppress(BlockingIOError):
            for number, mask, name in _events(os.read(queue, _BUFFER_BYTES)):
                _take(seen, names, number, mask, name)


def _take(seen: Seen, names: Mapping[int, str], number: int, mask: int, name: str) -> None:
    if number < 0:  # the queue overflowed
        seen.moved |= {*names.values()}
        return
    folder = names[number]
    path = f"{folder}/{name}" if folder else name
    if not name and mask & (_MOVE_SELF | _ATTRIB):
        seen.moved.add(folder)
    if name and mask & _CLOSE_WRITE:
        seen.written.add(path)
    if mask & (_CREATE | _MOVED_TO):
        seen.made.add(f"{path}/" if mask & _IS_FOLDER else path)


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield of each event the number of its watch, what happened, and the name in the folder."""
    at = 0
    while at < len(data):
        number, mask, _, size = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield number, mask, os.fsdecode(data[at : at + size].rstrip(b"\0"))
        at += size


def _is_open(path: str) -> bool:
    """Return whether a file is open for writing somewhere, in a message that nobody took for example."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # it is a link, or was replaced, or its rights were changed, which its times show
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)
    return False


@cache
def mmap_sets_ctime(folder: str) -> bool:
    """Return whether a write through a memory map sets the time of change here; it is tried once in this process."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(mmap.PAGESIZE))
        file.flush()
        before = os.fstat(file.fileno()).st_ctime_ns
        time.sleep(_TICK_SECONDS)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapped:
            mapped[1] = mapped[0] + 1
            mapped.flush()
        return os.fstat(file.fileno()).st_ctime_ns != before


def _unwatched(setting: str) -> SealError:
    reason = os.strerror(ctypes.get_errno())
    return SealError(
        "SEAL123",
        f"The folders of the export cannot be watched: {reason}.",
        f"Raise the limit: `sysctl fs.inotify.{setting}` shows it.",
    )
