"""The files of a task for an agent that reads: listed, searched and read, and never what is Interlock's or git's."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from interlock.agents.ask import RunnerError
from interlock.agents.confined import read_confined, split_path, walk_confined
from interlock.agents.file_refusals import (
    MAX_FILE_BYTES,
    TEXT_FILE,
    Answer,
    answering,
    bad_argument,
    refusal,
    unusable,
)
from interlock.agents.truncation import cut, taken
from interlock.core.text import shown

MAX_LINES: Final = 2000
"""So many lines of one file are in an answer, and so many names or matches."""
MAX_WALKED: Final = 50_000
"""So many files below a folder are looked at."""
_LINE_CHARS: Final = 300

PASSED_BY: Final = frozenset(
    ("node_modules", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
)
"""Folders of installed packages and caches: listed and searched only from inside."""

# What decides about an agent's work, and the records of it; see `is_never` for git's folder.
_NEVER: Final = frozenset({".interlock", "artifacts", "interlock.toml"})


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
            paths, cut_off = self._paths(folder)
            answer["files"], left_out = taken(paths, MAX_LINES)
            answer["more"] = cut_off or left_out
        return answer

    def search(self, text: str, folder: str = "") -> Answer:
        """Return the lines that hold a text, as it is written: `{matches: [{path, line, text}], more, errors}`."""
        with answering({"matches": [], "more": False}) as answer:
            if not text or "\n" in text:
                raise bad_argument("text", text, "a text of one line")
            paths, cut_off = self._paths(folder)
            answer["matches"], left_out = taken(self._matches(paths, text), MAX_LINES)
            answer["more"] = cut_off or left_out
        return answer

    def read(self, path: str, first_line: int = 1, lines: int = MAX_LINES) -> Answer:
        """Return lines of a file: `{path, text, first_line, last_line, total_lines, more, errors}`.

        Of a line that does not fit an answer alone, the beginning is given, and `more` is true.
        """
        with answering({"path": shown(path)}) as answer:
            rows = self._text(self._allowed(path, self._readable), path).splitlines(keepends=True)
            wanted = rows[first_line - 1 : first_line - 1 + lines]
            part, cut_off = taken(wanted, MAX_LINES)
            # One line may be longer than an answer, and a reader must get on.
            if wanted and not part:
                part = [cut(wanted[0])]
            last = first_line - 1 + len(part)
            answer |= {"text": "".join(part), "first_line": first_line, "last_line": last, "total_lines": len(rows)}
            answer["more"] = cut_off or last < len(rows)
        return answer

    # -- paths and contents ------------------------------------------------------------------------------------------

    def _allowed(self, name: str, scope: Callable[[str], bool]) -> str:
        """Return the path of a call when the agent may use it."""
        segments = plain_segments("path", name)
        # Of what is Interlock's, the tickets among the inputs of a task are to be read.
        hidden = is_never(segments) and tuple(segments[:2]) != ("artifacts", "sources")
        if hidden or not scope(name):
            raise refusal("AGT913", name)
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
        raise refusal("AGT915", path, found, expected=TEXT_FILE)

    def _paths(self, folder: str) -> tuple[Sequence[str], bool]:
        """Return the readable files below a folder, and whether some were not looked at."""
        start = folder.strip("/")
        if start and is_never(plain_segments("folder", start)):
            return [], False

        def enters(path: str) -> bool:
            segments = path.split("/")
            # Only the last name counts, so that a walk that begins inside such a folder goes on.
            return not is_never(segments) and segments[-1] not in PASSED_BY

        unseen: list[object] = []
        try:
            walked = list(islice(walk_confined(self._root, start, enters, unseen.append), MAX_WALKED))
        except RunnerError as error:
            raise unusable(folder, error) from error
        return [path for path in walked if self._readable(path)], len(walked) == MAX_WALKED or bool(unseen)

    def _matches(self, paths: Sequence[str], text: str) -> Iterator[dict[str, Any]]:
        for path in paths:
            try:
                data = read_confined(self._root, path, MAX_FILE_BYTES)
            except RunnerError:
                continue  # it went away meanwhile, or may not be read
            # What holds a zero byte is a picture or a program, and its lines mean nothing.
            if len(data) <= MAX_FILE_BYTES and b"\0" not in data:
                for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                    if text in line:
                        yield {"path": path, "line": number, "text": line[:_LINE_CHARS]}


def plain_segments(argument: str, path: str) -> tuple[str, ...]:
    """Return the segments of a path below the root.

    Raises:
        RefusedError: It is none.
    """
    try:
        return split_path(path)
    except RunnerError as error:
        raise refusal("AGT911", path or argument, path) from error


def is_never(segments: Sequence[str]) -> bool:
    """Return whether a path is Interlock's or git's; some file systems of Linux take upper case for lower."""
    names = [segment.casefold() for segment in segments]
    return names[0] in _NEVER or ".git" in names
