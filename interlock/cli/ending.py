"""`interlock abandon` and `interlock prune`: end runs for good, and remove what ended runs keep."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from interlock import graph
from interlock.cli.completion import complete_run
from interlock.cli.context import count, finite, json_option, print_json, resolve_root, root_option


@click.command("abandon")
@click.argument("run", shell_complete=complete_run)
@root_option
def abandon_command(run: str, root: Path | None) -> None:
    """End RUN (the id of a run, a task or a ticket) for good: it gives up its files, and nobody can take it on.

    Of a task or a ticket it is the newest run that is not over.
    """
    folder = resolve_root(root)
    task_run, ticket_run = graph.find_run(folder, "runs", run), graph.find_ticket_run(folder, run)
    if task_run is not None:
        name, ended = _newest_open(run, task_run, graph.runs_of(folder, "runs", run), partial(graph.abandon, folder))
    elif ticket_run is not None:
        name, ended = _newest_open(
            run, ticket_run, graph.runs_of(folder, "tickets", run), lambda one: graph.abandon_ticket(folder, one)
        )
    else:
        raise graph.no_task_run(folder, run)
    click.echo(f"{name} is abandoned" if ended else f"{name} had ended before")


def _newest_open(given: str, meant: str, newest: Iterable[str], end: Callable[[str], bool]) -> tuple[str, bool]:
    """End the run that is given, or of a task or a ticket the newest that is not over; say which, and whether."""
    wanted = (meant,) if given.removeprefix(graph.journal_run("")) == meant else dict.fromkeys((meant, *newest))
    name = next((run for run in wanted if end(run)), None)
    return name or meant, name is not None


@click.command("prune")
@click.option("--older-than", "days", metavar="DAYS", type=click.FloatRange(min=0), default=0.0, callback=finite,
              help="Only runs whose last step was so long ago.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="List them, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@root_option
@json_option
def prune_command(days: float, dry_run: bool, yes: bool, root: Path | None, as_json: bool) -> None:
    """Remove the folders that ended task runs keep below .interlock/runs.

    Runs that can still go on, the journal and the evidence stay. Of a run that was removed, `interlock verify` knows
    the journal's lines, and no head that pins their end.
    """
    folder = resolve_root(root)
    found = list(graph.ended_runs(folder, older_than_days=days))
    if not as_json:
        for run in found:
            how = "abandoned" if run.abandoned else run.status
            click.echo(f"{run.run_id:<28} {how:<10} {run.days:.0f} days")
    if found and not dry_run and not yes:
        if as_json or not sys.stdin.isatty():
            raise click.UsageError("give --yes to remove them, or --dry-run to list them")
        click.confirm(f"Remove the folders of {count(found, 'run')}?", abort=True)
    if not dry_run:
        for run in found:
            graph.remove(folder, run.run_id)
    if as_json:
        print_json({"schema": "interlock.prune/1", "removed": not dry_run, "runs": [asdict(run) for run in found]})
    else:
        click.echo(f"{count(found, 'run')} {'would be removed' if dry_run else 'removed'}", err=True)
