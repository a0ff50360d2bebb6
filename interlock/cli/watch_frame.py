"""A look at a project as lines for a terminal of any width: what waits, the runs, who holds and waits for what."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from interlock.cli.progress import AtWork, money_text, progress_lines, short_number
from interlock.cli.reservation_output import fitted
from interlock.cli.screen import STYLES
from interlock.core.text import count, few, one_line
from interlock.graph import Look, status_text
from interlock.graph.board import LOOKED_AT
from interlock.reservations import span

_STATES: Final = {
    "at work": "cyan", "ended": "dim", "abandoned": "dim", "at its agent": "dim", "damaged": "bold red",
    "blocked": "bold red", "stopped": "bold red", "cut off": "yellow",
}  # fmt: skip
_WAITS: Final = "yellow"
_LEAST: Final = 3
_MAX_CELL: Final = 40
_MAX_CUT: Final = 400
"""Every part keeps so many lines, as far as it has them, before another one gets more."""

Part = tuple[str, list[Text]]


def frame(look: Look, title: str, now: datetime, width: int, height: int | None) -> Text:
    """Return what is drawn.

    Args:
        look: What there is.
        title: What is watched.
        now: The present time.
        width: How many columns there are; no line is wider.
        height: How many lines there are; None for as many as it takes.
    """
    parts = [part for part in (_waits(look, now, width), _runs(look, now, width), *_held(look, now, width)) if part[1]]
    open_runs = sum(row["state"] not in ("ended", "abandoned") for row in look.runs)
    more = "at least " if open_runs >= LOOKED_AT else ""
    head = f"{one_line(title)}  {now.astimezone():%H:%M:%S}  {more}{count(open_runs, 'open run')}"
    head += f", {len(look.waits)} waiting for you" if look.waits else ""
    lines = [Text(head, "bold")]
    lines += [Text(f"cannot be read: {one_line(look.damaged)}", "bold red")] if look.damaged else []
    if not parts:
        lines += [Text("nothing goes on here; start a run with `interlock run TASK.toml`", "dim")]
    left_over = None if height is None else max(0, height - len(lines) - len(parts))
    for (name, rows), most in zip(parts, _shares([len(rows) for _, rows in parts], left_over), strict=True):
        lines += [Text(name, "bold underline"), *rows[: most if most == len(rows) else max(0, most - 1)]]
        if most < len(rows):
            lines.append(Text(f"  … and {count(len(rows) - max(0, most - 1), 'more line')}", "dim"))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    shown = lines if height is None else lines[:height]
    return Text("\n", no_wrap=True, end="").join(shown)


def _shares(wanted: Sequence[int], left_over: int | None) -> list[int]:
    """Return how many lines each part gets: what it has, or what is left once the smaller ones have theirs."""
    if left_over is None:
        return list(wanted)
    found = [0] * len(wanted)
    for left, at in zip(range(len(wanted), 0, -1), sorted(range(len(wanted)), key=wanted.__getitem__), strict=True):
        found[at] = min(wanted[at], max(left_over // left, min(_LEAST, left_over)))
        left_over -= found[at]
    return found


def _waits(look: Look, now: datetime, width: int) -> Part:
    head = ("", "run", "what", "since")
    rows = [(row["wait"], row["run_id"], row["text"], _ago(row["since"], now)) for row in look.waits]
    return "waits for you", _table(head, rows, width, "what", ("since",), lambda _row: _WAITS)


def _runs(look: Look, now: datetime, width: int) -> Part:
    head = ("run", "status", "attempt", "state", "changed", "tokens", "cost", "what")
    rows = [
        (
            row["run_id"], status_text(row), row["attempt"], row["state"], _ago(row["changed_at"], now),
            short_number(row["tokens"]) if row["tokens"] else "", money_text(row["usd"]) if row["usd"] else "",
            row["title"] or row["name"],
        )
        for row in look.runs
    ]  # fmt: skip
    lines = _table(head, rows, width, "what", ("cost", "tokens", "changed", "attempt", "what"),
                   lambda row: _STATES.get(row[3], _WAITS))  # fmt: skip
    found = lines[:1]
    for row, line in zip(look.runs, lines[1:], strict=False):
        if (style := STYLES.get(row["status"] or "")) is not None:
            line.highlight_words([row["status"]], style)
        found += [line, *_at_work(row["at_work"], now, width)]
        if row["put_back"]:
            found.append(Text(f"    put back as in the base: {one_line(few(row['put_back']))}", "yellow"))
    return "runs", found


def _at_work(rows: Sequence[Mapping[str, Any]], now: datetime, width: int) -> list[Text]:
    """Return a line for each who is at work: for how long, at what, and the tokens of this turn."""
    awaited = [AtWork(one_line(row["name"]), _time(row["since"]), row["doing"], row["tokens"]) for row in rows]
    lines = (progress_lines([row], now.timestamp(), width - 4) for row in awaited)
    return [Text(f"    {line}", "dim") for found in lines for line in found]


def _held(look: Look, now: datetime, width: int) -> tuple[Part, Part]:
    leases = [
        (row["holder"], row["pattern"] + ("" if row["exclusive"] else " (shared)"), _ago(row["granted_at"], now),
         row["holder_state"], row["reason"])
        for row in look.leases
    ]  # fmt: skip
    queue = [(row["position"], row["agent"], ", ".join(row["patterns"]), _ago(row["since"], now)) for row in look.queue]
    head = ("holder", "pattern", "for", "holder is", "reason")
    return (
        ("leases", _table(head, leases, width, "reason", ("reason", "holder is"))),
        ("queue", _table(("place", "agent", "waits for", "for"), queue, width, "waits for", ("place",))),
    )


def _table(
    head: Sequence[str], rows: Sequence[Sequence[object]], width: int, cut: str, spare: Sequence[str],
    style: Callable[[Sequence[Any]], str] = lambda _row: "",
) -> list[Text]:  # fmt: skip
    """Return a head and a line for each row, of which `cut` may be cut and `spare` may go; nothing without rows."""
    if not rows:
        return []
    limits = [_MAX_CUT if name in (cut, "status") else _MAX_CELL for name in head]
    cells = [[_bounded(str(cell), limit) for cell, limit in zip(row, limits, strict=True)] for row in rows]
    filled = [at for at in range(len(head)) if any(row[at] for row in cells)]
    kept = [head[at] for at in filled]
    found = fitted(
        [[row[at] for at in filled] for row in (head, *cells)], width - 2, cut, [name for name in spare if name in kept]
    )
    widths = [max(map(cell_len, column)) for column in zip(*found, strict=True)]
    lines = ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in found]
    styles = ["dim", *map(style, rows)]
    return [Text(f"  {line}", look) for line, look in zip(lines, styles, strict=True)]


def _bounded(text: str, limit: int) -> str:
    plain = one_line(text[: 4 * limit])
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _time(moment: str) -> float:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return datetime.now(UTC).timestamp()


def _ago(moment: str, now: datetime) -> str:
    return span(now.timestamp() - _time(moment))
