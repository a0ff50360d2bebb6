"""What was spent, in words: time, tokens, money, and what is left of a budget."""

from collections.abc import Mapping
from typing import Any

from interlock.cli.context import count


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
    rows = {role: row for role, row in usage["roles"].items() if _tells(row)}
    if not rows and not usage["all"]["left"]:
        return []
    lines = [f"{role}: {_row_text(row)}" for role, row in rows.items()]
    return lines if len(rows) == 1 and not usage["all"]["left"] else [*lines, f"in all: {_row_text(usage['all'])}"]


def _tells(row: Mapping[str, Any]) -> bool:
    """Return whether a row is more than that a script was read."""
    return bool(row["input_tokens"] or row["output_tokens"] or row["usd"] or row["left"] or row["seconds"] >= 0.1)


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
