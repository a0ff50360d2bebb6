"""`interlock abandon` and `interlock prune`: end runs for good, and remove what ended runs keep."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from interlock import graph
from interlock.cli.context import finite, json_option, print_json, resolve_root, root_option
from interlock.core.text import count


@click.command("abandon")
@click.argument("run")
@root_option
def abandon_command(run: str, root: Path | None) -> None:
    """End RUN (the id of a run, a task or a ticket) for good: it gives up its files, and nobody can take it on.

    Of a task or a ticket it is the newest run that is not over.
    """
    folder = resolve_root(root)
    kind, meant, end = "runs", graph.find_run(folder, "runs", run), graph.abandon
    if meant is None:
        kind, meant, end = "tickets", graph.find_ticket_run(folder, run), graph.abandon_ticket
    if meant is None:
        raise graph.no_task_run(folder, run)
    is_run = run.removeprefix(graph.journal_run("")) == meant
    wanted = (meant,) if is_run else dict.fromkeys((meant, *graph.runs_of(folder, kind, run)))
    ended = next((name for name in wanted if end(folder, name)), None)
    click.echo(f"{meant} had ended before" if ended is None else f"{ended} is abandoned")


@click.command("prune")
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=0.0,
    callback=finite,
    help="Only runs whose last step was so long ago.",
)
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
        # Nobody could answer the question, and without one nothing is removed.
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
