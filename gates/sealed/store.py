"""The store outside of every checkout: contents of bases, exports, and what is known of base tests.

    <state>/interlock/<project>/objects/ab/cdef…   contents, named by their SHA-256
    <state>/interlock/<project>/bases/<digest>     manifests
    <state>/interlock/<project>/exports/<n>        folders in which gates run, one for each that runs at a time
    <state>/interlock/<project>/results/<key>      what the tests of a base came to
    <state>/interlock/<project>/bytecode/<key>     compiled code of dependencies
    <state>/interlock/<project>/agents/<ask>       the process of an agent at work; see `graph.task.left_agents`

`<state>` is `INTERLOCK_STATE`, else `XDG_STATE_HOME`, else `~/.local/state`. A program of the same user can write here,
so nothing that is read back is believed: contents are hashed against the manifest, whose digest the run keeps.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.gates.sealed.errors import SealError

STATE: Final = "INTERLOCK_STATE"
_MAX_EXPORTS: Final = 16


class Store:
    """The part of the store that belongs to one checkout, or to a project's root where there is no git."""

    def __init__(self, top: Path) -> None:
        key = sha256(os.fsencode(os.path.realpath(top))).hexdigest()[:16]
        self.folder = state_folder() / f"{key}-{top.name or 'root'}"

    def object_path(self, digest: str) -> str:
        """Return where the content with a SHA-256 lies."""
        return f"{self.folder}/objects/{digest[:2]}/{digest[2:]}"

    def keep_object(self, data: bytes, digest: str = "") -> str:
        """Store a content and return its SHA-256 in hex; it can be given where it is known.

        What lies there already is read and compared: a damaged object is written anew.
        """
        digest = digest or sha256(data).hexdigest()
        path = self.object_path(digest)
        if not _holds(path, data):
            write(path, data)
        return digest

    def object(self, digest: str) -> bytes:
        """Return the content with a SHA-256."""
        return verified(self.object_path(digest), digest)

    @contextmanager
    def export(self) -> Generator[Path]:
        """Hold a folder for one export alone; the next one in the same process finds most files in place.

        `SEAL111` is raised where too many gates of this checkout run at a time.
        """
        for number in range(_MAX_EXPORTS):
            folder = self.folder / "exports" / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "lock").open("ab") as lock, locked(lock, seconds=0) as held:
                if held:
                    yield folder / "tree"
                    return
        message = f"{_MAX_EXPORTS} gates of this checkout run already."
        raise SealError("SEAL111", message, "Wait until one of them has ended.")


def _holds(path: str, data: bytes) -> bool:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(data):
            return False
        with open(path, "rb") as file:
            return file.read() == data
    except OSError:
        return False


def state_folder() -> Path:
    """Return the folder of every store."""
    named = os.environ.get(STATE) or os.environ.get("XDG_STATE_HOME")
    base = Path(named) if named else Path.home() / ".local" / "state"
    return base / "interlock"


def write(path: str | Path, data: bytes) -> None:
    """Write a whole file of the store, or `SEAL112`; one that a crash of the machine cut is found by its digest."""
    try:
        write_atomically(path, data, mode=0o600, durable=False)
    except OSError as error:
        raise SealError(
            "SEAL112",
            f"{path} cannot be written: {error.strerror}.",
            f"Free some disk space, or name a writable folder with the variable {STATE}.",
        ) from error


def verified(path: str | Path, digest: str) -> bytes:
    """Read a file of the store, which has this SHA-256; `SEAL110` where it is not there, or is not what was stored."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        why = "" if sha256(data).hexdigest() == digest else "its content is not the one that was stored"
    except OSError as error:
        data, why = b"", error.strerror or "unknown"
    if why:
        fix = "Something other than Interlock changed the store. Start a new run: it writes what is damaged anew."
        raise SealError("SEAL110", f"{path} cannot be used: {why}.", fix)
    return data
