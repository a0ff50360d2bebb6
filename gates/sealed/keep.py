"""Kept folders: dependencies that no listing has, because they are ignored or lie outside of the checkout.

What was there when the run began is recorded, each file with its stamp and SHA-256. Later only the stamps are compared,
and the contents of files whose stamp differs. Bytecode is passed over: a sealed gate never reads that of a kept folder.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from interlock.gates.sealed.base import LINK, Entry, entry_of, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.listing import Listing, Stamp, stamp_of
from interlock.gates.sealed.store import damaged, state_folder, write

SCRATCH: Final = frozenset({".cache", ".vite", ".vite-temp", ".vitest"})
"""Folders directly below `node_modules` that tools write in; empty for a sealed gate, and its own."""

_PASSED_OVER: Final = frozenset({"__pycache__"})
_NONE: Final = (None, None)


Records: TypeAlias = Mapping[str, str]
"""Each kept folder, absolute, to the digest of the record of what it held when the run began."""

Change: TypeAlias = Literal["added", "removed", "changed"]

_Files: TypeAlias = dict[str, tuple[Stamp, Entry]]


def kept_folders(top: Path, root: str, listing: Listing, names: Iterable[str]) -> tuple[str, ...]:
    """Return the ignored folders that `keep` names, absolute.

    Args:
        top: The checkout.
        root: The project's root, relative to it.
        listing: Its files and ignored folders.
        names: By name at any depth, or by path from the root or from the top; such a folder may lie in an ignored one.
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


def record(folder: str, *, deep: bool = True) -> str:
    """Record what a folder holds now and return the digest of the record.

    Args:
        folder: The folder, absolute.
        deep: Whether the folders in it belong to it; else its files alone do.

    Raises:
        SealError: `SEAL102` a file cannot be read, `SEAL112` the store cannot be written.
    """
    last = _place() / "last" / sha256(os.fsencode(folder)).hexdigest()
    digest, before = "", _Files()
    with suppress(OSError, SealError, ValueError):
        known = last.read_text("ascii")
        before = _load(known)
        digest = known
    present = dict(_walk(folder, deep=deep))
    if (
        digest
        and len(before) == len(present)
        and all(row == before.get(name, _NONE)[0] for name, row in present.items())
    ):
        return digest
    files = {name: (stamp, entry_of(Path(folder), name, stamp, before)) for name, stamp in present.items()}
    data = json.dumps(files, separators=(",", ":")).encode("ascii")
    digest = sha256(data).hexdigest()
    write(_place() / digest, data)
    write(last, digest.encode("ascii"))
    return digest


@lru_cache(maxsize=8)
def contents(digest: str) -> str:
    """Return a digest of what a record says without its stamps: equal folders have equal ones, wherever they lie.

    Raises:
        SealError: `SEAL110` the record was changed.
    """
    found = sha256()
    for name, (_, entry) in sorted(_load(digest).items()):
        found.update(f"{name}\0{entry.mode} {entry.sha256}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def changed(records: Records, *, deep: bool = True) -> Iterator[tuple[str, Change]]:
    """Yield the files of kept folders that are not what they were, absolute, each with what became of it.

    Raises:
        SealError: `SEAL102` a folder cannot be listed, `SEAL110` the record was changed.
    """
    for folder, digest in records.items():
        files, present = _load(digest), dict(_walk(folder, deep=deep))
        differing = [name for name, stamp in present.items() if stamp != files.get(name, _NONE)[0]]
        for name in sorted({*differing, *(files.keys() - present.keys())}):
            if name not in present:
                yield f"{folder}/{name}", "removed"
            elif name not in files:
                yield f"{folder}/{name}", "added"
            elif not _is(folder, name, files[name][1]):
                yield f"{folder}/{name}", "changed"


def _is(folder: str, name: str, entry: Entry) -> bool:
    with suppress(SealError):
        return read_entry(Path(folder), name)[0] == entry
    return False


def leads_back(records: Records, top: Path) -> Iterator[str]:
    """Yield the links and path files of kept folders that lead back into the checkout.

    Where the export cannot be mounted at the checkout's own path, code is found through them that is not the export's.
    """
    inside = f"{top}/"
    for folder, digest in records.items():
        for name, (_, entry) in _load(digest).items():
            path, target = f"{folder}/{name}", ""
            if entry.mode == LINK:
                target = os.path.realpath(path)
            elif name.endswith((".pth", ".egg-link")) or "__editable__" in name:
                with suppress(OSError):
                    target = inside if os.fsencode(top) in Path(path).read_bytes() else ""
            if f"{target}/".startswith(inside) and not any(f"{target}/".startswith(f"{row}/") for row in records):
                yield path


def _walk(folder: str, *, deep: bool) -> Iterator[tuple[str, Stamp]]:
    """Yield every file and link of a kept folder, relative to it, with its stamp."""
    pending, cut = [folder], len(folder) + 1
    while pending:
        at = pending.pop()
        try:
            with os.scandir(at) as entries:
                for item in entries:
                    if item.is_dir(follow_symlinks=False):
                        scratch = item.name in SCRATCH and at.endswith("/node_modules")
                        if deep and item.name not in _PASSED_OVER and not scratch:
                            pending.append(item.path)
                    else:
                        yield item.path[cut:], stamp_of(item.stat(follow_symlinks=False))
        except OSError as error:
            message = f"The kept folder {at} cannot be listed: {error.strerror}."
            raise SealError("SEAL102", message, "Make it readable, or take it out of `keep`.") from error


def _place() -> Path:
    """Return where records are kept: several checkouts share the packages of one Python."""
    return state_folder() / "kept"


@lru_cache(maxsize=8)
def _load(digest: str) -> _Files:
    path = _place() / digest
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged(path, error.strerror or "unknown") from error
    if sha256(data).hexdigest() != digest:
        raise damaged(path, "its content is not the one that was stored")
    read: dict[str, Any] = json.loads(data)
    return {name: (Stamp(*stamp), Entry(*entry)) for name, (stamp, entry) in read.items()}
