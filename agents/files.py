"""The files of a task for a build agent: read, written and deleted inside its scope, and only under a lease."""

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.confined import delete_confined, read_confined, split_path, write_confined
from interlock.agents.file_refusals import (
    MAX_FILE_BYTES,
    Answer,
    Refused,
    answering,
    bad_argument,
    encoded,
    number_of,
    refusal,
    text_of,
    unusable,
)
from interlock.reservations import patterns, place, process
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.errors import NoProject, ReservationError
from interlock.reservations.guard import GuardRefused, guarded
from interlock.reservations.opening import open_desk
from interlock.reservations.records import replace
from interlock.reservations.rules import shown
from interlock.reservations.service import Reservations

MAX_ANSWER_CHARS: Final = 64 * 1024
MAX_LINES: Final = 2000
MAX_LISTED: Final = 500
MAX_MATCHES: Final = 100
MAX_LINE_CHARS: Final = 300
MAX_SEARCHED_BYTES: Final = 64 * 1024 * 1024
MAX_WALKED: Final = 50_000
"""So many files below a folder are looked at."""
MAX_TEXT_CHARS: Final = 500

_NEVER: Final = frozenset({".interlock", "artifacts", "interlock.toml"})
_GIT: Final = ".git"


def as_written(desk: Desk) -> Desk:
    """Return a desk for patterns that a program wrote.

    Brackets in them are not taken for those of a real name, and they may lead into a repository inside the checkout.
    What leads out of it by a link is held as it is written: there a run writes nothing.
    """

    def real(root: str, path: str) -> Sequence[str]:
        names = desk.real(root, path)
        return (path,) if names[-1].startswith("/") else names

    return replace(desk, exists=_nothing, nested=_nowhere, real=real)


def _nothing(_root: str, _path: str) -> bool:
    return False


def _nowhere(_root: str, _path: str) -> str:
    return ""


def run_caller(root: str, agent: str) -> tuple[place.Place, Caller, str]:
    """Return the project around a run's folder, the run as an agent of this process, and where the folder lies in it.

    Args:
        root: The folder that the run works in.
        agent: The name of the run among the reservations.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder, or one that the run does not work in.
    """
    found, here = place.find(root), os.path.realpath(root)
    if not place.inside(found.root, here):
        raise NoProject(
            f"INTERLOCK_PROJECT names {found.root}, and the run works in {here}, which is not below it",
            "Unset INTERLOCK_PROJECT, or let it name the checkout that the run works in.",
        )
    pid = os.getpid()
    own = process.from_proc(pid) or process.from_ps("-p", str(pid)).get(pid)
    caller = Caller(agent, "agent", found.root, "run", process.host(), pid, own.started if own is not None else "")
    below = os.path.relpath(here, found.root)
    return found, caller, "" if below == "." else below


@contextmanager
def files_of(ask: Ask, scope: Callable[[str], bool]) -> Generator["LeasedFiles"]:
    """Open the files of the run that asks, in the run's own name.

    Args:
        ask: A run's ask; its `agent` is not empty.
        scope: See `LeasedFiles`.

    Raises:
        RunnerError: The reservations cannot be used.
    """
    try:
        found, caller, _ = run_caller(ask.root, ask.agent)
        desk = open_desk(found)
        try:
            yield LeasedFiles(Reservations(desk, caller), ask.root, scope)
        finally:
            desk.store.close()
    except ReservationError as error:
        raise RunnerError(f"the reservations cannot be used: {error.code} {error.message}", error.fix) from error


