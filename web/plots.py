"""What is looked at rather than read: time and cost by role and attempt, gate failures over runs, waits for files.

Each plot is rows of bars with the same figures as text; a template draws the SVG.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from interlock.graph.feed import QueueWait, Row
from interlock.web.pages import seconds_text, tokens_text, usd_text

MAX_BARS: Final = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label, its length from 0 to 100, and its figure as text."""

    label: str
    length: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with a title, what the labels and the figures are, and its bars."""

    title: str
    what: str
    unit: str
    bars: tuple[Bar, ...]


def _plot(title: str, what: str, unit: str, rows: Sequence[tuple[str, float, str]]) -> Plot:
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    return Plot(title, what, unit, tuple(Bar(label, round(100 * value / most, 1), text) for label, value, text in rows))


def of_run(row: Row) -> list[Plot]:
    """Return time and cost of a run by role and attempt."""
    spent = sorted(row.spent.items())[-MAX_BARS:]
    times = [
        (f"{role}, attempt {attempt}", each.seconds, seconds_text(each.seconds)) for (attempt, role), each in spent
    ]
    costs = [
        (f"{role}, attempt {attempt}", float(each.usd or 0.0) or each.tokens / 1e9,
         f"{usd_text(each.usd)}, {tokens_text(each.tokens)} tokens")
        for (attempt, role), each in spent if each.tokens or each.usd
    ]  # fmt: skip
    plots = [_plot("Time by role and attempt", "role and attempt", "time", times)]
    return [*plots, *([_plot("Cost by role and attempt", "role and attempt", "cost", costs)] if costs else [])]


def of_project(rows: Iterable[Row], waits: Iterable[QueueWait]) -> list[Plot]:
    """Return what failed over the runs, what they took, and how long files were waited for."""
    listed = list(rows)
    gates: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for row in listed:
        gates.update(row.failed)
        runs.update(set(row.failed))
    failures = [
        (gate, float(count), f"{count} times in {runs[gate]} of {len(listed)} runs")
        for gate, count in gates.most_common(MAX_BARS)
    ]
    latest = [row for row in listed if row.kind == "task"][:MAX_BARS]
    ends = ["abandoned" if row.abandoned else row.state or "not started" for row in latest]
    attempts = [(row.run, float(row.attempt), f"{row.attempt}, {end}") for row, end in zip(latest, ends, strict=True)]
    took = [(row.run, row.total.seconds, seconds_text(row.total.seconds)) for row in latest]
    waited = [
        (f"{wait.agent}: {wait.pattern}", wait.seconds,
         seconds_text(wait.seconds) + ("" if wait.granted else ", not granted"))
        for wait in list(waits)[-MAX_BARS:]
    ]  # fmt: skip
    return [
        _plot("Gate failures over runs", "gate", "failures", failures),
        _plot("Attempts of the latest runs", "run", "attempts", attempts),
        _plot("Time of agents in the latest runs", "run", "time", took),
        _plot("Waits for files", "agent and pattern", "time", waited),
    ]
