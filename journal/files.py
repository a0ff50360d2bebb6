"""The journal as a file: opening without following a link, locking, reading by lines, writing lines durably."""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from interlock.core.locks import locked
from interlock.journal.errors import JournalError

# A link could lead out of the project, and a FIFO would hang: O_NONBLOCK opens one at once, and it is then refused.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK_BYTES = 1024 * 1024
"""How much is read at once of a file that is searched."""
_END_BYTES = 64 * 1024
"""How much is read at once from the end, where the last line ends."""


@contextmanager
def open_for_reading(path: Path) -> Generator[tuple[int, int], None, None]:
    """Hold the journal open; gives its descriptor and its size at a moment when no writer was at work.

    Raises:
        FileNotFoundError: when it is not there.
        JournalError: when it is no regular file, or cannot be opened.
    """
    with _opened(path, _READ) as fd:
        # A writer holds the lock for a whole batch. So a size that is taken under it ends with a whole line, or with
        # what a killed writer left.
        with _locked(fd, path, shared=True):
            size = os.fstat(fd).st_size
        yield fd, size


@contextmanager
def open_for_append(path: Path, *, create: bool) -> Generator[int, None, None]:
    """Hold the journal open and locked against every other writer, in this process and others.

    Raises:
        FileNotFoundError: when it is not there and `create` is false.
        JournalError: when it is no regular file, or cannot be opened.
    """
    while True:
        with _opened(path, _APPEND | (os.O_CREAT if create else 0)) as fd, _locked(fd, path):
            # A file that was replaced while this writer waited is not the one to write to.
            if path.exists() and os.path.samestat(os.fstat(fd), path.stat()):
                yield fd
                return


def whole(fd: int, size: int) -> int:
    """Return where the last whole line before a byte offset ends; 0 when there is none."""
    while size:
        start = max(0, size - _END_BYTES)
        # From the end, block by block: the last newline is nearly always in the last block.
        newline = os.pread(fd, size - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        size = start
    return 0


def read_lines(fd: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Give each line between two byte offsets at which lines end, with its own offset."""
    with open(fd, "rb", closefd=False) as file:
        file.seek(start)
        while start < stop and (raw := file.readline()):
            yield start, raw
            start += len(raw)


def search(fd: int, stop: int, text: bytes) -> Iterator[tuple[int, bytes]]:
    """Give each line before a byte offset that holds a text, with its own offset.

    Of a line that is longer than a block, that block is given.
    """
    start = 0
    while start < stop:
        block = os.pread(fd, min(_BLOCK_BYTES, stop - start), start)
        if not block:
            return
        # Only whole lines of a block are searched; the next block begins with the rest.
        end = block.rfind(b"\n") + 1 or len(block)
        at = block.find(text, 0, end)
        while at >= 0:
            first, last = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at, end) + 1 or end
            yield start + first, block[first:last]
            at = block.find(text, last, end)
        start += end


def number(fd: int, offset: int) -> int:
    """Return the number of the line that begins at a byte offset, from 1."""
    blocks = (os.pread(fd, min(_BLOCK_BYTES, offset - at), at) for at in range(0, offset, _BLOCK_BYTES))
    return 1 + sum(block.count(b"\n") for block in blocks)


def write(fd: int, lines: bytes | bytearray, path: Path) -> None:
    """Append whole lines with one write and wait until they are on the disk; on failure take them back.

    Raises:
        JournalError: when they could not be stored.
    """
    size = os.fstat(fd).st_size
    try:
        # One write: nobody who reads meanwhile sees a line without those that were to go in with it.
        written = os.write(fd, lines)
        if written < len(lines):
            raise _unwritten(path, f"{written} of {len(lines)} bytes fitted")
        os.fsync(fd)
    except (OSError, JournalError) as error:
        # What cannot even be taken back, the next append finds: it cuts a fragment off and knows a line by its key.
        with suppress(OSError):
            os.ftruncate(fd, size)
        if isinstance(error, OSError):
            raise _unwritten(path, str(error.strerror)) from error
        raise


def sync(fd: int, path: Path) -> None:
    """Wait until what was written, by whomever, is on the disk.

    Raises:
        JournalError: when it cannot be stored.
    """
    try:
        os.fsync(fd)
    except OSError as error:
        raise _unwritten(path, str(error.strerror)) from error


def make_folder(path: Path) -> None:
    """Make the folder of a journal.

    Raises:
        JournalError: when it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError("JRN721", f"the folder cannot be made: {error.strerror}", path=path) from error


def sync_folder(path: Path) -> None:
    """Wait until the name of a new journal is on the disk.

    Raises:
        JournalError: when it cannot be stored.
    """
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd, path)
    finally:
        os.close(fd)


@contextmanager
def _opened(path: Path, flags: int) -> Generator[int]:
    if path.parent.is_symlink():
        raise JournalError("JRN721", "lies in a folder that is a symbolic link", path=path)
    try:
        fd = os.open(path, flags, 0o644)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise JournalError("JRN721", f"cannot be opened as a regular file: {error.strerror}", path=path) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise JournalError("JRN721", "is not a regular file", path=path)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _locked(fd: int, path: Path, *, shared: bool = False) -> Generator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(fd, shared=shared))
        except OSError as error:
            raise JournalError("JRN721", f"cannot be locked: {error.strerror}", path=path) from error
        yield


def _unwritten(path: Path, reason: str) -> JournalError:
    return JournalError("JRN733", f"it could not be stored: {reason}", path=path)
