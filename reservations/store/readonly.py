"""Looking into an SQLite file where nothing can be written: even to read, SQLite may have to roll back or to lock."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_BESIDE: Final = ("", "-journal", "-wal")


def is_writable(path: str) -> bool:
    """Return whether a file and its folder can be written; on a read-only disk they cannot, by nobody."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)


@contextmanager
def to_read(path: str) -> Generator[str]:
    """Yield a path at which an SQLite file can be opened: its own, or that of a copy where it cannot be written.

    The copy is gone afterwards. It has the file's journal beside it, so that what was cut off is rolled back there.
    """
    if is_writable(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        for suffix in _BESIDE:
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, copy + suffix)
        yield copy
