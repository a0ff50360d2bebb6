"""What was spent, and who is at work now: time, tokens and money in words, one cell for each role."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len, chop_cells

from interlock.agents.quoting import visible
from interlock.core.text import count


def clock_text(seconds: float) -> str:
    """Return a running time: `0:42`, `12:05`, `1:02:03`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def short_number(number: int) -> str:
    """Return a number of at most five characters: `912`, `5.1k`, `240k`, `1.3M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size * 0.9995:
            value = number / size
            return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"
    return str(number)


def money_text(usd: float) -> str:
    """Return US dollars to the cent; what is less, with two digits that say something."""
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.2g}"


def answer_text(seconds: float | None, usage: Mapping[str, Any] | None) -> str:
    """Return what one answer took: `12.3 s, 4,211 tokens, $0.02`; what is not known, or nothing, is left out."""
    row = usage or {}
    tokens = row.get("input_tokens", 0) + row.get("output_tokens", 0)
    parts = [
        f"{seconds:.1f} s" if seconds is not None and (seconds >= 0.1 or tokens) else "",
        f"{tokens:,} tokens" if tokens else "",
        money_text(row["usd"]) if row.get("usd") else "",
    ]
    return ", ".join(filter(None, parts))


def usage_lines(usage: Mapping[str, Any]) -> list[str]:
    """Return a line for each role that spent something worth a line or has a budget, and one for all."""
    worth = ("input_tokens", "output_tokens", "usd", "left")
    # A row may say no more than that a script was read.
    rows = {role: row for role, row in usage["roles"].items() if any(map(row.get, worth)) or row["seconds"] >= 0.1}
    if not rows and not usage["all"]["left"]:
        return []
    lines = [f"{role}: {_row_text(row)}" for role, row in rows.items()]
    return lines if len(rows) == 1 and not usage["all"]["left"] else [*lines, f"in all: {_row_text(usage['all'])}"]


def _row_text(row: Mapping[str, Any]) -> str:
    parts = [count(row["calls"], "call")]
    if row["input_tokens"] or row["output_tokens"]:
        parts.append(f"{row['input_tokens']:,} tokens in, {row['output_tokens']:,} out")
    parts.append(f"{row['seconds']:.1f} s")
    parts.append("price not known" if row["usd"] is None else money_text(row["usd"]))
    left = ", ".join(_left_text(name, amount) for name, amount in row["left"].items())
    return ", ".join(parts) + (f"; left: {left}" if left else "")


def _left_text(name: str, amount: float) -> str:
    if name == "usd":
        return money_text(amount)
    if name == "seconds":
        return f"{amount:.1f} s"
    return f"{amount:,} {name.removesuffix('s') if amount == 1 else name}"


_BETWEEN: Final = "  |  "
_MIN_CELLS: Final = 40
"""Roles are shown side by side while each has so many columns."""

_MIN_DOING_CELLS: Final = 8
_SPARSE_SECONDS: Final = 10.0
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

    def __init__(self, emit: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._reported: dict[str, tuple[float, str]] = {}

    def __call__(self, line: str) -> None:
        """Take a line."""
        kind, now = _NUMBER.sub("0", line), self._clock()
        before, last = self._reported.get(kind, (-_SPARSE_SECONDS, ""))
        if kind not in self._reported or now - before >= _SPARSE_SECONDS or (_AT_ITS_END.search(line) and line != last):
            self._reported[kind] = now, line
            self._emit(line)


def progress_lines(rows: Iterable[AtWork], now: float, width: int) -> list[str]:
    """Return the lines that show these rows, none wider than `width` columns."""
    awaited = list(rows)
    if not awaited:
        return []
    each = (width - len(_BETWEEN) * (len(awaited) - 1)) // len(awaited)
    if each < _MIN_CELLS:
        return [_cell(row, now, width) for row in awaited]
    cells = [_cell(row, now, each) for row in awaited]
    return [_BETWEEN.join(text + " " * (each - cell_len(text)) for text in cells).rstrip()]


def _cell(row: AtWork, now: float, width: int) -> str:
    """Return one row; where it is too long, what is done is cut first, then left out, then the tokens are."""
    head = f"{row.name} {clock_text(now - row.since)}"
    tokens = "" if not row.tokens else f"{short_number(row.tokens)} tokens"
    doing = visible(" ".join(row.doing.split()))
    left = width - cell_len(_joined(head, "", tokens)) - len(" · ")
    if left >= min(_MIN_DOING_CELLS, cell_len(doing)):
        return _joined(head, _cut(doing, left), tokens)
    text = _joined(head, "", tokens)
    return text if cell_len(text) <= width else _cut(head, width)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return f"{chop_cells(text, width - 1)[0] if width > 1 else ''}…"
