"""Whole files, written so that a reader finds the old content or the new, also after the machine has crashed."""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

PART: Final = ".part"
"""How the name of a file ends that is being written. What a killed writer left may be removed when nobody writes."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically(
    path: str | Path, data: bytes, *, mode: int = 0o666, chmod: int | None = None, durable: bool = True
) -> None:
    """Write a file whole or not at all, making its folders.

    Args:
        path: Where. A link there is replaced, not followed.
        data: All of the content.
        mode: Its permissions, less those that the process masks.
        chmod: Its permissions to the bit, where these count; it never has more, not even for a moment.
        durable: Whether the content and the name are on the disk when this returns. Without it a crash of the machine,
            not of the process, may leave an empty file.

    Raises:
        OSError: The system refuses; nothing has changed.
    """
    above = os.path.dirname(path) or "."
    os.makedirs(above, exist_ok=True)
    folder = os.open(above, _FOLDER)
    try:
        write_in(folder, os.path.basename(path), data, mode=mode, chmod=chmod, durable=durable)
    finally:
        os.close(folder)


def write_in(
    folder: int,
    name: str,
    data: bytes,
    *,
    mode: int = 0o666,
    chmod: int | None = None,
    durable: bool = True,
    part: str = "",
) -> None:
    """Write a file of an open folder whole or not at all; `write_atomically` has the other arguments.

    Args:
        folder: A descriptor of the folder.
        name: The file's name there.
        data: All of the content.
        mode: Its permissions, less those that the process masks.
        chmod: Its permissions to the bit, where these count.
        durable: Whether it is on the disk when this returns.
        part: What it is called until it is whole. By default a name of its own (`.RANDOM.PID.part`), so that two
            writers do not meet; where nobody else writes, one that is always the same leaves no second leftover.
    """
    if part:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
    else:
        part = f".{os.urandom(8).hex()}.{os.getpid()}{PART}"
    try:
        with os.fdopen(os.open(part, _NEW, mode if chmod is None else 0o600, dir_fd=folder), "wb") as file:
            # The mode of `open` is masked by the process; this one is not.
            if chmod is not None:
                os.fchmod(file.fileno(), chmod)
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        raise
    # The new name is on the disk only once its folder is.
    if durable:
        os.fsync(folder)


@contextmanager
def opened_beneath(root: str | Path, folders: Sequence[str], *, make: bool = False) -> Generator[int]:
    """Open a folder beneath a root step by step, following no link on the way.

    Args:
        root: Where to begin; it may itself be reached through a link.
        folders: The names of the folders below it, in order.
        make: Whether to make those that are missing.

    Yields:
        A descriptor of the last folder, or of the root.

    Raises:
        OSError: A step is missing, a link (`ELOOP`) or no folder (`ENOTDIR`), or the system refuses; its `filename`
            is the step.
    """
    with ExitStack() as stack:
        current = os.open(root, _FOLDER)
        stack.callback(os.close, current)
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=current)
            try:
                current = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=current)
            except NotADirectoryError as error:
                # Linux calls a link no folder when both flags are set; the two are told apart here.
                if stat.S_ISLNK(os.lstat(folder, dir_fd=current).st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder) from error
                raise
            stack.callback(os.close, current)
        yield current


def read_beneath(root: str | Path, path: str, max_bytes: int) -> bytes:
    """Read a regular file beneath a root, following no link on the way, and none at the end.

    Args:
        root: Where to begin; it may itself be reached through a link.
        path: The file below it, without steps that are empty, `.` or `..`.
        max_bytes: How large it may be.

    Raises:
        OSError: `ENOENT` it is not there; `ELOOP` a link; `ENOTDIR` a step that is no folder; `EINVAL` no regular file;
            `EFBIG` it is larger; or the system refuses.
    """
    *folders, name = path.split("/")
    with opened_beneath(root, folders) as folder:
        descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file", path)
        # What is reported as small may be endless, as below `/proc`, or grow while it is read.
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1) if status.st_size <= max_bytes else b""
        if max(status.st_size, len(data)) > max_bytes:
            raise OSError(errno.EFBIG, f"{max(status.st_size, len(data))} bytes", path)
    finally:
        os.close(descriptor)
    return data
