"""One file of a project as it is and as it will be: read, and written whole or not at all, with its mode."""

import difflib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.core.files import PART, opened_beneath, write_atomically
from interlock.core.locks import locked
from interlock.install.errors import EditError

MAX_BYTES: Final = 1024 * 1024
"""A larger configuration file is refused."""

LINK: Final = stat.S_IFLNK
"""The mode of a symbolic link, as git writes it: the bytes are its target."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is, or as it will be. The mode is `LINK` for a symbolic link."""

    data: bytes
    mode: int = 0o644

    @property
    def text(self) -> str:
        """The bytes as UTF-8, which `read` has checked."""
        return self.data.decode()


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it is and as it will be.

    Args:
        name: What asks for it: the name of an `Installation`, or of a git hook.
        client: The word for `--client`; `git` for a git hook.
        title: For people.
        path: The file: relative to the root, or absolute outside of it.
        before: The file now; None where there is none.
        first: The file before it had anything of ours: what an undo brings back.
        after: What will; None where it goes.
        note: What is done, in a few words.
        entry: What is put in; empty for an undo.
        wanted: The command lines of the entry.
        differs: Those in the file in place of them; empty when they agree.
        then: What a person does next; `{launch}` is replaced by the command line of the server.
    """

    name: str
    client: str
    title: str
    path: str
    before: File | None
    after: File | None
    note: str
    entry: dict[str, Any]
    wanted: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    then: str = ""
    first: File | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing needs to be written."""
        return self.before == self.after

    def diff(self) -> str:
        """Return a unified diff, empty when nothing changes."""
        old, new = (_lines(file) for file in (self.before, self.after))
        path = self.path.lstrip("/")
        names = "/dev/null" if self.before is None else f"a/{path}", "/dev/null" if self.after is None else f"b/{path}"
        rows = difflib.unified_diff(old, new, *names)
        return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _lines(file: File | None) -> list[str]:
    text = b"" if file is None else b"link to " + file.data + b"\n" if file.mode == LINK else file.data
    return text.decode("utf-8", "replace").splitlines(keepends=True)


def write(path: Path, file: File | None) -> None:
    """Write a file with its mode, or remove it for None.

    Raises:
        OSError: The file system refuses.
    """
    if file is None:
        path.unlink(missing_ok=True)
        return
    replace(path, file.data, file.mode)


def replace(path: Path, data: bytes, mode: int) -> None:
    """Write a whole file or nothing; it is never readable for more people than before."""
    if mode != LINK:
        write_atomically(path, data, chmod=mode)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    part.unlink(missing_ok=True)
    try:
        part.symlink_to(os.fsdecode(data))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def read(root: Path, name: str) -> File | None:
    """Return a configuration file, None when it is not there.

    Raises:
        EditError: It is not a regular file, too large, or not UTF-8.
    """
    for part in (*reversed(Path(name).parents), Path(name)):
        if part != Path() and (root / part).is_symlink():
            target = (root / part).readlink()
            raise EditError("INI104", f"`{part}` is a symbolic link.", f"a link to `{target}`", "a file of its own")
    path = root / name
    if path.parent.exists() and not path.parent.is_dir():
        raise EditError("INI104", f"`{Path(name).parent}` is not a folder.", "a file", "a folder")
    file = read_raw(path)
    if file is None:
        return None
    try:
        file.data.decode()
    except UnicodeDecodeError as error:
        line = file.data.count(b"\n", 0, error.start) + 1
        found = f"`\\x{file.data[error.start]:02x}`"
        raise EditError("INI101", "the file is not UTF-8.", found, "UTF-8", line, 1) from error
    return file


def read_raw(path: Path) -> File | None:
    """Return a file of any bytes, or a symbolic link; None when nothing is there.

    Raises:
        EditError: It is not a regular file, or too large.
    """
    if path.is_symlink():
        return File(os.fsencode(path.readlink()), LINK)
    if not path.exists():
        return None
    if not path.is_file():
        raise EditError("INI104", "it is not a regular file.", "a folder or a device", "a file")
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise EditError("INI101", "the file is too large.", f"{len(data)} bytes", f"at most {MAX_BYTES}")
    return File(data, stat.S_IMODE(path.stat().st_mode))


@contextmanager
def alone(root: Path) -> Generator[None]:
    """Let one init at a time write below a root; the lock is on the folder itself and leaves nothing behind."""
    with opened_beneath(root, ()) as folder, locked(folder):
        yield
