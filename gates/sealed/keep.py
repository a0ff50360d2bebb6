"""Kept folders: dependencies that no listing has, because they are ignored or lie outside of the checkout.

What was there when the run began is recorded, each file with its stamp and SHA-256. Later only the stamps are compared,
and the contents of files whose stamp differs. Bytecode is passed over: a sealed gate never reads that of a kept folder.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from interlock.gates.sealed.base import LINK, Entry, entry_of, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.listing import Listing, Stamp, stamp_of
from interlock.gates.sealed.store import Store, damaged, write

SCRATCH: Final = frozenset({".cache", ".vite", ".vite-temp", ".vitest"})
"""Folders directly below `node_modules` that tools write in; empty for a sealed gate, and its own."""

_PASSED_OVER: Final = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class Kept:
    """What the kept folders held when the run began.

    Args:
        folders: The folders, absolute.
        files: Absolute path to stamp and entry.
        digest: `sha256:…` of this record; empty where nothing is kept.
    """

    folders: tuple[str, ...] = ()
    files: Mapping[str, tuple[Stamp, Entry]] | None = None
    digest: str = ""


def kept_folders(top: Path, listing: Listing, names: Iterable[str]) -> tuple[str, ...]:
    """Return the ignored folders that `keep` names, absolute: by path from the top, or by name at any depth."""
    wanted = set(names)
    return tuple(
        f"{top}/{path}"
        for path in sorted(listing.ignored)
        if path in wanted or path.rpartition("/")[2] in {name for name in wanted if "/" not in name}
    )


def record(store: Store, folders: Iterable[str]) -> Kept:
    """Record what folders hold now.

    Raises:
        SealError: `SEAL102` a file cannot be read, `SEAL112` the store cannot be written.
    """
    given = tuple(dict.fromkeys(folders))
    if not given:
        return Kept()
    before = _last(store)
    files = {
        path: (stamp, entry_of(Path("/"), path[1:], stamp, {path[1:]: before[path]} if path in before else {}))
        for folder in given
        for path, stamp in _walk(folder)
    }
    data = json.dumps({"folders": given, "files": files}, separators=(",", ":"), sort_keys=True).encode("ascii")
    digest = sha256(data).hexdigest()
    write(store.folder / "kept" / digest, data)
    write(store.folder / "kept" / "last", digest.encode("ascii"))
    return Kept(given, files, f"sha256:{digest}")


def load(store: Store, digest: str) -> Kept:
    """Read back what was recorded.

    Raises:
        SealError: `SEAL110` it is not in the store, or is not what was recorded.
    """
    return _loaded(os.fspath(store.folder), digest) if digest else Kept()


def changed(kept: Kept) -> Iterator[str]:
    """Yield the files of kept folders that are not what they were, each with what became of it."""
    files = kept.files or {}
    present = dict(item for folder in kept.folders for item in _walk(folder))
    for path in sorted(files.keys() | present.keys()):
        if path not in present:
            yield f"{path} was removed"
        elif path not in files:
            yield f"{path} was added"
        elif present[path] != files[path][0]:
            with suppress(SealError):
                if read_entry(Path("/"), path[1:])[0] == files[path][1]:
                    continue
            yield f"{path} was changed"


def leads_back(kept: Kept, top: Path) -> Iterator[str]:
    """Yield the links and path files of kept folders that lead back into the checkout.

    Where the export cannot be mounted at the checkout's own path, code is found through them that is not the export's.
    """
    inside = f"{top}/"
    for path, (_, entry) in (kept.files or {}).items():
        target = ""
        if entry.mode == LINK:
            target = os.path.realpath(path)
        elif path.endswith((".pth", ".egg-link")) or "__editable__" in path:
            with suppress(OSError):
                text = Path(path).read_bytes().decode("utf-8", "replace")
                target = inside if os.fspath(top) in text else ""
        if f"{target}/".startswith(inside) and not any(f"{target}/".startswith(f"{row}/") for row in kept.folders):
            yield path


def _walk(folder: str) -> Iterator[tuple[str, Stamp]]:
    """Yield every file and link of a kept folder with its stamp."""
    pending = [folder]
    while pending:
        at = pending.pop()
        try:
            with os.scandir(at) as entries:
                for item in entries:
                    if item.is_dir(follow_symlinks=False):
                        scratch = item.name in SCRATCH and at.endswith("/node_modules")
                        if item.name not in _PASSED_OVER and not scratch:
                            pending.append(item.path)
                    elif item.is_file(follow_symlinks=False) or item.is_symlink():
                        yield item.path, stamp_of(item.stat(follow_symlinks=False))
        except OSError as error:
            message = f"The kept folder {at} cannot be listed: {error.strerror}."
            raise SealError("SEAL102", message, "Make it readable, or take it out of `keep`.") from error


def _last(store: Store) -> Mapping[str, tuple[Stamp, Entry]]:
    """Return the last record of this checkout, so that unchanged files are not read again."""
    with suppress(OSError, SealError, ValueError):
        digest = (store.folder / "kept" / "last").read_text("ascii")
        return load(store, f"sha256:{digest}").files or {}
    return {}


@lru_cache(maxsize=2)
def _loaded(folder: str, digest: str) -> Kept:
    path = Path(folder) / "kept" / digest.removeprefix("sha256:")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged(path, error.strerror or "unknown") from error
    if f"sha256:{sha256(data).hexdigest()}" != digest:
        raise damaged(path, "its content is not the one that was stored")
    read: dict[str, Any] = json.loads(data)
    files = {name: (Stamp(*stamp), Entry(*entry)) for name, (stamp, entry) in read["files"].items()}
    return Kept(tuple(read["folders"]), files, digest)
