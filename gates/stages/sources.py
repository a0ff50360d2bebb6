"""Reading the files that locators point at: by file descriptor, step by step, without following a link."""

import hashlib
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding, FindingError
from interlock.core.text import closest
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.tree import left_out
from interlock.reservations import is_ticket_file

MAX_FILE_BYTES: Final = 2 * 1024 * 1024
"""A larger file is not read."""

MAX_TOTAL_BYTES: Final = 32 * 1024 * 1024
"""How much is read for one payload."""

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK_BYTES: Final = 1024 * 1024
_MAX_NAMES: Final = 2000
_LOCATOR: Final = re.compile(r"(?P<path>[^\n]+?):(?P<start>[0-9]{1,9})(?:-(?P<end>[0-9]{1,9}))?")
_NEARLY: Final = re.compile(
    r"(?:repo:)?(?P<path>[^\n]+?)(?:#|:|,? lines? )L?(?P<start>[0-9]{1,9})"
    r"(?:(?P<sep>-|\u2013|:|,|\.\.| to )L?(?P<end>[0-9]{1,9}))?"
)


@dataclass(frozen=True, slots=True)
class Locator:
    """Where a snippet should be: a path relative to the root, its first line from 1, and its last if it was named."""

    path: str
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Source:
    """One text file, prepared for searching: its lines without line ends and trailing blanks, as cited.

    `flat` has the same lines without indentation, joined by line ends, and `starts` where each begins in it; the digest
    is in hexadecimal digits, empty for a text that is of no file.
    """

    path: str
    lines: tuple[str, ...]
    flat: str = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    sha256: str = ""

    def line_at(self, offset: int) -> int:
        """Return the number of the line, counted from 1, that holds an offset of `flat`."""
        return bisect_right(self.starts, offset)


def parse_locator(text: str) -> Locator | None:
    """Read `path:line` or `path:start-end`; None for anything else, also for lines that run backwards."""
    found = _LOCATOR.fullmatch(text)
    if found is None or re.search(r":[0-9]+$", found["path"]):
        return None
    start, end = int(found["start"]), int(found["end"] or found["start"])
    return Locator(found["path"], start, end if found["end"] else None) if 1 <= start <= end else None


def line_range(path: str, first: int, last: int) -> str:
    """Return the locator of some lines."""
    return f"{path}:{first}" if first == last else f"{path}:{first}-{last}"


def locator_issue(text: str, place: str) -> Finding:
    """Return the finding of a locator that `parse_locator` does not read, with the one that was probably meant."""
    fix = ""
    if found := _NEARLY.fullmatch(text.strip()):
        start, end = int(found["start"]), int(found["end"] or found["start"])
        if found["sep"] == ":":
            end = start
        first, last = max(1, min(start, end)), max(1, start, end)
        fix = f"Write {copied(line_range(found['path'], first, last))}."
    expected = 'path:line or path:start-end, counted from 1, such as "src/login.py:12-18"'
    fix = fix or 'Write the path, a colon and the lines, such as "src/login.py:12-18".'
    return issue("STG302", place, f"`{place}` names no lines of a file.", shown(text), expected, fix)


