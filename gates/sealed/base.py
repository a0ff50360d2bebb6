"""The base of a run: the tree as it was when the run began, as raw bytes in a store outside the checkout.

No filter of git is applied, so that line endings, pointers of large files and the contents of submodules stay as they
are on disk. The manifest names every file with its mode and SHA-256; the run keeps the digest of the manifest.

What fails is a `SealError`: `SEAL101` the tree or an ignore file cannot be read, `SEAL102` a file cannot be read or
changes meanwhile, `SEAL110` the store was changed, `SEAL112` it cannot be written.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.core.json import canonical
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.listing import Listing, is_left_out, list_tree, stamp_of, top_of
from interlock.gates.sealed.store import Store, verified, write
from interlock.gates.tree import MAX_FILE_BYTES, remember

SCHEMA: Final = "interlock.base/1"
FILE, PROGRAM, LINK = "100644", "100755", "120000"
_ATTEMPTS: Final = 3


class Entry(NamedTuple):
    """One file of a tree: git's mode, and the SHA-256 of its content, or of its target's text for a link."""

    mode: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Base:
    """A frozen tree: the checkout, the project's root relative to it, or empty, and the `sha256:…` of the manifest.

    `files` is path relative to the top to its entry, sorted.
    """

    top: Path
    root: str
    files: Mapping[str, Entry]
    digest: str

    @property
    def store(self) -> Store:
        """The store that holds the contents."""
        return Store(self.top)

    def inside(self, path: str) -> str:
        """Return a path of the top for one that is relative to the project's root."""
        return f"{self.root}/{path}" if self.root else path

    def outside(self, path: str) -> str | None:
        """Return a path relative to the project's root for one of the top, or None when it lies beside the root."""
        if not self.root:
            return path
        return path[len(self.root) + 1 :] if path.startswith(f"{self.root}/") else None

    def content(self, path: str) -> bytes | None:
        """Return the content of a file, by its path relative to the top; None when the base has no such file."""
        entry = self.files.get(path)
        return None if entry is None or entry.mode == LINK else self.store.object(entry.sha256)


def freeze(root: Path, *, listing: Listing | None = None, progress: Callable[[int, int], None] | None = None) -> Base:
    """Store the tree around a project's root, which has no symbolic links, as it is now.

    `listing` are its files, where they are known; `progress` is called with the files done and in all.
    """
    top, relative = place_of(root)
    store, files = Store(top), dict[str, Entry]()
    listed = (listing or list_tree(top, relative)).files
    for number, path in enumerate(sorted(listed), 1):
        # One that was removed since it was listed is none.
        if os.path.lexists(top / path):
            entry, data = read_entry(top, path)
            store.keep_object(data, entry.sha256)
            files[path], stamp = entry, listed[path]
            remember(stamp.inode, stamp.size, stamp.ctime_ns, f"{entry.mode} {entry.sha256}")
        if progress is not None and number % 500 == 0:
            progress(number, len(listed))
    return _kept(top, relative, files)


def keep_base(root: Path, contents: Mapping[str, tuple[str, bytes]]) -> Base:
    """Store a tree whose contents are given: path relative to the top, to mode and bytes; none for an empty tree."""
    top, relative = place_of(root)
    store = Store(top)
    return _kept(top, relative, {path: Entry(mode, store.keep_object(data)) for path, (mode, data) in contents.items()})


def load(root: Path, digest: str, top: str = "") -> Base:
    """Read a base back by the digest that the run kept; `top` is the checkout as the run kept it, else the one now."""
    where = Path(top) if top else place_of(root)[0]
    return _loaded(where, digest, os.fspath(Store(where).folder))


@lru_cache(maxsize=4)
def _loaded(top: Path, digest: str, folder: str) -> Base:
    name = digest.removeprefix("sha256:")
    read: dict[str, Any] = json.loads(verified(f"{folder}/bases/{name}", name))
    return Base(top, read["root"], {name: Entry(*row) for name, row in read["files"].items()}, digest)


def place_of(root: Path) -> tuple[Path, str]:
    """Return the checkout around a root, and the root relative to it.

    A root that the checkout ignores is none of its files: it is a tree of its own. Files that an agent can write decide
    that, so a run asks once, when it begins, and keeps the answer in what it froze.
    """
    real = Path(os.path.realpath(root))
    top = top_of(real) or real
    relative = real.relative_to(top).as_posix()
    return (real, "") if relative == "." or is_left_out(top, relative) else (top, relative)


def read_entry(top: Path, path: str) -> tuple[Entry, bytes]:
    """Read one file or link of a tree once, without following a link."""
    name = f"{top}/{path}"
    for _ in range(_ATTEMPTS):
        try:
            before = os.lstat(name)
            if stat.S_ISLNK(before.st_mode):
                data = os.fsencode(os.readlink(name))
                return Entry(LINK, sha256(data).hexdigest()), data
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    break
                if status.st_size > MAX_FILE_BYTES:
                    raise _unreadable(path, f"it has {status.st_size} bytes; the most are {MAX_FILE_BYTES}")
                data = file.read()
                if stamp_of(status) == stamp_of(os.fstat(descriptor)) and len(data) == status.st_size:
                    mode = PROGRAM if status.st_mode & stat.S_IXUSR else FILE
                    return Entry(mode, sha256(data).hexdigest()), data
        except OSError as error:
            raise _unreadable(path, error.strerror or "unknown") from error
    raise _unreadable(path, "it changes while it is read, or is no file")


def is_entry(top: Path, path: str, entry: Entry) -> bool:
    """Return whether a file or link of a tree is this entry; one that cannot be read is not."""
    with suppress(SealError):
        return read_entry(top, path)[0] == entry
    return False


def _kept(top: Path, root: str, files: dict[str, Entry]) -> Base:
    data = canonical({"schema": SCHEMA, "root": root, "files": files})
    digest = sha256(data).hexdigest()
    write(Store(top).folder / "bases" / digest, data)
    return Base(top, root, dict(sorted(files.items())), f"sha256:{digest}")


def _unreadable(path: str, why: str) -> SealError:
    return SealError(
        "SEAL102",
        f"{path!r} cannot be frozen: {why}.",
        "Make it readable, let nothing change it meanwhile, or list it in a .gitignore.",
    )
