"""`interlock log`: the runs of each day, what was to be done, how each ended, and what it took."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from interlock import graph
from interlock.cli.context import json_option, resolve_root, root_option, show, show_table
from interlock.cli.screen import money_text
from interlock.core.text import count
from interlock.reservations import span

_HEAD: Final = ("at", "run", "end", "took", "cost", "landed", "task")


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
    show(graph.log_of(resolve_root(root), since), _print, as_json=as_json)


def _print(data: Mapping[str, Any]) -> None:
    if not data["days"]:
        click.echo("no run in that time; `interlock run TASK.toml` starts one", err=True)
    for day in data["days"]:
        ends = [f"{number} {end}" for end, number in day["ends"].items()]
        ends += [f"{day['landed']} landed"] if day["landed"] else []
        parts = [count(day["runs"], "run"), *ends, span(day["seconds"]), _cost(day)]
        parts += [f"{count(day['unpriced'], 'run')} of unknown price"] if day["unpriced"] else []
        show_table(f"{day['day']}: {', '.join(filter(None, parts))}", _HEAD, map(_cells, day["runs"]), wrap="task")


def _cells(run: Mapping[str, Any]) -> tuple[str, ...]:
    landed = run["landed"]
    place = f"{landed['target']} {landed['commit'][:12]}" if landed else ""
    return run["at"][11:16], run["run"], run["end"], span(run["seconds"]), _cost(run), place, run["task"]


def _cost(row: Mapping[str, Any]) -> str:
    """Return a price, or how many tokens where it is not known; nothing where nobody said what was spent."""
    return money_text(row["usd"]) if row["usd"] else f"{row['tokens']:,} tokens" if row["tokens"] else ""