class Sources:
    """The files below a root, which may be a link, each read once for one payload.

    `refused` returns whether a path is no source; where it is `quiet`, a refusal names no other file.
    """

    def __init__(
        self, root: Path, refused: Callable[[str], bool] = lambda _path: False, *, quiet: bool = False
    ) -> None:
        self.root = root
        self._is_refused = refused
        self._quiet = quiet
        self._read: dict[str, Source | Finding] = {}
        self._left_bytes = MAX_TOTAL_BYTES

    def read(self, path: str, place: str) -> Source | Finding:
        """Return a file, or why it is refused, at the field of the locator."""
        if path not in self._read:
            try:
                self._read[path] = self._opened(path, place)
            except FindingError as refusal:
                self._read[path] = refusal.finding
        found = self._read[path]
        return found if isinstance(found, Source) or found.field == place else found._replace(field=place)

    def _opened(self, path: str, place: str) -> Source:
        _check_spelling(self.root, path, place)
        if self._quiet:
            self._check_source(path, place)
        *folders, name = path.split("/")
        with ExitStack() as stack:
            try:
                at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise _unreadable(path, place, error) from error
            stack.callback(os.close, at)
            for step, flags in (*((folder, _FOLDER_FLAGS) for folder in folders), (name, _FILE_FLAGS)):
                try:
                    below = os.open(step, flags, dir_fd=at)
                except (OSError, ValueError) as error:
                    raise _not_opened(at, step, path, place, error, quiet=self._quiet) from error
                stack.callback(os.close, below)
                at = below
            if not self._quiet:
                self._check_source(path, place)
            try:
                data = self._bytes(at, path, place)
            except OSError as error:
                raise _unreadable(path, place, error) from error
        return replace(prepare(path, _decoded(data, path, place)), sha256=hashlib.sha256(data).hexdigest())

    def _check_source(self, path: str, place: str) -> None:
        if self._is_refused(path):
            found = "a file that git ignores, or that no target of the run covers" if self._quiet else "an ignored file"
            fix = "Cite a file that git does not ignore and that a `repo:` target of this run covers."
            raise _refused("STG312", path, place, "is no source of this run", found, fix)

    def _bytes(self, descriptor: int, path: str, place: str) -> bytes:
        """Read an open file, if it is one and not too large."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused("STG305", path, place, "is no regular file", "a folder or a device", "Cite a text file.")
        most = min(MAX_FILE_BYTES, self._left_bytes)
        data = b""
        while len(data) <= most and (chunk := os.read(descriptor, _CHUNK_BYTES)):
            data += chunk
        if len(data) > most:
            what = (
                "is too large" if most == MAX_FILE_BYTES else "is one too many: the cited files together are too large"
            )
            found = f"{max(status.st_size, len(data))} bytes"
            fix = f"Cite files of at most {MAX_FILE_BYTES} bytes, together at most {MAX_TOTAL_BYTES}."
            raise _refused("STG306", path, place, what, found, fix)
        self._left_bytes -= len(data)
        return data


def prepare(path: str, text: str) -> Source:
    """Prepare a text for searching."""
    lines = plain_lines(text)
    if lines and not lines[-1]:
        lines.pop()
    bare = [line.lstrip() for line in lines]
    starts = accumulate((len(line) + 1 for line in bare[:-1]), initial=0) if bare else ()
    return Source(path, tuple(lines), "\n".join(bare), tuple(starts))


def plain_lines(text: str) -> list[str]:
    """Split a text at its line ends, whichever they are, and take trailing blanks off each line."""
    return [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def _decoded(data: bytes, path: str, place: str) -> str:
    fix = "Cite a text file in UTF-8; for what is none, give the item another source_type."
    if b"\0" in data:
        raise _refused("STG305", path, place, "is binary", "a NUL byte", fix)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:#04x} at {error.start}"
        raise _refused("STG305", path, place, "is not UTF-8", found, fix) from error


def _check_spelling(root: Path, path: str, place: str) -> None:
    """Refuse a path that leaves the project, or has a second spelling."""
    steps = path.split("/")
    plain = "/".join(step for step in steps if step not in {"", "."}).strip()
    fix = "Write the path of a file below the project's root."
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        inside = os.path.relpath(path, root) if path.startswith("/") else ".."
        if not inside.startswith(".."):
            fix = f"Write it relative to the root: {copied(inside)}."
        raise _outside(path, place, "is absolute", fix)
    if path.startswith("repo:"):
        raise _outside(path, place, "begins with `repo:`", f"Write {copied(path[5:])} before the lines.")
    if "\\" in path:
        raise _outside(
            path, place, "holds a backslash", f"Write {copied(path.replace(chr(92), '/'))} before the lines."
        )
    if ".." in steps:
        raise _outside(path, place, "has a `..` step", fix)
    if plain != path:
        better = f"Write {copied(plain)} before the lines." if plain else fix
        raise _outside(path, place, "has an empty step, a `.` step or a blank at its edge", better)
    folded = [step.casefold() for step in steps]
    if folded == ["tickets", "ticket.json"] or is_ticket_file(root, path):
        fix = "Cite what the ticket is about; for its own text, give the item the source_type `ticket`."
        raise _outside(path, place, "is the ticket, which you write yourself", fix)
    if left_out(path) or ".git" in folded or folded[0] == ".interlock":
        raise _outside(path, place, "is written by Interlock, git or a tool", "Cite a file of the project itself.")


def _not_opened(at: int, step: str, path: str, place: str, error: OSError | ValueError, *, quiet: bool) -> FindingError:
    """Make the refusal that fits what is at one step."""
    try:
        mode = os.stat(step, dir_fd=at, follow_symlinks=False).st_mode
    except (FileNotFoundError, ValueError):
        near = "" if quiet else closest(step, _names(at))
        fix = f"Write {copied(near)} for {shown(step)}." if near else "Cite a file that exists below the root."
        return _refused("STG304", path, place, "does not exist", f"no entry {shown(step)}", fix)
    except OSError as reason:
        return _unreadable(path, place, reason)
    if stat.S_ISLNK(mode):
        return _outside(path, place, f"leads over the symbolic link {shown(step)}", "Cite the file by its own path.")
    if isinstance(error, OSError) and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return _refused("STG305", path, place, "is no regular file", "a device, pipe or socket", "Cite a text file.")
    if stat.S_ISREG(mode) and isinstance(error, NotADirectoryError):
        found = f"{shown(step)} is a file, not a folder"
        return _refused("STG304", path, place, "does not exist", found, f"Cite {shown(step)} itself, or another file.")
    return _unreadable(path, place, error)


def _names(folder: int) -> list[str]:
    """List an open folder, as far as it lets us."""
    with suppress(OSError):
        return [name for name in os.listdir(folder)[:_MAX_NAMES] if name.isprintable()]
    return []


def _outside(path: str, place: str, what: str, fix: str) -> FindingError:
    return _refused("STG303", path, place, what, shown(path), fix)


def _unreadable(path: str, place: str, error: OSError | ValueError) -> FindingError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    fix = "Make the file readable, or cite another one."
    return _refused("STG305", path, place, "cannot be read", reason, fix)


_EXPECTED: Final = {
    "STG303": "a path below the root: relative, without links, outside `.git`, `.interlock`, `artifacts` and caches",
    "STG304": "a file of the project",
    "STG305": "a readable text file in UTF-8",
    "STG312": "a file that git does not ignore and that a `repo:` target of this run covers",
    "STG306": f"at most {MAX_FILE_BYTES} bytes a file and {MAX_TOTAL_BYTES} bytes together",
}


def _refused(code: str, path: str, place: str, what: str, found: str, fix: str) -> FindingError:
    message = f"The file {shown(path)} {what}."
    return FindingError(issue(code, place, message, found, _EXPECTED[code], fix))
