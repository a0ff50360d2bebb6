"""A small file that its owner alone may open, such as one with digests of secrets; read again when it changed."""

import os
import shlex
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar

from interlock.core.errors import InterlockError
from interlock.core.files import write_atomically
from interlock.core.locks import locked

ContentT = TypeVar("ContentT")

Fault: TypeAlias = Literal["unsafe", "damaged"]


class PrivateFile(Generic[ContentT]):
    """One such file.

    Args:
        path: Where it is.
        parse: Returns what its bytes hold; raises a `ValueError` for a file that Interlock did not write.
        empty: What it holds while it is not there.
        refuse: Makes the error for a file that others may open or that cannot be read (`unsafe`) or parsed
            (`damaged`), from what is wrong and what to do.
        anew: How to make its content anew, as a sentence.
    """

    def __init__(
        self,
        path: Path,
        *,
        parse: Callable[[bytes], ContentT],
        empty: ContentT,
        refuse: Callable[[Fault, str, str], InterlockError],
        anew: str,
    ) -> None:
        self.path = path
        self._parse = parse
        self._empty = empty
        self._refuse = refuse
        self._anew = anew
        self._identity: tuple[int, ...] = ()
        self._content = empty

    def read(self) -> ContentT:
        """Return what the file holds now.

        Raises:
            InterlockError: The one of `refuse`.
        """
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                self._refuse_open_file(status.st_mode)
                # A replaced file has another inode, and one that was rewritten in its place another time of change.
                identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                if identity != self._identity:
                    self._content = self._parse(file.read())
                    self._identity = identity
        except FileNotFoundError:
            self._identity, self._content = (), self._empty
        except OSError as error:
            raise self._refuse(
                "unsafe", f"{self.path} cannot be read: {error.strerror}", f"Remove it. {self._anew}"
            ) from error
        except ValueError as error:
            raise self._refuse("damaged", f"{self.path} is damaged: {error}", f"Remove it. {self._anew}") from error
        return self._content

    def write(self, data: bytes) -> None:
        """Replace the file as a whole. It is never there with a wider mode, not even for a moment."""
        write_atomically(self.path, data, mode=0o600)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other writers away."""
        with self.path.with_suffix(".lock").open("ab") as file, locked(file.fileno()):
            yield

    def _refuse_open_file(self, mode: int) -> None:
        if mode & 0o077:
            raise self._refuse(
                "unsafe",
                f"{self.path} is open to other users (mode {stat.S_IMODE(mode):04o})",
                f"If you know who wrote it, `chmod 600 {shlex.quote(str(self.path))}`; otherwise remove it. "
                f"{self._anew}",
            )
