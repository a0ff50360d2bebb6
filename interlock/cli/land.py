"""`interlock land` and `interlock queue`: approved runs onto their branch, and which of them wait for it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from interlock import graph
from interlock.cli.context import (
    json_option,
    print_json,
    resolve_root,
    root_option,
    root_words,
    show_finding,
    show_table,
    talk,
)
from interlock.cli.interrupt import stops_at_once
from interlock.cli.run import known_run
from interlock.cli.run_many import Job, drive_job, land_job
from interlock.cli.screen import Sparse
from interlock.core.database import address_of
from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding
from interlock.core.text import few


@click.command("land")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option("--queue", "queued", is_flag=True, help="All approved runs that have not landed and are not held back.")
@click.option("--target", metavar="BRANCH", default="", help="Default: `target` of [landing], or what is checked out.")
@click.option(
    "--batch", metavar="N", type=click.IntRange(1, 50), help="So many runs are judged together, and are one commit."
)
@click.option("--no-rebuild", is_flag=True, help="Of a conflict only say it, and begin no new run.")
@root_option
@json_option
def land_command(
    runs: tuple[str, ...],
    queued: bool,
    target: str,
    batch: int | None,
    no_rebuild: bool,
    root: Path | None,
    as_json: bool,
) -> None:
    """Land each RUN (a run id, or a task id for its newest run) on its branch.

    What merges is judged by the gates of the runs once more, on the present branch, before the branch moves. Nobody's
    checkout is needed for it.

    Exit 0 when all have landed, 1 when one has not.
    """
    folder = resolve_root(root)
    if queued == bool(runs):
        raise click.UsageError("name the runs, or give --queue for all that wait")
    names = [known_run(folder, run) for run in runs]
    names = names or [row.run_id for row in graph.queue_of(folder) if not row.held]
    said = Sparse.on(talk())

    def notice(step: Mapping[str, Any]) -> None:
        said(f"{step['line']} ({few(step['runs'])})")

    found = graph.land(folder, names, notice=notice, target=target, batch=batch or 0, rebuilds=not no_rebuild)
    found = [_rebuilt(folder, row) if row.rebuilt else row for row in found]
    good = all(row.state == "landed" for row in found)
    if as_json:
        print_json({"schema": "interlock.landing/1", "ok": good, "landings": [row.to_json() for row in found]})
    else:
        _show(found)
    sys.exit(Exit.GOOD if good else Exit.REFUSED)


def _rebuilt(folder: Path, row: graph.Landing) -> graph.Landing:
    """Drive the run that was begun because of a conflict, and land it; return how that ended."""
    job = Job(graph.RunStore(folder, row.run_ids[0]).load()[0], row.rebuilt, is_submitted=bool(address_of(folder)))
    assert row.error is not None
    why = row.error.message
    talk().print(f"{why}; run {row.rebuilt} begins", style="yellow", markup=False)
    resume = f"interlock resume {row.rebuilt}{root_words(folder)}"
    try:
        with stops_at_once(f"stopped; the run is kept. Go on with: {resume}"):
            drive_job(folder, job, as_json=False)
            if job.end == "APPROVED":
                land_job(folder, job)
    except InterlockError as error:  # the others have landed, or not, and that is to be said
        text = f"{why}; run {row.rebuilt} stopped: {error.code} {error.message}"
        return replace(row, error=InterlockError(text, f"{error.fix} Go on with: {resume}", row.error.code))
    if job.landing is not None:
        return job.landing
    text, fix = f"{why}; run {job.run_id} ended {job.end}", f"See `interlock explain {job.run_id}`."
    return replace(row, error=InterlockError(text, fix, row.error.code))


def _show(found: Sequence[graph.Landing]) -> None:
    rows = [
        (run, row.state, row.commit[:12], row.target, row.how, few(row.flaky)) for row in found for run in row.run_ids
    ]
    show_table("", ("run", "", "commit", "target", "judged", "flaky"), rows, wrap="flaky")
    if not rows:
        click.echo("no approved run waits to land", err=True)
    for row in found:
        if (error := row.error) is not None:
            named = few(row.files or row.tests)
            show_finding(Finding(error.code, "error", few(row.run_ids), error.message, named, fix=error.fix))


@click.group("queue", invoke_without_command=True)
@root_option
@json_option
@click.pass_context
def queue_command(context: click.Context, root: Path | None, as_json: bool) -> None:
    """List the approved runs that have not landed, in the order in which they do."""
    if context.invoked_subcommand is not None:
        return
    rows = graph.queue_of(resolve_root(root))
    if as_json:
        print_json({"schema": "interlock.queue/1", "runs": [row._asdict() for row in rows]})
        return
    cells = [
        (place, row.run_id, "held" if row.held else "", row.approved_at[:16].replace("T", " "), row.task)
        for place, row in enumerate(rows, 1)
    ]
    show_table("", ("", "run", "", "approved", "task"), cells, wrap="task")
    if not rows:
        click.echo("no approved run waits to land", err=True)


@queue_command.command("hold")
@click.argument("run")
@root_option
def hold_run(run: str, root: Path | None) -> None:
    """Hold RUN back: `interlock land --queue` leaves it out."""
    _hold(run, root, on=True)


@queue_command.command("release")
@click.argument("run")
@root_option
def release_run(run: str, root: Path | None) -> None:
    """Let RUN land with the queue again."""
    _hold(run, root, on=False)


def _hold(run: str, root: Path | None, *, on: bool) -> None:
    folder = resolve_root(root)
    name = known_run(folder, run)
    graph.hold(folder, name, on=on)
    click.echo(f"{name} is held back" if on else f"{name} lands with the queue")


@queue_command.command("move")
@click.argument("run")
@click.argument("place", type=click.IntRange(min=1))
@root_option
def move_run(run: str, place: int, root: Path | None) -> None:
    """Move RUN to a PLACE in the queue; 1 is the first."""
    folder = resolve_root(root)
    name = known_run(folder, run)
    graph.move(folder, name, place)
    order = [row.run_id for row in graph.queue_of(folder)]
    click.echo(f"{name} is number {order.index(name) + 1} of {len(order)}")
