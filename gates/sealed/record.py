"""Records of dependencies: what a folder held when a person last accepted it, and what differs now.

Answers T2: an agent can write into `.venv` and `node_modules`, which git does not see. What was there at first is
accepted; from then on what differs is a question to a person, from one run or gate to the next (`interlock trust`).

A record has the stamp and the SHA-256 of each file. Only stamps are compared, and contents where these differ: a
program cannot set the time of change (`ctime`). `__pycache__` is no part of it, since Python writes there whenever it
likes; no gate reads it. Neither are the folders in `node_modules` in which tools keep caches.

    <state>/interlock/<project>/kept/<key>.json   the rows of a place, or the places that a gate was judged with
    <state>/interlock/<project>/kept/<key>.held   what they come to
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeAlias

from interlock.gates.sealed.environment import Packages, packages
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.store import write

SCRATCH: Final = (".cache", ".vite", ".vite-temp", ".vitest")
"""Folders directly in `node_modules` that tools write in: empty and writable in a gate, and no part of a record."""

_BYTECODE: Final = "__pycache__"
_NAMED: Final = 5

_name: Final = attrgetter("name")
_stamp: Final = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")

Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Mode, size, times of modification and change in nanoseconds, inode."""
Row: TypeAlias = tuple[int, int, int, int, int, str]
"""A stamp, and SHA-256 (of a link: its text)."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a place holds, as it was accepted.

    Args:
        stamps: A digest of names and stamps, by which it is known again without being read.
        contents: A digest of names, modes and contents, which a run keeps.
        packages: What environments in it hold.
    """

    stamps: str
    contents: str
    packages: Packages


def held(
    folder: Path, place: str, hidden: Sequence[str], *, trust: bool = False, note: Callable[[str], object] = len
) -> Held:
    """Return what a place holds, where that is what was accepted of it; the first time it is.

    Args:
        folder: That of the store.
        place: A folder or a file.
        hidden: Folders in it that are not seen, and no part of the record.
        trust: Accept it as it is.
        note: Takes what is done, since it may take a while.

    Raises:
        SealError: `SEAL201` it differs, which is a question to a person; `SEAL102` a file cannot be read.
    """
    name = name_of(place, hidden)
    path = _path(folder, name).with_suffix(".held")
    stamps = _hashed(f"{file}\0{stamp}" for file, stamp in _walk(place, hidden))
    with suppress(OSError, ValueError, KeyError, TypeError):
        read = json.loads(path.read_bytes())
        if read["stamps"] == stamps:
            return Held(stamps, read["contents"], Packages(**read["packages"]))
    known = accepted(folder, name)
    if known is None:
        note(f"recording {place}, the first time")
    read_before = {(file, *row[:5]): row[5] for file, row in (known or {}).items()}
    rows: dict[str, Row] = {}
    for file, stamp in _walk(place, hidden):
        rows[file] = (*stamp, read_before.get((file, *stamp)) or _digest(f"{place}/{file}", stamp[0]))
    accept(folder, name, rows, trust=trust)
    stamps = _hashed(f"{file}\0{row[:5]}" for file, row in rows.items())
    contents = _hashed(f"{file}\0{_content(row)}" for file, row in rows.items())
    found = Held(stamps, contents, packages(place, rows))
    write(path, json.dumps(asdict(found)).encode())
    return found


def accepted(folder: Path, name: str) -> dict[str, Row] | None:
    """Return the rows that were accepted last under a name; None where there are none that can be read."""
    try:
        read: dict[str, list[int | str]] = json.loads(_path(folder, name).read_bytes())
        return {file: tuple(row) for file, row in read.items()}  # pyright: ignore[reportReturnType]
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def accept(folder: Path, name: str, rows: Mapping[str, Row], *, trust: bool) -> None:
    """Store rows as the accepted ones, or ask a person where other ones are."""
    known = accepted(folder, name)
    if known is not None and not trust:
        names = (file for file in known.keys() | rows.keys() if _content(known.get(file)) != _content(rows.get(file)))
        if differing := sorted(names):
            raise question(name.partition("\n")[0], differing)
    write(_path(folder, name), json.dumps(rows, separators=(",", ":")).encode("ascii"))


def question(place: str, names: Sequence[str] = ()) -> SealError:
    """Return the question to a person about dependencies that are not as they were accepted; no names: a new place."""
    shown = ", ".join(os.path.join(place, name).rstrip("/") for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    number = "1 file" if len(names) == 1 else f"{len(names)} files"
    what = f"{number} of {place} differ: {shown}{more}" if names else f"{place} was not there, and is found now"
    return SealError(
        "SEAL201", f"Dependencies are not as they were accepted: {what}.",
        "If that was you: `interlock trust`. If not, remove what is new or install anew what differs, and then "
        "`interlock trust`.",
    )  # fmt: skip


def name_of(place: str, hidden: Iterable[str]) -> str:
    """Return the name of the record of a place, of which something may be hidden."""
    return "\n".join((place, *sorted(hidden)))


def _path(folder: Path, name: str) -> Path:
    return folder / "kept" / f"{sha256(os.fsencode(name)).hexdigest()[:32]}.json"


def _content(row: Row | None) -> tuple[int, str] | None:
    return None if row is None else (row[0], row[5])


def _digest(path: str, mode: int) -> str:
    path = path.rstrip("/")
    try:
        if stat.S_ISLNK(mode):
            return os.readlink(path)
        if not stat.S_ISREG(mode):
            return ""
        with open(path, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> SealError:
    fix = "Make it readable, or let nothing change it meanwhile."
    return SealError("SEAL102", f"{path} cannot be recorded: {error.strerror}.", fix)


def _hashed(lines: Iterable[str]) -> str:
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _walk(place: str, hidden: Sequence[str]) -> Iterator[tuple[str, Stamp]]:
    """Yield each file and link of a place, by path relative to it, with its stamp; hidden folders are left out."""
    try:
        if not os.path.isdir(place) or os.path.islink(place):
            yield "", _stamp(os.lstat(place))
            return
        waiting, scratch = [""], SCRATCH if place.endswith("/node_modules") else ()
        while waiting:
            folder = waiting.pop()
            with os.scandir(f"{place}/{folder}") as listing:
                entries = sorted(listing, key=_name)
            for entry in entries:
                name = entry.name
                if name == _BYTECODE or (not folder and name in scratch):
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    yield f"{folder}{name}", _stamp(entry.stat(follow_symlinks=False))
                elif f"{place}/{folder}{name}" not in hidden:
                    waiting.append(f"{folder}{name}/")
    except OSError as error:
        raise _unreadable(place, error) from error
