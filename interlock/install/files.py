"""One file of a project as it is and as it will be: read, and written whole or not at all, with its mode."""

import difflib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.files import PART, write_atomically
from interlock.install.errors import not_editable

GIT: Final = "git"
"""The word of `--client` for git's hooks."""
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
        client: The word for `--client`; `git` for a git hook.
        title: For people.
        path: The file: relative to the root, or absolute outside of it.
        before: The file now; None where there is none.
        after: What will be there; None where it goes.
        note: What is done, in a few words.
        first: The file before it had anything of ours: what an undo brings back.
        wrote: The names of the installations that are in it; empty for an undo and for git.
        then: What a person does next; `{launch}` is replaced by the command line of the server.
    """

    client: str
    title: str
    path: str
    before: File | None
    after: File | None
    note: str
    first: File | None = None
    wrote: tuple[str, ...] = ()
    then: str = ""

    @property
    def is_done(self) -> bool:
        """Whether nothing needs to be written."""
        return self.before == self.after

    def diff(self) -> str:
        """Return a unified diff, empty when nothing changes."""
        path = self.path.lstrip("/")
        old_name = "/dev/null" if self.before is None else f"a/{path}"
        new_name = "/dev/null" if self.after is None else f"b/{path}"
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), old_name, new_name)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(file: File | None) -> list[str]:
    if file is None:
        return []
    data = b"link to " + file.data + b"\n" if file.mode == LINK else file.data
    return data.decode("utf-8", "replace").splitlines(keepends=True)


def write(path: Path, file: File | None) -> None:
    """Write a whole file or link, or remove it for None. It is never readable for more people than its mode says.

    Raises:
        OSError: The file system refuses.
    """
    if file is None:
        path.unlink(missing_ok=True)
        return
    if file.mode != LINK:
        write_atomically(path, file.data, chmod=file.mode)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link cannot be overwritten in one step: it is made beside the file and renamed over it.
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    part.unlink(missing_ok=True)
    part.symlink_to(os.fsdecode(file.data))
    part.replace(path)


def read(root: Path, name: str) -> File | None:
    """Return a configuration file, None when it is not there.

    Raises:
        InstallError: It is not a regular file, or not UTF-8.
    """
    # A link in the path leads to a file outside the project, which an undo could then harm.
    for part in (*reversed(Path(name).parents), Path(name)):
        if part != Path() and (root / part).is_symlink():
            target = (root / part).readlink()
            raise not_editable("INI101", f"`{part}` is a symbolic link.", f"a link to `{target}`", "a file of its own")
    path = root / name
    if path.parent.exists() and not path.parent.is_dir():
        raise not_editable("INI101", f"`{Path(name).parent}` is not a folder.", "a file", "a folder")
    file = read_raw(path)
    if file is None:
        return None
    try:
        file.data.decode()
    except UnicodeDecodeError as error:
        line = file.data.count(b"\n", 0, error.start) + 1
        found = f"`\\x{file.data[error.start]:02x}`"
        raise not_editable("INI101", "the file is not UTF-8.", found, "UTF-8", line, 1) from error
    return file


def read_raw(path: Path) -> File | None:
    """Return a file of any bytes, or a symbolic link; None when nothing is there.

    Raises:
        InstallError: It is not a regular file.
    """
    if path.is_symlink():
        return File(os.fsencode(path.readlink()), LINK)
    if not path.exists():
        return None
    if not path.is_file():
        raise not_editable("INI101", "it is not a regular file.", "a folder or a device", "a file")
    return File(path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
