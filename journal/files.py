"""The journal as a file: opening without following links, locking, reading by lines, writing lines durably."""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from interlock.core.locks import locked
from interlock.journal.errors import JournalRefused, JournalUnwritten
from interlock.journal.line import MAX_LINE_BYTES

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LINE_BYTES = 4096
"""How much is read at first of a line whose length is not known."""
_BLOCK_BYTES = 1024 * 1024
"""How much is read at once of a file that is searched."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_folder(path: Path) -> Generator[int, None, None]:
    """Hold the folder of the journal `path` open; the folder itself must not be a symbolic link.

    Raises:
        FileNotFoundError: when it is not there.
        JournalRefused: when it is no real folder, or cannot be opened.
    """
    try:
        fd = os.open(path.parent, _FOLDER)
    except FileNotFoundError:
        raise
    except OSError as error:
        message = f"the folder {path.parent} cannot be opened as a real folder: {error.strerror}"
        raise JournalRefused("JRN721", message, path=path) from error
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def open_for_reading(path: Path) -> Generator[tuple[int, int], None, None]:
    """Hold the journal open; gives its descriptor and its size at a moment when no writer was at work.

    Raises:
        FileNotFoundError: when the file or its folder is not there.
        JournalRefused: when it is no regular file, or cannot be opened.
    """
    with open_folder(path) as folder:
        fd = _open(path, _READ, folder)
    try:
        with _locked(fd, path, shared=True):
            size = os.fstat(fd).st_size
        yield fd, size
    finally:
        os.close(fd)


@contextmanager
def open_for_append(path: Path, folder: int, *, create: bool) -> Generator[int, None, None]:
    """Hold the journal open and locked against every other writer, in this process and others.

    Raises:
        FileNotFoundError: when it is not there and `create` is false.
        JournalRefused: when it is no regular file, or cannot be opened.
    """
    while True:
        fd = _open(path, _APPEND | (os.O_CREAT if create else 0), folder)
        try:
            with _locked(fd, path):
                # A file that was replaced while this writer waited is not the one to write to.
                if _is_at(fd, path, folder):
                    yield fd
                    return
        finally:
            os.close(fd)


def read_lines(fd: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Give each line between two byte offsets with its own offset; only the last can lack its newline.

    Of a line longer than `MAX_LINE_BYTES`, the first `MAX_LINE_BYTES + 1` bytes are given and the rest is passed over.
    """
    with open(fd, "rb", closefd=False) as file:
        file.seek(start)
        while start < stop:
            raw = file.readline(min(MAX_LINE_BYTES + 1, stop - start))
            if not raw:
                return
            yield start, raw
            start += len(raw)
            while not raw.endswith(b"\n") and start < stop:
                raw = file.readline(min(MAX_LINE_BYTES, stop - start))
                if not raw:
                    return
                start += len(raw)


def read_line(fd: int, start: int, stop: int) -> bytes:
    """Give the line that begins at a byte offset, its newline included, or what there is of it before `stop`."""
    size = _LINE_BYTES
    while True:
        raw = os.pread(fd, min(size, stop - start), start)
        line, newline, _ = raw.partition(b"\n")
        if newline or len(raw) < size:
            return line + newline
        size *= 8


def search(fd: int, stop: int, text: bytes) -> Iterator[tuple[int, bytes]]:
    """Give each line before a byte offset that holds a text, with its own offset.

    Of a line that is longer than a block, that block is given.
    """
    start = 0
    while start < stop:
        block = os.pread(fd, min(_BLOCK_BYTES, stop - start), start)
        if not block:
            return
        end = block.rfind(b"\n") + 1 or len(block)
        at = block.find(text, 0, end)
        while at >= 0:
            first, last = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at, end) + 1 or end
            yield start + first, block[first:last]
            at = block.find(text, last, end)
        start += end


def last_line(fd: int, size: int) -> int:
    """Return where the last whole line before a byte offset begins; 0 when there is none."""
    start = max(0, size - 2 * MAX_LINE_BYTES - 2)
    block = os.pread(fd, size - start, start)
    end = block.rfind(b"\n")
    return start + block.rfind(b"\n", 0, max(end, 0)) + 1


def number(fd: int, offset: int) -> int:
    """Return the number of the line that begins at a byte offset, from 1."""
    blocks = (os.pread(fd, min(_BLOCK_BYTES, offset - at), at) for at in range(0, offset, _BLOCK_BYTES))
    return 1 + sum(block.count(b"\n") for block in blocks)


def write(fd: int, lines: bytes, path: Path) -> None:
    """Append whole lines with one write and wait until they are on the disk; on failure take them back.

    Raises:
        JournalUnwritten: when they could not be stored.
    """
    size = os.fstat(fd).st_size
    try:
        written = os.write(fd, lines)
        if written < len(lines):
            raise _unwritten(path, f"{written} of {len(lines)} bytes fitted")
        os.fsync(fd)
    except (OSError, JournalUnwritten) as error:
        # What cannot even be taken back, the next append finds: it sets a fragment aside and knows a line by its key.
        with suppress(OSError):
            os.ftruncate(fd, size)
        if isinstance(error, OSError):
            raise _unwritten(path, str(error.strerror)) from error
        raise


def sync(fd: int, path: Path) -> None:
    """Wait until what was written, by whomever, is on the disk.

    Raises:
        JournalUnwritten: when it cannot be stored.
    """
    try:
        os.fsync(fd)
    except OSError as error:
        raise _unwritten(path, str(error.strerror)) from error


def set_aside(fd: int, start: int, path: Path, folder: int) -> None:
    """Move what follows byte `start`, an unfinished line, to the end of the `.torn` file beside the journal."""
    fragment = os.pread(fd, MAX_LINE_BYTES, start)
    torn = path.with_name(f"{path.name}.torn")
    keep = _open(torn, _APPEND | os.O_CREAT, folder)
    try:
        write(keep, fragment + b"\n", torn)
        sync(folder, torn)
    finally:
        os.close(keep)
    os.ftruncate(fd, start)


def _open(path: Path, flags: int, folder: int) -> int:
    try:
        fd = os.open(path.name, flags, 0o644, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise JournalRefused("JRN721", f"cannot be opened as a regular file: {error.strerror}", path=path) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise JournalRefused("JRN721", "is not a regular file", path=path)


@contextmanager
def _locked(fd: int, path: Path, *, shared: bool = False) -> Generator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(fd, shared=shared))
        except OSError as error:
            raise JournalRefused("JRN721", f"cannot be locked: {error.strerror}", path=path) from error
        yield


def _unwritten(path: Path, reason: str) -> JournalUnwritten:
    return JournalUnwritten("JRN733", f"it could not be stored: {reason}", path=path)


def _is_at(fd: int, path: Path, folder: int) -> bool:
    try:
        there = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)