class LeasedFiles:
    """What a build agent may do with files. Every answer is JSON; what is refused is in its `errors`.

    A write takes a lease on its path, unless an own one covers it, and happens while nobody else can take that lease:
    a process that was stopped past its lease and goes on cannot write.

    Args:
        reservations: The calls of the agent.
        root: The folder that paths are relative to: the checkout, or a folder in it.
        scope: Says whether a path relative to the root is in the scope of the task.
    """

    def __init__(self, reservations: Reservations, root: str, scope: Callable[[str], bool]) -> None:
        self._reservations = Reservations(as_written(reservations.desk), reservations.caller)
        self._root = os.path.realpath(root)
        self._scope = scope
        below = os.path.relpath(self._root, reservations.caller.root)
        self._prefix = "" if below == "." else f"{below}/"

    # -- reading -----------------------------------------------------------------------------------------------------

    def list(self, folder: str = "") -> Answer:
        """Return the files in scope below a folder, by name: `{files, more, errors}`.

        `more` is true when further files are there, or were not looked at.
        """
        with answering({"files": [], "more": False}) as answer:
            for path in self._walk(folder, answer):
                if len(answer["files"]) == MAX_LISTED:
                    answer["more"] = True
                    break
                answer["files"].append(path)
        return answer

    def search(self, text: str, folder: str = "") -> Answer:
        """Return the lines that hold a text, as it is written: `{matches: [{path, line, text}], more, errors}`."""
        with answering({"matches": [], "more": False}) as answer:
            if not 0 < len(text_of("text", text)) <= MAX_TEXT_CHARS or "\n" in text:
                raise bad_argument("text", text, f"1 to {MAX_TEXT_CHARS} characters of one line")
            left = MAX_SEARCHED_BYTES
            for path in self._walk(folder, answer):
                data = self._searched(path)
                left -= len(data)
                found = _matches(path, data, text)
                room = MAX_MATCHES - len(answer["matches"])
                answer["matches"] += found[:room]
                if len(found) > room or left <= 0:
                    answer["more"] = True
                    break
        return answer

    def read(self, path: str, first_line: int = 1, lines: int = MAX_LINES) -> Answer:
        """Return lines of a file: `{path, text, first_line, last_line, total_lines, more, errors}`."""
        with answering({"path": shown(path)}) as answer:
            text = self._read(self._allowed(path), path)
            rows = text.splitlines(keepends=True)
            first = number_of("first_line", first_line, 1, 10**9)
            count = number_of("lines", lines, 1, MAX_LINES)
            part = _fitting(rows[first - 1 : first - 1 + count])
            last = first - 1 + len(part)
            answer |= {"text": "".join(part)[:MAX_ANSWER_CHARS], "first_line": first, "last_line": last}
            answer |= {"total_lines": len(rows), "more": last < len(rows) or len("".join(part)) > MAX_ANSWER_CHARS}
        return answer

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> Answer:
        """Put a text at a path, whole or not at all, making folders on the way: `{path, bytes, token, errors}`."""
        with answering({"path": shown(path)}) as answer:
            name, data = self._allowed(path), encoded(text_of("text", text), path)
            answer["token"] = self._act(name, path, lambda: write_confined(self._root, name, data))
            answer["bytes"] = len(data)
        return answer

    def write_bytes(self, path: str, data: bytes) -> Answer:
        """Put bytes at a path, like `write`; for programs, whose files may be pictures of any size."""
        with answering({"path": shown(path)}) as answer:
            name = self._allowed(path)
            answer["token"] = self._act(name, path, lambda: write_confined(self._root, name, data))
            answer["bytes"] = len(data)
        return answer

    def edit(self, path: str, old: str, new: str) -> Answer:
        """Replace the one place in a file where a text stands: `{path, bytes, token, errors}`.

        The file is read and written under one lease, so what others wrote before it is kept.
        """
        with answering({"path": shown(path)}) as answer:
            name = self._allowed(path)
            text_of("old", old)
            text_of("new", new)

            def put() -> None:
                text = self._read(name, path)
                count = text.count(old) if old else 0
                if count != 1:
                    found = "an empty text" if not old else f"{count} such places"
                    raise refusal(
                        "AGT916", "The text to replace does not stand in the file exactly once.", place=path,
                        found=found, expected="exactly one", fix="Read the file, and give more of the text around it.",
                    )  # fmt: skip
                data = encoded(text.replace(old, new), path)
                write_confined(self._root, name, data)
                answer["bytes"] = len(data)

            answer["token"] = self._act(name, path, put)
        return answer

    def delete(self, path: str) -> Answer:
        """Delete a file; one that is gone already is no error: `{path, token, errors}`."""
        with answering({"path": shown(path)}) as answer:
            name = self._allowed(path)
            answer["token"] = self._act(name, path, lambda: delete_confined(self._root, name))
        return answer

    # -- the lease ---------------------------------------------------------------------------------------------------

    def _act(self, name: str, path: str, action: Callable[[], None]) -> int:
        """Do something to a file under a lease, and return its token; without an own one, one is taken first."""
        held = self._reservations.desk.real(self._reservations.caller.root, self._prefix + name)[-1]
        own = self._reservations.my_reservations()["reservations"]
        if not any(row["exclusive"] and patterns.matches(row["pattern"], held) for row in own):
            answer = self._reservations.reserve_files([patterns.quote(held)], reason=f"writes {shown(path)}")
            if answer["errors"]:
                raise Refused(*answer["errors"])
        try:
            return self._guarded(held, path, action)
        except GuardRefused as error:
            raise Refused(*error.errors) from error

    def _guarded(self, held: str, path: str, action: Callable[[], None]) -> int:
        with guarded(self._reservations.desk, self._reservations.caller, [held]) as guard:
            try:
                action()
            except RunnerError as error:
                raise unusable(path, error) from error
            return guard.tokens[held]

    # -- paths -------------------------------------------------------------------------------------------------------

    def _allowed(self, path: object) -> str:
        """Return the path of a call when the agent may use it."""
        name = text_of("path", path)
        try:
            segments = split_path(name)
        except RunnerError as error:
            raise refusal(
                "AGT911", "The path is no plain path below the root.", place=name or "path", found=name,
                expected="a relative path, `/` between its parts", fix=error.fix,
            ) from error  # fmt: skip
        if _is_never(segments):
            raise refusal(
                "AGT912", "The path is not an agent's.", place=name, found=name,
                expected=f"no path in `{_GIT}`, `.interlock` or `artifacts`, and not `interlock.toml`",
                fix="Leave it alone; it is Interlock's or git's.",
            )  # fmt: skip
        if not self._scope(name):
            raise refusal(
                "AGT913", "The path is not in the scope of the task.", place=name, found=name,
                expected="a path in scope", fix="Work inside the scope; ask for a task with a wider one if it must be.",
            )  # fmt: skip
        return name

    def _walk(self, folder: object, answer: Answer) -> Iterator[str]:
        """Yield the files in scope below a folder, following no link, and say in the answer when some were left out."""
        start = text_of("folder", folder).strip("/")
        if start:
            try:
                segments = split_path(start)
            except RunnerError as error:
                raise refusal(
                    "AGT911", "The folder is no plain path below the root.", place=start, found=start,
                    expected="a relative path, or nothing for the root", fix=error.fix,
                ) from error  # fmt: skip
            if _is_never(segments):
                return
        for walked, path in enumerate(_files(self._root, start)):
            if walked == MAX_WALKED:
                answer["more"] = True
                return
            if self._scope(path):
                yield path

    def _read(self, name: str, path: str) -> str:
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

    def _searched(self, path: str) -> bytes:
        """Return what is searched of a file: nothing of one that is too large, no text, or not to be read."""
        try:
            data = read_confined(self._root, path, MAX_FILE_BYTES)
        except RunnerError:
            return b""
        return data if len(data) <= MAX_FILE_BYTES and b"\0" not in data else b""


