"""Records of dependencies: what a folder held when a person last accepted it, and what differs now.

Answers T2: an agent can write into `.venv` and `node_modules`, which git does not see. What was there at first is
accepted; from then on what differs is a question to a person, from one run or gate to the next (`interlock trust`).

A record has the stamp and the SHA-256 of each file. Only stamps are compared, and contents where these differ: a
program cannot set the time of change (`ctime`). `__pycache__` is no part of it, since Python writes there whenever it
likes; no gate reads it. Neither are the folders in `node_modules` in which tools keep caches.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeAlias

from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.sandbox import is_below
from interlock.gates.sealed.store import write

SCRATCH: Final = (".cache", ".vite", ".vite-temp", ".vitest")
"""Folders directly in `node_modules` that tools write in: empty and writable in a gate, and no part of a record."""

_BYTECODE: Final = "__pycache__"
_NAMED: Final = 5

_name: Final = attrgetter("name")

Row: TypeAlias = tuple[int, int, int, int, int, str]
"""Mode, size, times of modification and change in nanoseconds, inode, and SHA-256 (of a link: its text)."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a place holds: path relative to it (empty for a place that is a file) to its row."""

    place: str
    files: Mapping[str, Row]

    @property
    def contents(self) -> str:
        """A digest of modes and contents, which a run keeps."""
        rows = [(name, _content(row)) for name, row in self.files.items()]
        return sha256(repr(rows).encode("utf-8", "surrogateescape")).hexdigest()


def unchanged(folder: Path, place: str, hidden: Sequence[str]) -> str:
    """Return the digest of the accepted contents of a place if no file of it was touched since; else nothing.

    This is what nearly every gate needs, and it reads no file of the place.
    """
    try:
        known, _, contents = _path(folder, place, hidden).with_suffix(".stamps").read_text("ascii").partition(" ")
    except OSError:
        return ""
    return contents if known == _stamps(_walk(place, hidden)) else ""


def look(place: str, hidden: Sequence[str], known: Record | None) -> Record:
    """Record what a place holds now; what a known record has with the same stamp is not read again.

    Raises:
        SealError: `SEAL102` a file cannot be read.
    """
    files: dict[str, Row] = {}
    for name, status in _walk(place, hidden):
        stamp = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        before = known.files.get(name) if known else None
        same = before is not None and tuple(before[:5]) == stamp
        files[name] = (*stamp, before[5] if before is not None and same else _digest(f"{place}/{name}", status))
    return Record(place, files)


def differing(before: Record, now: Record) -> list[str]:
    """Return the files whose mode or content differs."""
    names = before.files.keys() | now.files.keys()
    return sorted(name for name in names if _content(before.files.get(name)) != _content(now.files.get(name)))


def accepted(folder: Path, place: str, hidden: Sequence[str] = ()) -> Record | None:
    """Return the record of a place that was accepted last; None where there is none that can be read.

    A place of which something is `hidden` has another one than the same place as a whole.
    """
    try:
        read = json.loads(_path(folder, place, hidden).read_bytes())
        return Record(read["place"], {name: tuple(row) for name, row in read["files"].items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def accept(folder: Path, record: Record, hidden: Sequence[str] = ()) -> None:
    """Store a record as the accepted one."""
    path = _path(folder, record.place, hidden)
    write(path, json.dumps({"place": record.place, "files": record.files}, separators=(",", ":")).encode("ascii"))
    rows = hashed(f"{name}\0{' '.join(map(str, row[:5]))}" for name, row in record.files.items())
    write(path.with_suffix(".stamps"), f"{rows} {record.contents}".encode("ascii"))


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


def name_of(place: str, hidden: Sequence[str]) -> str:
    """Return the name of a record."""
    return "\n".join((place, *sorted(each for each in hidden if is_below(each, (place,)))))


def _path(folder: Path, place: str, hidden: Sequence[str]) -> Path:
    return folder / "kept" / f"{sha256(os.fsencode(name_of(place, hidden))).hexdigest()[:32]}.json"


def _content(row: Row | None) -> tuple[int, str] | None:
    return None if row is None else (row[0], row[5])


def _digest(path: str, status: os.stat_result) -> str:
    path = path.rstrip("/")
    try:
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)
        if not stat.S_ISREG(status.st_mode):
            return ""
        with open(path, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        why = error.strerror or "unknown"
        fix = "Make it readable, or let nothing change it meanwhile."
        raise SealError("SEAL102", f"{path} cannot be recorded: {why}.", fix) from error


def hashed(lines: Iterable[str]) -> str:
    """Return one digest of some lines."""
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _stamps(rows: Iterable[tuple[str, os.stat_result]]) -> str:
    return hashed(
        f"{name}\0{each.st_mode} {each.st_size} {each.st_mtime_ns} {each.st_ctime_ns} {each.st_ino}"
        for name, each in rows
    )


def _walk(place: str, hidden: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each file and link of a place, by path relative to it, with its status; hidden folders are left out."""
    try:
        if not os.path.isdir(place) or os.path.islink(place):
            yield "", os.lstat(place)
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
                    yield f"{folder}{name}", entry.stat(follow_symlinks=False)
                elif not hidden or f"{place}/{folder}{name}" not in hidden:
                    waiting.append(f"{folder}{name}/")
    except OSError as error:
        fix = "Make it readable, or let nothing change it meanwhile."
        raise SealError("SEAL102", f"{place} cannot be recorded: {error.strerror}.", fix) from error
