"""What a run does at this moment: the notices of its drive, as lines in a file of its own for whoever watches it.

`progress.jsonl` in the run's folder holds one JSON object a line. It is not part of the journal, and nothing is decided
by it: it is not waited for to be on the disk, a full disk loses lines and stops no run, and what an agent writes into
it fools nobody but those who watch. It is bounded: a file that is full begins anew.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from interlock.core.text import money_text, one_line, whole
from interlock.graph.task.record import bounded
from interlock.graph.task.store import RunStore
from interlock.redaction import Redactor

MAX_BYTES: Final = 4 * 1024 * 1024
"""How large the file may be."""
WORKING_SECONDS: Final = 0.25
"""Of `working`, the most frequent notice, one a role is written in this time; the others are passed over."""

_NAME: Final = "progress.jsonl"
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

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
            OSError: It cannot be written.
        """
        with self._lock:
            if step["kind"] == "working":
                role, second = str(step.get("role")), self._clock()
                if second - self._worked.get(role, second - WORKING_SECONDS) < WORKING_SECONDS:
                    return
                self._worked[role] = second
            at = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            row = bounded(self._redactor.value({"kind": step["kind"], "at": at, **step}))
            line = json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n"
            with os.fdopen(os.open(self._path, _APPEND, 0o600), "ab", buffering=0) as file:
                # Whoever reads on notices by the newline before its position that the file began anew.
                if file.tell() + len(line) > MAX_BYTES:
                    file.truncate(0)
                file.write(line)


def progress_since(root: Path, run_id: str, position: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the notices of a run that were written behind a position, and the position behind the last of them.

    Each has `kind` and `at`, and what `docs/watch.md` says of its kind. A position is a number of bytes; one at which
    no line ends, as after the file began anew, gives what is there from its beginning.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """
    try:
        with os.fdopen(os.open(RunStore(root, run_id).folder / _NAME, _READ), "rb") as file:
            data = file.read(MAX_BYTES)
    except OSError:
        return [], 0
    if data[position - 1 : position] != b"\n":
        position = 0
    # Half a line is left for the next call.
    end = data.rfind(b"\n") + 1
    notices: list[dict[str, Any]] = []
    for line in data[position:end].splitlines():
        with suppress(ValueError, RecursionError):
            row: Any = json.loads(line)
            if isinstance(row, dict) and {"kind", "at"} <= row.keys():
                notices.append(cast("dict[str, Any]", row))
    return notices, end


def agents_at_work(root: Path, run_id: str) -> list[dict[str, Any]]:
    """Return which roles of a run that is driven are asked at this moment, and what each does, as JSON values.

    Each row has `role`, `since` (ISO 8601), `tool` (empty while the model thinks), `calls`, `tokens`, `usd` (None where
    it is not known), and `quiet_minutes` and `quiet_at` when it was said that it changes nothing.
    """
    rows: dict[str, dict[str, Any]] = {}
    for step in progress_since(root, run_id)[0]:
        role, at = str(step.get("role")), str(step["at"])
        match step["kind"]:
            case "asking":
                rows[role] = {"role": role, "since": at, "tool": "", "calls": 0, "tokens": 0, "usd": None}
            case "working" if role in rows:
                spent = {"calls": whole(step.get("calls")), "tokens": whole(step.get("tokens"))}
                rows[role] |= {"tool": str(step.get("tool", "")), **spent, "usd": _number(step.get("usd"))}
            case "quiet" if role in rows:
                rows[role] |= {"quiet_minutes": _number(step.get("minutes")), "quiet_at": at}
            case "answered":
                rows.pop(role, None)
            case _:
                pass
    return [*rows.values()]


def agent_text(row: Mapping[str, Any]) -> str:
    """Return a row of `agents_at_work` for a person: `builder 2:13 · Edit src/cart.py · 12,345 tokens · $0.04`."""
    passed = _seconds_since(row["since"])
    quiet = ""
    if "quiet_at" in row:
        ago = _clock(_seconds_since(row["quiet_at"]))
        quiet = f"no file had changed for {row['quiet_minutes'] or 0:g} min, {ago} ago"
    doing = row["tool"] or ("thinking" if row["calls"] else "at work")
    return work_text(row["role"], passed, doing, row["tokens"], row["usd"], quiet)


def work_text(name: str, seconds: float, doing: str, tokens: int | None, usd: float | None, more: str = "") -> str:
    """Return in a line who has worked for how long, at what, and what that cost so far."""
    spent = (f"{tokens:,} tokens" if tokens else "", money_text(usd) if usd else "")
    return one_line(" · ".join(filter(None, (f"{name} {_clock(seconds)}", doing, *spent, more))))


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) else None


def _seconds_since(moment: str) -> float:
    with suppress(ValueError, TypeError):
        return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    return 0.0


def _clock(seconds: float) -> str:
    """Return a length of time as a clock shows it: `0:07`, `2:13`, `1:02:13`."""
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
