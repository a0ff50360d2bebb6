"""What a run does at this moment: the notices of its drive, as lines in a file of its own for whoever watches it.

`progress.jsonl` in the run's folder holds one JSON object a line. It is not part of the journal, and nothing is decided
by it: it is not waited for to be on the disk, a full disk loses lines and stops no run, and what an agent writes into
it fools nobody but those who watch. It is bounded: when it is full, its older half goes. Its first line says how many
bytes went before, so that a position stays what it was: the number of bytes that were ever written before a line.
"""

import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from interlock.core.files import write_atomically
from interlock.graph.task.record import bounded
from interlock.graph.task.store import RunStore
from interlock.redaction import Redactor

MAX_BYTES: Final = 4 * 1024 * 1024
"""How large the file may be."""
WORKING_SECONDS: Final = 0.25
"""Of `working`, the most frequent notice, one a role is written in this time; the others are passed over."""

_NAME: Final = "progress.jsonl"
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_FIRST: Final = 64
_MOST_BEFORE: Final = 1 << 53
"""No file says that more went before: these numbers are exact in every reader of JSON."""

Notice: TypeAlias = Callable[[Mapping[str, Any]], None]


class Progress:
    """Writes the notices of one run; whoever drives it holds its lock, so that nobody else writes.

    Args:
        store: The run.
        redactor: Takes keys out of what is written.
        clock: Seconds that only grow.
        now: The present time.
    """

    def __init__(
        self,
        store: RunStore,
        redactor: Redactor,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = store.folder / _NAME
        self._redactor = redactor
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._worked: dict[str, float] = {}

    def writing(self, notice: Notice | None) -> Notice:
        """Return a function that writes each notice and passes it on, also from several threads."""

        def written(step: Mapping[str, Any]) -> None:
            with suppress(OSError, ValueError, TypeError, KeyError):
                self.write(step)
            if notice is not None:
                notice(step)

        return written

    def write(self, step: Mapping[str, Any]) -> None:
        """Write one notice with the time.

        Raises:
            OSError: It cannot be written; the file is as it was.
        """
        with self._lock:
            if step["kind"] == "working":
                role, at = str(step.get("role")), self._clock()
                if at - self._worked.get(role, at - WORKING_SECONDS) < WORKING_SECONDS:
                    return
                self._worked[role] = at
            at_text = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            row = bounded(self._redactor.value({"kind": step["kind"], "at": at_text, **step}))
            self._append(json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n")

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._path, _APPEND, 0o600)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return
            size = status.st_size
            if size + len(line) > MAX_BYTES:
                self._halve(line)
                return
            if not size:
                line = _first(0) + line
            elif os.pread(descriptor, 1, size - 1) != b"\n":  # a killed writer left a part of a line
                line = b"\n" + line
            if os.write(descriptor, line) < len(line):
                os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)

    def _halve(self, line: bytes) -> None:
        """Write the file anew, in one rename, without its older half and with one line more."""
        before, _, rows = _rows(self._path)
        cut = rows.find(b"\n", max(0, len(rows) - MAX_BYTES // 2)) + 1 or len(rows)
        kept = rows[cut:] + (b"" if rows.endswith(b"\n") else b"\n")
        write_atomically(self._path, _first(before + cut) + kept + line, mode=0o600, durable=False)


def progress_since(root: Path, run_id: str, position: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the notices of a run that were written behind a position, and the position behind the last of them.

    Each has `kind` and `at`, and what `docs/events.md` says of its kind. A position stays true over restarts; one whose
    lines are gone, or that is not one of this file, gives what is there, from the oldest line on. Bounded are the file,
    and so the answer. A line that nobody here wrote is passed over.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """
    try:
        before, start, rows = _rows(RunStore(root, run_id).folder / _NAME, position)
    except OSError:
        return [], 0
    end = rows.rfind(b"\n") + 1
    found: list[dict[str, Any]] = []
    for line in rows[:end].split(b"\n"):
        with suppress(ValueError, RecursionError):
            row: Any = json.loads(line)
            if isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("kind", "at")):  # pyright: ignore[reportUnknownMemberType]
                found.append(cast("dict[str, Any]", row))
    return found, before + start + end


def _rows(path: Path, position: int = 0) -> tuple[int, int, bytes]:
    """Return how many bytes of lines went before those that are there, the place behind a position, and what follows.

    The place is 0 where no line ends at the position.

    Raises:
        OSError: There is no such file, or it cannot be read.
    """
    descriptor = os.open(path, _READ)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return 0, 0, b""
        before = _before(first := file.readline(_MAX_FIRST))
        begin = 0 if before is None else len(first)
        start = position - (before or 0)
        size = os.fstat(descriptor).st_size - begin
        if not 0 < start <= size or os.pread(descriptor, 1, begin + start - 1) != b"\n":
            start = 0
        file.seek(begin + start)
        return before or 0, start, file.read(2 * MAX_BYTES)


def _before(first: bytes) -> int | None:
    """Return what the first line says; None where it is not a first line."""
    with suppress(ValueError, RecursionError, TypeError, KeyError):
        before: Any = json.loads(first)["before"]
        if first.endswith(b"\n") and type(before) is int and 0 <= before < _MOST_BEFORE:
            return before
    return None


def _first(before: int) -> bytes:
    return json.dumps({"before": before}).encode("ascii") + b"\n"
