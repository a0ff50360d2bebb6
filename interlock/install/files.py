"""Reading and writing one file of a project: plain files alone, whole or not at all."""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from interlock.install.errors import EditError

MAX_BYTES: Final = 1024 * 1024
"""A larger configuration file is refused."""


def write(path: Path, data: bytes | None) -> None:
    """Write a file with the mode that it has, or remove it for None.

    Raises:
        OSError: The file system refuses.
    """
    if data is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    replace(path, data, mode)


def replace(path: Path, data: bytes, mode: int) -> None:
    """Write a whole file or nothing; it is never readable for more people than before."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def read(root: Path, name: str) -> tuple[bytes | None, str]:
    """Return the bytes and the text of a file, None and nothing when it is not there.

    Raises:
        EditError: It is no plain file, too large, or not UTF-8.
    """
    for part in (*reversed(Path(name).parents), Path(name)):
        if part != Path() and (root / part).is_symlink():
            target = (root / part).readlink()
            raise EditError("INI104", f"`{part}` is a symbolic link.", f"a link to `{target}`", "a file of its own")
    path = root / name
    if path.parent.exists() and not path.parent.is_dir():
        raise EditError("INI104", f"`{Path(name).parent}` is no folder.", "a file", "a folder")
    if not path.exists():
        return None, ""
    if not path.is_file():
        raise EditError("INI104", "it is no plain file.", "a folder or a device", "a file")
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise EditError("INI101", "the file is too large.", f"{len(data)} bytes", f"at most {MAX_BYTES}")
    try:
        return data, data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"`\\x{data[error.start]:02x}`"
        raise EditError("INI101", "the file is not UTF-8.", found, "UTF-8", line, 1) from error


@contextmanager
def alone(root: Path) -> Generator[None]:
    """Let one init at a time write below a root; the lock is on the folder itself and leaves nothing behind."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
