"""`interlock worker | submit | workers`: runs that other machines drive."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from interlock import graph
from interlock.cli.context import (
    EXISTING_FILE,
    json_option,
    print_json,
    resolve_root,
    root_option,
    show,
    show_table,
    talk,
)
from interlock.cli.run import exit_code, known_run, show_summary
from interlock.cli.run_many import Job, check_clean, drive_job, land_job
from interlock.core.errors import Exit
from interlock.gates.config import load_config


@click.command("worker")
@click.option(
    "--queues",
    default="drive,command,browser,llm",
    show_default=True,
    help="What this machine does: begin and end runs; programs; looks at pages; models over an API.",
)
@click.option("--concurrency", type=click.IntRange(1, 64), default=3, show_default=True, help="Runs of each at once.")
@root_option
def worker_command(queues: str, concurrency: int, root: Path | None) -> None:
    """Drive the runs of a project with a database, until SIGTERM: then the running steps end, and others go on."""
    folder = resolve_root(root)
    names = [name.strip() for name in queues.split(",") if name.strip()]
    if unknown := [name for name in names if name not in graph.QUEUES]:
        raise click.UsageError(f"there is no queue {', '.join(unknown)}; there are {', '.join(graph.QUEUES)}")
    graph.Worker(
        folder, names, concurrency, lambda line: click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)
    ).work()


@click.command("submit")
@click.argument("paths", nargs=-1, required=True, metavar="TASK_FILE...", type=EXISTING_FILE)
@click.option("--wait", is_flag=True, help="Wait until it is over or waits for an answer, and report that.")
@click.option("--land", is_flag=True, help="Land it once it is APPROVED.")
@click.option(
    "--priority", type=click.IntRange(1, 1000), default=100, show_default=True, help="A lower number goes first."
)
@click.option("--model", "models", multiple=True, metavar="[ROLE=]SPEC", help="As for `interlock run`.")
@root_option
@json_option
def submit_command(
    paths: tuple[Path, ...],
    wait: bool,
    land: bool,
    priority: int,
    models: tuple[str, ...],
    root: Path | None,
    as_json: bool,
) -> None:
    """Put tasks into the queue of a project with a database; a worker begins each from the last commit.

    Whether a task can begin says `interlock check TASK_FILE`.
    """
    folder = resolve_root(root)
    database = graph.needed(folder)
    check_clean(folder, with_changes=False, otherwise="; or take them along: `interlock run --with-changes TASK.toml`.")
    config = load_config(folder)
    # All are read before one is put there.
    jobs = [Job(graph.staffed(graph.load_task(path), config, folder, models), is_submitted=True) for path in paths]
    begin = graph.Start(graph.target_commit(folder, config.landing.target))
    for job in jobs:
        job.run_id = graph.ask_to_begin(folder, database, job.task, begin, land=land, priority=priority)
    if not graph.workers_alive(database):
        talk().print("note: no worker is alive; they begin when one is: interlock worker", style="yellow")
    if not wait:
        runs = [job.run_id for job in jobs]
        show({"runs": runs}, lambda _data: [click.echo(run) for run in runs], as_json=as_json)
        return
    with ThreadPoolExecutor(len(jobs)) as pool:
        waiting = [pool.submit(drive_job, folder, job, as_json=False) for job in jobs]
    codes, rows = list[int](), list[dict[str, Any]]()
    for job, done in zip(jobs, waiting, strict=True):
        done.result()
        if land and job.end == "APPROVED":  # the worker has landed it, or says why not
            land_job(folder, job)
        view = graph.view_run(known_run(folder, job.run_id), root=folder)
        rows.append(graph.run_summary(view, folder) | graph.tree_after(view, folder))
        codes.append(Exit.REFUSED if job.why else exit_code(view))
        if not as_json:
            show_summary(rows[-1], folder)
        if job.why:
            click.echo(f"{job.run_id} has not landed: {job.why}", err=True)
    if as_json:
        print_json(rows)
    sys.exit(next((code for code in codes if code), Exit.GOOD))


@click.command("workers")
@root_option
@json_option
def workers_command(root: Path | None, as_json: bool) -> None:
    """Show the workers of a project, what each drives, what waits in which queue, and what is stalled."""
    folder = resolve_root(root)
    show(graph.overview(folder), _print_overview, as_json=as_json)


def _print_overview(found: graph.Overview) -> None:
    head = ("worker", "state", "queues", "at once", "drives", "seen")
    rows = [
        (
            *(row["id"], row["state"], ",".join(row["queues"]), row["concurrency"], " ".join(row["runs"])),
            f"{row['seen_seconds']:.0f} s ago",
        )
        for row in found["workers"]
    ]
    show_table("", head, rows)
    if not rows:
        click.echo("no worker; start one: interlock worker")
    rows = [(row["queue"], row["waiting"], row["running"], f"{row['oldest_seconds']:.0f} s") for row in found["queues"]]
    show_table("queues", ("queue", "waiting", "running", "oldest"), rows)
    show_table("stalled", ("run", "why", "next"), [(row["run"], row["why"], row["next"]) for row in found["stalled"]])
