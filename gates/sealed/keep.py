"""Kept places: dependencies that no listing has, because they are ignored or lie outside of the checkout.

What was there when the run began is recorded, each file with its stamp and SHA-256; large files with their stamp alone.
Later only the stamps are compared, and the contents of files whose stamp differs. Bytecode that came or changed since
is no change of the place, since Python writes it whenever it likes: it is named apart, so that nothing inside reads it.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from interlock.gates.sealed.base import FILE, LINK, Entry, is_entry, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.listing import Listing, Stamp, stamp_of
from interlock.gates.sealed.store import state_folder, verified, write

SCRATCH: Final = frozenset({".cache", ".vite", ".vite-temp", ".vitest"})
"""Folders directly below a kept `node_modules` that tools write in; empty for a sealed gate, which may write there."""

_BYTECODE: Final = "bytecode"
_LARGE_BYTES: Final = 64 * 1024 * 1024
_NONE: Final = (None, None)


Records: TypeAlias = Mapping[str, str]
"""Each kept place, absolute, to the digest of the record of what it held when the run began."""

Change: TypeAlias = Literal["added", "removed", "changed", "bytecode"]
"""What became of a file; `bytecode`: it is bytecode that was added or changed."""

_Files: TypeAlias = dict[str, tuple[Stamp, Entry]]


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder to record, absolute, without symbolic links above it.

    The folders `but`, relative to it, are not part of it; unless it is `deep`, no folder in it is.
    """

    path: str
    but: tuple[str, ...] = ()
    deep: bool = True


def kept_folders(top: Path, root: str, listing: Listing, names: Iterable[str]) -> tuple[str, ...]:
    """Return the ignored folders that `keep` names, absolute.

    A name counts at any depth, a path from the root or from the top; such a folder may lie in an ignored one.
    """
    wanted = {os.path.normpath(name) for name in names}
    found = {path for path in listing.ignored if path.rpartition("/")[2] in wanted}
    for name in wanted:
        for path in (name, os.path.normpath(os.path.join(root, name))):
            below = any(path.startswith(f"{folder}/") for folder in listing.ignored)
            if path in listing.ignored or (below and os.path.realpath(f"{top}/{path}") == f"{top}/{path}"):
                found.add(path)
    outer = (path for path in sorted(found) if not any(path.startswith(f"{other}/") for other in found))
    return tuple(f"{top}/{path}" for path in outer)


def record(place: Place) -> str:
    """Record what a place holds now and return the digest of the record.

    `SEAL102` is raised where a file cannot be read, `SEAL112` where the store cannot be written.
    """
    last = _last(place)
    digest, before = "", _Files()
    with suppress(OSError, SealError, ValueError):
        known = last.read_text("ascii")
        _, before = _load(known)
        digest = known
    present = dict(_walk(place))
    if digest and present == {name: stamp for name, (stamp, _) in before.items()}:
        return digest
    files = {name: (stamp, _entry(place.path, name, stamp, before)) for name, stamp in present.items()}
    value = {"place": astuple(place), "files": files}
    data = json.dumps(value, separators=(",", ":")).encode("ascii")
    digest = sha256(data).hexdigest()
    write(_records() / digest, data)
    write(last, digest.encode("ascii"))
    return digest


def _entry(path: str, name: str, stamp: Stamp, before: _Files) -> Entry:
    """Return the entry of a file; bytecode and large files have no digest, and their stamp says all."""
    if is_bytecode(name):
        return Entry(_BYTECODE, "")
    if stat.S_ISREG(stamp.mode) and stamp.size > _LARGE_BYTES:
        return Entry(FILE, "")
    known = before.get(name)
    if known is not None and known[0] == stamp and known[1].sha256:
        return known[1]
    return read_entry(*_split(path, name))[0]


def _split(path: str, name: str) -> tuple[Path, str]:
    """Return folder and name of a file of a place; a place that is a file itself has the empty name in its record."""
    return (Path(path), name) if name else (Path(os.path.dirname(path)), os.path.basename(path))


def is_bytecode(name: str) -> bool:
    """Return whether a path is that of a file in which Python keeps compiled code."""
    return name.endswith(".pyc") and f"/{name}".endswith(f"/__pycache__/{name.rpartition('/')[2]}")


def is_known(place: Place) -> bool:
    """Return whether a place was recorded before, so that only what differs is read."""
    return _last(place).exists()


def _last(place: Place) -> Path:
    return _records() / "last" / sha256(os.fsencode(repr(place))).hexdigest()


