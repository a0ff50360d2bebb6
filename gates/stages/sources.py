"""Reading the files that locators point at, following no link; and preparing them for the search of snippets."""

import errno
import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Final

from interlock.core.files import read_beneath
from interlock.core.finding import Finding, FindingError
from interlock.gates.stages.rules import issue, shown
from interlock.gates.tree import left_out
from interlock.reservations import is_ticket_file

MAX_SOURCE_BYTES: Final = 32 * 1024 * 1024
"""How much is read for one payload."""

_LOCATOR: Final = re.compile(r"(?P<path>[^\n]+?):(?P<start>[0-9]{1,9})(?:-(?P<end>[0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class Locator:
    """Where a snippet should be: a path relative to the root, its first line from 1, and its last if it was named."""

    path: str
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Source:
    """One text file, prepared for searching: its lines without line ends and trailing blanks, as cited.

    `bare` has the same lines without blanks at their edges, each between two line ends; `starts` says where each
    begins in it, and at last where another one would.
    """

    path: str
    lines: tuple[str, ...]
    bare: str = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)

    def line_at(self, offset: int) -> int:
        """Return the number of the line, counted from 1, that holds an offset of `bare`."""
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


class Sources:
    """The files below a root, which may be a link, each read once for one payload.

    `refused` returns whether a path is no source of the run. Where it `hides`, nothing else is said of such a path.
    """

    def __init__(
        self, root: Path, refused: Callable[[str], bool] = lambda _path: False, *, hides: bool = False
    ) -> None:
        self.root = root
        self._is_refused = refused
        self._hides = hides
        self._read: dict[str, Source | Finding] = {}
        self._left_bytes = MAX_SOURCE_BYTES

    def read(self, path: str, place: str) -> Source | Finding:
        """Return a file, or why it is refused, at the field of the locator."""
        if path not in self._read:
            try:
                self._read[path] = self._opened(path)
            except FindingError as refusal:
                self._read[path] = refusal.finding
        found = self._read[path]
        return found if isinstance(found, Source) else found._replace(field=place)

    def _opened(self, path: str) -> Source:
        if not _is_plain(self.root, path):
            raise _refused(path, "is no plain path of a file of the project", shown(path))
        if self._hides:
            self._check_source(path)
        try:
            data = read_beneath(self.root, path, self._left_bytes)
        except (OSError, ValueError) as error:
            raise _not_read(path, error) from error
        if not self._hides:
            self._check_source(path)
        self._left_bytes -= len(data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _refused(path, "is no text in UTF-8", f"byte {data[error.start]:#04x}") from error
        return prepare(path, text)

    def _check_source(self, path: str) -> None:
        if self._is_refused(path):
            raise _refused(path, "is no source of this run", "an ignored file, or one of no target")


def prepare(path: str, text: str) -> Source:
    """Prepare a text for searching."""
    lines = [line.rstrip() for line in _plain(text).split("\n")]
    if not lines[-1]:
        lines.pop()
    bare = [line.strip() for line in lines]
    starts = accumulate((len(line) + 1 for line in bare), initial=1)
    return Source(path, tuple(lines), "".join(f"\n{line}" for line in bare) + "\n", tuple(starts))


def bare_lines(text: str) -> list[str]:
    """Split a text at its line ends, whichever they are, and take the blanks off both edges of each line."""
    return [line.strip() for line in _plain(text).split("\n")]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_plain(root: Path, path: str) -> bool:
    """Return whether a path stays in the project, has this one spelling, and is no record, nor the ticket itself."""
    folded = [step.casefold() for step in path.split("/")]
    if posixpath.normpath(path) != path or path != path.strip() or "\\" in path or folded[0] in {"", ".", "..", "~"}:
        return False
    if folded == ["tickets", "ticket.json"] or is_ticket_file(root, path):
        return False
    return not (left_out(path) or ".git" in folded or folded[0] == ".interlock")


def _not_read(path: str, error: OSError | ValueError) -> FindingError:
    """Make the refusal of a file that is not there, is none, or lies behind a link."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    match error.errno if isinstance(error, OSError) else None:
        case errno.ENOENT:
            return _refused(path, "does not exist", "no such file")
        case errno.ELOOP:
            return _refused(path, "leads over a symbolic link", reason)
        case errno.EFBIG:
            return _refused(path, "is too large, by itself or with the others", reason)
        case _:
            return _refused(path, "cannot be read", reason)


def _refused(path: str, what: str, found: str) -> FindingError:
    return FindingError(issue("STG304", "", f"The file {shown(path)} {what}.", found))
