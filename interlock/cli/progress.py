"""Who is at work now, for how long, on what, and at what cost: one cell for each, side by side where there is room."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, chop_cells

from interlock.agents.quoting import visible
from interlock.cli.amounts import clock_text, short_number

_BETWEEN: Final = "  |  "
_MIN_CELLS: Final = 40
"""Roles stand side by side while each has so many columns."""

_MIN_DOING_CELLS: Final = 8
_NUMBER: Final = re.compile(r"\d+")
_AT_ITS_END: Final = re.compile(r"\b([1-9]\d*) of \1\b")


@dataclass(slots=True)
class AtWork:
    """Something that is awaited.

    `since` is in seconds of a monotonic clock; `tokens` is None where it is not known.
    """

    name: str
    since: float
    doing: str
    tokens: int | None = None


class Sparse:
    """Passes lines on, but not those that differ only in numbers from one that was passed on a moment ago.

    A count that has come to its end, such as `2 of 2`, is passed on at once.
    """

    def __init__(
        self, tell: Callable[[str], None], *, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._seconds = seconds
        self._clock = clock
        self._told: dict[str, tuple[float, str]] = {}

    def __call__(self, line: str) -> None:
        """Take a line."""
        kind, now = _NUMBER.sub("0", line), self._clock()
        before, last = self._told.get(kind, (-self._seconds, ""))
        if kind not in self._told or now - before >= self._seconds or (_AT_ITS_END.search(line) and line != last):
            self._told[kind] = now, line
            self._tell(line)


def progress_lines(rows: Iterable[AtWork], now: float, width: int) -> list[str]:
    """Return the lines that show these rows, none wider than `width` columns."""
    awaited = list(rows)
    if not awaited:
        return []
    room = (width - len(_BETWEEN) * (len(awaited) - 1)) // len(awaited)
    if room < _MIN_CELLS:
        return [_cell(row, now, width) for row in awaited]
    cells = [_cell(row, now, room) for row in awaited]
    return [_BETWEEN.join(text + " " * (room - cell_len(text)) for text in cells).rstrip()]


def _cell(row: AtWork, now: float, width: int) -> str:
    """Return one row; where it is too long, what is done is cut first, then left out, then the tokens are."""
    head = f"{row.name} {clock_text(now - row.since)}"
    tokens = "" if not row.tokens else f"{short_number(row.tokens)} tokens"
    doing = visible(" ".join(row.doing.split()))
    room = width - cell_len(_joined(head, "", tokens)) - len(" · ")
    if room >= min(_MIN_DOING_CELLS, cell_len(doing)):
        return _joined(head, _cut(doing, room), tokens)
    text = _joined(head, "", tokens)
    return text if cell_len(text) <= width else _cut(head, width)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return f"{chop_cells(text, width - 1)[0] if width > 1 else ''}…"
