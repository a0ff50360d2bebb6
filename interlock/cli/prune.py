"""`interlock abandon` and `interlock prune`: end runs for good, and remove what ended runs keep."""

import re
import sys
from dataclasses import asdict
from pathlib import Path

import click

from interlock import graph
from interlock.cli.context import json_option, print_json, resolve_root, root_option
from interlock.core.database import address_of
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
    if meant is None and address_of(folder):  # it may wait in the queue
        kind, meant, end = "runs", run, graph.abandon
    if meant is None:
        raise graph.no_task_run(folder, run)
    is_run = run.removeprefix(graph.journal_run("")) == meant
    wanted = (meant,) if is_run else dict.fromkeys((meant, *graph.runs_of(folder, kind, run)))
    ended = next((name for name in wanted if end(folder, name)), None)
    click.echo(f"{meant} had ended before" if ended is None else f"{ended} is abandoned")


def _days(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)d?", value or "0")
    if found is None:
        raise click.BadParameter(f"`{value}` is no age; write 30d for thirty days", context, parameter)
    return None if value is None else float(found[1])


def _bytes(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?) ?([KMGT]?)B?", (value or "0").upper())
    if found is None:
        raise click.BadParameter(f"`{value}` is no size; write 500MB or 2GB", context, parameter)
    return None if value is None else int(float(found[1]) * 1000 ** " KMGT".index(found[2] or " "))


def size_text(size: float) -> str:
    """Return a number of bytes for people: `59 MB`."""
    for unit in ("kB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{size:.0f} {unit}"
    return f"{size / 1000:.1f} GB"


@click.command("prune")
@click.option("--older", "--older-than", "days", metavar="DAYS", callback=_days, help="Only what is so old, as 30d.")
@click.option(
    "--max-size", "most", metavar="SIZE", callback=_bytes, help="Remove the oldest until all is no larger, as 2GB."
)
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@root_option
@json_option
def prune_command(
    days: float | None, most: int | None, dry_run: bool, yes: bool, root: Path | None, as_json: bool
) -> None:
    """Remove what ended task runs keep: their folders below .interlock/runs, and their trees.

    With --older or --max-size also what sealed gates keep in the state folder and make again when they need it. Runs
    that can still go on or have to land, the journal and the evidence stay. Of a run that was removed, `interlock
    verify` knows the journal's lines, and no head that pins their end.
    """
    folder = resolve_root(root)
    found = graph.prunable(folder, older_than_days=days, max_bytes=most)
    trees = graph.prune_trees(folder, dry_run=True)
    size = sum(each.bytes for each in (*found.runs, *found.kept)) + sum(size for _, size in trees)
    nouns = ((found.runs, "run"), (trees, "tree"), (found.kept, "kept record"))
    what = ", ".join(count(rows, noun) for rows, noun in nouns if rows)
    if not as_json:
        for run in found.runs:
            how = "abandoned" if run.abandoned else run.status
            click.echo(f"{run.run_id:<28} {how:<10} {run.days:.0f} days  {size_text(run.bytes)}")
        for path, of in trees:
            click.echo(f"{path}  {size_text(of)}")
        for path in dict.fromkeys(each.path.parent for each in found.kept):
            rows = [each for each in found.kept if each.path.parent == path]
            click.echo(f"{path}: {count(rows, 'kept record')}  {size_text(sum(each.bytes for each in rows))}")
    if what and not dry_run and not yes:
        # Nobody could answer the question, and without one nothing is removed.
        if as_json or not sys.stdin.isatty():
            raise click.UsageError("give --yes to remove them, or --dry-run to list them")
        click.confirm(f"Remove {what} ({size_text(size)})?", abort=True)
    if not dry_run:
        graph.prune(folder, found)
    if as_json:
        rows = [{"path": str(each.path), "days": each.days, "bytes": each.bytes} for each in found.kept]
        left = [{"path": str(path), "bytes": of} for path, of in trees]
        data = {"schema": "interlock.prune/1", "removed": not dry_run, "runs": [asdict(run) for run in found.runs]}
        print_json({**data, "trees": left, "kept": rows, "bytes": size, "total_bytes": found.total})
        return
    click.echo(f"{what or '0 runs'} {'would be removed' if dry_run else 'removed'}: ", err=True, nl=False)
    click.echo(f"{size_text(size)} of {size_text(found.total)}", err=True)
    if found.open_run and (days is not None or most is not None):
        then = f"`interlock abandon {found.open_run}` ends it"
        click.echo(f"what gates keep stays, since {found.open_run} can still go on; {then}", err=True)
