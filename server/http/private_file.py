"""A small file that the owner alone may read and write, such as one with digests of secrets."""

import os
import shlex
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from interlock.core.errors import InterlockError
from interlock.core.files import write_atomically
from interlock.core.locks import locked

MAX_FILE_BYTES: Final = 1024 * 1024

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateFile:
    """One such file; it is read again when it was changed.

    Args:
        path: Where it is.
        refuse: Makes the error for a file that others could read or plant, from what is wrong and what to do.
        anew: How to make its content anew, as a sentence.
    """

    def __init__(self, path: Path, refuse: Callable[[str, str], InterlockError], anew: str) -> None:
        self.path = path
        self._refuse = refuse
        self._anew = anew
        self._seen: tuple[int, ...] | None = None
        self._data: bytes | None = None

    def read(self) -> bytes | None:
        """Return the content, at most one byte over `MAX_FILE_BYTES`; None when there is no file.

        Raises:
            InterlockError: The one of `refuse`, for what is no regular file of this user with mode 0600.
        """
        try:
            fd = os.open(self.path, _READ)
        except FileNotFoundError:
            self._seen, self._data = None, None
            return None
        except OSError as error:
            raise self._refuse(
                f"{self.path} cannot be opened as a regular file: {error.strerror}",
                f"Remove it (a symbolic link is never followed). {self._anew}",
            ) from error
        try:
            found = os.fstat(fd)
            self._refuse_unsafe(found)
            identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if identity != self._seen:
                self._data = os.read(fd, MAX_FILE_BYTES + 1)
                self._seen = identity
        finally:
            os.close(fd)
        return self._data

    def write(self, data: bytes) -> None:
        """Replace the file as a whole. It is never there with a wider mode, not even for a moment."""
        write_atomically(self.path, data, mode=0o600)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other writers away."""
        fd = os.open(self.path.with_suffix(".lock"), _LOCK, 0o600)
        try:
            with locked(fd):
                yield
        finally:
            os.close(fd)

    def _refuse_unsafe(self, found: os.stat_result) -> None:
        quoted = shlex.quote(str(self.path))
        wrong = (
            (not stat.S_ISREG(found.st_mode), "is no regular file", f"Remove it. {self._anew}"),
            (found.st_uid != os.geteuid(), "belongs to another user", f"Remove it. {self._anew}"),
            (found.st_nlink > 1, "has a second name (a hard link)", f"Remove it. {self._anew}"),
            (
                bool(found.st_mode & 0o077),
                f"is open to other users (mode {stat.S_IMODE(found.st_mode):04o})",
                f"If you know who wrote it, `chmod 600 {quoted}`; otherwise remove it. {self._anew}",
            ),
        )
        for refused, message, fix in wrong:
            if refused:
                raise self._refuse(f"{self.path} {message}", fix)
