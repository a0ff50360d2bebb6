"""The files of a task for an agent that reads: listed, searched and read, and never what is Interlock's or git's."""

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from interlock.agents.ask import RunnerError
from interlock.agents.confined import entries_confined, read_confined, split_path
from interlock.agents.file_refusals import (
    MAX_FILE_BYTES,
    Answer,
    answering,
    bad_argument,
    number_of,
    refusal,
    text_of,
    unusable,
)
from interlock.agents.truncation import cut, taken
from interlock.reservations.rules import shown

MAX_LINES: Final = 2000
MAX_LISTED: Final = 500
MAX_MATCHES: Final = 100
MAX_LINE_CHARS: Final = 300
MAX_SEARCHED_BYTES: Final = 64 * 1024 * 1024
MAX_WALKED: Final = 50_000
"""So many files and folders below a folder are looked at."""
MAX_DEPTH: Final = 64
"""So many folders within each other are looked at."""
MAX_TEXT_CHARS: Final = 500

PASSED_BY: Final = frozenset(
    ("node_modules", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
)
"""Folders of installed packages and caches: listed and searched only from inside."""

_NEVER: Final = frozenset({".interlock", "artifacts", "interlock.toml"})
_GIT: Final = ".git"
_SHORT: Final = re.compile(r"(?:git|interl|artifa)~\d", re.ASCII)
"""How Windows' file systems call them too, also where they are mounted elsewhere."""


class ReadableFiles:
    """What an agent may do with files that it reads. Every answer is JSON; what is refused is in its `errors`."""

    def __init__(self, root: str, readable: Callable[[str], bool]) -> None:
        self._root = os.path.realpath(root)
        self._readable = readable

    def list(self, folder: str = "") -> Answer:
        """Return the readable files below a folder, by name: `{files, more, errors}`.

        `more` is true when further files are there, or were not looked at.
        """
        with answering({"files": [], "more": False}) as answer:
            walk = _Walk(self._root, _start(folder))
            answer["files"], cut_off = taken(filter(self._readable, walk), MAX_LISTED)
            answer["more"] = cut_off or walk.cut_off
        return answer

    def search(self, text: str, folder: str = "") -> Answer:
        """Return the lines that hold a text, as it is written: `{matches: [{path, line, text}], more, errors}`."""
        with answering({"matches": [], "more": False}) as answer:
            if not 0 < len(text_of("text", text)) <= MAX_TEXT_CHARS or "\n" in text:
                raise bad_argument("text", text, f"1 to {MAX_TEXT_CHARS} characters of one line")
            walk = _Walk(self._root, _start(folder))
            answer["matches"], cut_off = taken(self._matches(walk, text), MAX_MATCHES)
            answer["more"] = cut_off or walk.cut_off
        return answer

    def read(self, path: str, first_line: int = 1, lines: int = MAX_LINES) -> Answer:
        """Return lines of a file: `{path, text, first_line, last_line, total_lines, more, errors}`.

        Of a line that does not fit an answer alone, the beginning is given, and `more` is true.
        """
        with answering({"path": shown(path)}) as answer:
            rows = self._text(self._allowed(path, self._readable), path).splitlines(keepends=True)
            first = number_of("first_line", first_line, 1, 10**9)
            wanted = rows[first - 1 : first - 1 + number_of("lines", lines, 1, MAX_LINES)]
            part, cut_off = taken(wanted, MAX_LINES)
            if wanted and not part:
                part = [cut(wanted[0])]
            last = first - 1 + len(part)
            answer |= {"text": "".join(part), "first_line": first, "last_line": last, "total_lines": len(rows)}
            answer["more"] = cut_off or last < len(rows)
        return answer

    # -- paths and contents ------------------------------------------------------------------------------------------

    def _allowed(self, path: object, scope: Callable[[str], bool]) -> str:
        """Return the path of a call when the agent may use it."""
        name = text_of("path", path)
        segments = plain_segments("path", name)
        if is_never(segments):
            raise refusal(
                "AGT912", "The path is not an agent's.", place=name, found=name,
                expected=f"no path in `{_GIT}`, `.interlock` or `artifacts`, and not `interlock.toml`",
                fix="Leave it alone; it is Interlock's or git's.",
            )  # fmt: skip
        if not scope(name):
            raise refusal(
                "AGT913", "The path is not in the scope of the task.", place=name, found=name,
                expected="a path in scope", fix="Work inside the scope; ask for a task with a wider one if it must be.",
            )  # fmt: skip
        return name

    def _text(self, name: str, path: str) -> str:
        try:
            data = read_confined(self._root, name, MAX_FILE_BYTES)
        except RunnerError as error:
            raise unusable(path, error) from error
        try:
            if len(data) <= MAX_FILE_BYTES:
                return data.decode("utf-8")
            found = f"more than {MAX_FILE_BYTES} bytes"
        except UnicodeDecodeError:
            found = "bytes that are no UTF-8"
        raise refusal(
            "AGT915", "The file is no text of a size that can be handled.", place=path, found=found,
            expected=f"UTF-8, at most {MAX_FILE_BYTES} bytes", fix="Leave it, or have a program handle it.",
        )  # fmt: skip

    def _matches(self, walk: "_Walk", text: str) -> Iterator[dict[str, Any]]:
        left = MAX_SEARCHED_BYTES
        for path in filter(self._readable, walk):
            if left <= 0:
                walk.cut_off = True
                return
            try:
                data = read_confined(self._root, path, MAX_FILE_BYTES)
            except RunnerError:
                continue  # it went away meanwhile, or may not be read
            left -= len(data)
            if len(data) <= MAX_FILE_BYTES and b"\0" not in data:
                yield from _lines_with(path, data, text)


def plain_segments(argument: str, path: str) -> tuple[str, ...]:
    """Return the segments of a path below the root.

    Raises:
        RefusedError: It is none.
    """
    try:
        return split_path(path)
    except RunnerError as error:
        raise refusal(
            "AGT911", "The path is no plain path below the root.", place=path or argument, found=path,
            expected="a relative path, `/` between its parts", fix=error.fix,
        ) from error  # fmt: skip


def is_never(segments: Sequence[str]) -> bool:
    """Return whether a path is Interlock's or git's, also in a spelling that some file system takes for theirs."""
    names = [_folded(segment) for segment in segments]
    return names[0] in _NEVER or any(name == _GIT or _SHORT.match(name) for name in names)


def _folded(segment: str) -> str:
    """Return a name without what file systems pass over: case, wide forms, invisible characters, dots at its end."""
    if not segment.isascii():
        segment = "".join(char for char in unicodedata.normalize("NFKC", segment) if unicodedata.category(char) != "Cf")
    return segment.casefold().rstrip(" .")


def _start(folder: object) -> str:
    """Return the folder that a walk begins with, empty for the root."""
    start = text_of("folder", folder).strip("/")
    if start:
        plain_segments("folder", start)
    return start


class _Walk:
    """The plain files below a folder, sorted, relative to the root; links and what agents never see are left out.

    A folder that is not there, or is a link, is refused.
    """

    def __init__(self, root: str, start: str) -> None:
        self._root = root
        self._start = start
        self.cut_off = False
        """Whether something was not looked at."""

    def __iter__(self) -> Iterator[str]:
        if self._start and is_never(self._start.split("/")):
            return
        pending, walked = [self._start], 0
        while pending:
            folder = pending.pop()
            prefix = f"{folder}/" if folder else ""
            folders, files = self._entries(folder)
            walked += 1 + len(files)
            if walked > MAX_WALKED:
                self.cut_off = True
                return
            if prefix.count("/") > MAX_DEPTH:
                self.cut_off = True
                continue
            yield from (path for name in files if _can_be_named(path := prefix + name))
            below = [prefix + name for name in folders if name not in PASSED_BY]
            pending += [path for path in reversed(below) if _can_be_named(path)]

    def _entries(self, folder: str) -> tuple[list[str], list[str]]:
        try:
            return entries_confined(self._root, folder)
        except RunnerError as error:
            if folder == self._start:
                raise unusable(folder or ".", error) from error
            self.cut_off = True  # it went away meanwhile, or may not be read
            return [], []


def _can_be_named(path: str) -> bool:
    """Return whether an agent could name a path to us, and may."""
    try:
        return not is_never(split_path(path))
    except RunnerError:
        return False


def _lines_with(path: str, data: bytes, text: str) -> Iterator[dict[str, Any]]:
    if text.encode("utf-8", "surrogatepass") not in data:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if text in line:
            yield {"path": path, "line": number, "text": line[:MAX_LINE_CHARS]}