def left_out(digest: str) -> list[str]:
    """Return the folders of a recorded place that are not part of it, absolute."""
    place, _ = _load(digest)
    scratch = sorted(SCRATCH) if place.path.endswith("/node_modules") else ()
    return [f"{place.path}/{name}" for name in (*place.but, *scratch)]


def path_of(digest: str) -> str:
    """Return the path of the place that a record is of."""
    return _load(digest)[0].path


def links(digest: str) -> list[str]:
    """Return the symbolic links of a record, absolute."""
    place, files = _load(digest)
    return [f"{place.path}/{name}" for name, (_, entry) in files.items() if entry.mode == LINK]


@lru_cache(maxsize=256)
def contents(digest: str) -> str:
    """Return a digest of what a record says without its stamps: equal folders have equal ones, wherever they lie."""
    found = sha256()
    for name, (stamp, entry) in sorted(_load(digest)[1].items()):
        if entry.mode != _BYTECODE:
            what = entry.sha256 or f"{stamp.size} {stamp.mtime_ns}"
            found.update(f"{name}\0{entry.mode} {what}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def changed(records: Records) -> Iterator[tuple[str, Change]]:
    """Yield the files of kept places that are not what they were, absolute, each with what became of it.

    `SEAL102` is raised where a place cannot be listed, `SEAL110` where the record was changed.
    """
    for path, digest in records.items():
        place, files = _load(digest)
        present = dict(_walk(place))
        differing = [name for name, stamp in present.items() if stamp != files.get(name, _NONE)[0]]
        for name in sorted({*differing, *(files.keys() - present.keys())}):
            whole = f"{path}/{name}" if name else path
            if is_bytecode(name):
                yield whole, "bytecode"
            elif name not in present:
                yield whole, "removed"
            elif name not in files:
                yield whole, "added"
            elif not files[name][1].sha256 or not is_entry(*_split(path, name), files[name][1]):
                yield whole, "changed"


def leads_back(records: Records, top: Path) -> Iterator[str]:
    """Yield the links and path files of kept folders that lead back into the checkout.

    Where the export cannot be mounted at the checkout's own path, code is found through them that is not the export's.
    """
    inside = f"{top}/"
    for folder, digest in records.items():
        for name, (_, entry) in _load(digest)[1].items():
            path, target = f"{folder}/{name}", ""
            if entry.mode == LINK:
                target = os.path.realpath(path)
            elif name.endswith((".pth", ".egg-link")) or "__editable__" in name:
                with suppress(OSError):
                    target = inside if os.fsencode(top) in Path(path).read_bytes() else ""
            if f"{target}/".startswith(inside) and not any(f"{target}/".startswith(f"{row}/") for row in records):
                yield path


def _walk(place: Place) -> Iterator[tuple[str, Stamp]]:
    """Yield every file and link of a place, relative to it, with its stamp."""
    folder = place.path
    but = {f"{folder}/{name}" for name in place.but}
    if folder.endswith("/node_modules"):
        but |= {f"{folder}/{name}" for name in SCRATCH}
    pending, cut = [folder], len(folder) + 1
    try:
        status = os.stat(folder)
        if not stat.S_ISDIR(status.st_mode):
            yield "", stamp_of(status)
            return
    except OSError as error:
        raise _unlisted(folder, error) from error
    while pending:
        at = pending.pop()
        try:
            with os.scandir(at) as entries:
                for item in entries:
                    if item.is_dir(follow_symlinks=False):
                        if place.deep and item.path not in but:
                            pending.append(item.path)
                    else:
                        yield item.path[cut:], stamp_of(item.stat(follow_symlinks=False))
        except OSError as error:
            raise _unlisted(at, error) from error


def _unlisted(path: str, error: OSError) -> SealError:
    message = f"The kept place {path} cannot be listed: {error.strerror}."
    return SealError("SEAL102", message, "Put it back, make it readable, or take it out of `keep`.")


def _records() -> Path:
    """Return where records are kept: several checkouts share the packages of one Python."""
    return state_folder() / "kept"


@lru_cache(maxsize=256)
def _load(digest: str) -> tuple[Place, _Files]:
    """Return what was recorded, and refuse a record that was changed."""
    read: dict[str, Any] = json.loads(verified(_records() / digest, digest))
    where, but, deep = read["place"]
    files = {name: (Stamp(*stamp), Entry(*entry)) for name, (stamp, entry) in read["files"].items()}
    return Place(where, tuple(but), deep), files