def _is_never(segments: Sequence[str]) -> bool:
    names = [segment.casefold() for segment in segments]
    return names[0] in _NEVER or _GIT in names


def _files(root: str, start: str) -> Iterator[str]:
    """Yield the plain files below a folder, sorted, relative to the root; what agents never see is left out."""
    top = f"{root}/{start}" if start else root
    if os.path.realpath(top) != top:
        return
    for folder, folders, names, opened in os.fwalk(top, follow_symlinks=False):
        below = os.path.relpath(folder, root)
        prefix = () if below == "." else tuple(below.split("/"))
        folders[:] = sorted(name for name in folders if not _is_never((*prefix, name)))
        for name in sorted(names):
            if not _is_never((*prefix, name)) and _is_file(opened, name):
                yield "/".join((*prefix, name))


def _is_file(folder: int, name: str) -> bool:
    """Say whether a name is that of a plain file; one that went away meanwhile is none."""
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _matches(path: str, data: bytes, text: str) -> list[dict[str, Any]]:
    wanted = text.encode("utf-8", "surrogatepass")
    if wanted not in data:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    return [
        {"path": path, "line": number, "text": line[:MAX_LINE_CHARS]}
        for number, line in enumerate(lines, 1)
        if text in line
    ]


def _fitting(rows: Sequence[str]) -> Sequence[str]:
    """Return the first rows that fit an answer, one at least."""
    size = 0
    for number, row in enumerate(rows):
        size += len(row)
        if size > MAX_ANSWER_CHARS and number:
            return rows[:number]
    return rows
