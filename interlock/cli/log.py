"""`interlock log`: the runs of each day, what was to be done, how each ended, and what it took."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import click

from interlock import graph
from interlock.cli.context import json_option, resolve_root, root_option, show, show_table
from interlock.cli.screen import money_text
from interlock.core.text import count
from interlock.reservations import span

_HEAD = ("at", "run", "end", "took", "cost", "landed", "task")


def _first_day(context: click.Context, parameter: click.Parameter, value: str | None) -> date | None:
    """Return the day that `--since` names, in local time."""
    today = datetime.now().astimezone().date()
    if value in (None, "today", "yesterday"):
        return None if value is None else today - timedelta(value == "yesterday")
    try:
        days = re.fullmatch(r"(\d+)d", value)
        return today - timedelta(int(days[1])) if days else date.fromisoformat(value)
    except (ValueError, OverflowError):
        message = f"`{value}` is no day; write yesterday, {today.isoformat()}, or 3d for three days ago"
        raise click.BadParameter(message, context, parameter) from None


@click.command("log")
@click.option(
    "--since", metavar="DAY", callback=_first_day, help="From that day on: yesterday, 2026-11-27, or 3d (days ago)."
)
@root_option
@json_option
def log_command(since: date | None, root: Path | None, as_json: bool) -> None:
    """List the runs of each day, the newest first: how each ended, how long it took, its cost, and where it landed.

    A run is listed on the day of its last step. Days and times are local.
    """
    days = graph.runs_by_day(resolve_root(root), since)
    data = {"schema": "interlock.log/1", "days": [day.to_json() for day in days]}
    show(data, lambda _data: _print(days), as_json=as_json)


def _print(days: Sequence[graph.Day]) -> None:
    if not days:
        click.echo("no run in that time; `interlock run TASK.toml` starts one", err=True)
    for day in days:
        totals = day.to_json()
        ends = [f"{number} {end}" for end, number in totals["ends"].items()]
        ends += [f"{totals['landed']} landed"] if totals["landed"] else []
        parts = [count(day.runs, "run"), *ends, span(totals["seconds"]), _cost(totals["tokens"], totals["usd"])]
        parts += [f"{count(totals['unpriced'], 'run')} of unknown price"] if totals["unpriced"] else []
        show_table(f"{day.day}: {', '.join(filter(None, parts))}", _HEAD, map(_cells, day.runs), wrap="task")


def _cells(run: graph.Logged) -> tuple[str, ...]:
    cost = _cost(run.tokens, run.usd)
    return f"{run.at:%H:%M}", run.run, run.end, span(run.seconds), cost, _place(run.landed), run.task


def _cost(tokens: int, usd: float | None) -> str:
    """Return a price, or how many tokens where it is not known; nothing where nobody said what was spent."""
    return money_text(usd) if usd else f"{tokens:,} tokens" if tokens else ""


def _place(landed: Mapping[str, str]) -> str:
    return f"{landed['target']} {landed['commit'][:12]}" if landed else ""
