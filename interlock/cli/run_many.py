"""Several tasks at once, each in a tree of its own: begun, driven side by side, and summed up."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

import click
from rich.console import Console

from interlock import graph
from interlock.cli.context import put_back_text, root_words, show_table, talk
from interlock.cli.events import EventStream
from interlock.cli.interrupt import stops_at_once
from interlock.cli.screen import Screen, Sparse
from interlock.core.database import address_of, database_of
from interlock.core.errors import Exit, InterlockError
from interlock.core.text import count
from interlock.gates.config import load_config

_LANDING: Final = Lock()
_REBUILDS: Final = 2
"""So often a run that conflicts goes back to its builder."""


@dataclass
class Job:
    """One task of several: how it began, and where it ended.

    `why` is what stopped it, where no view tells; `landing` is how it landed, where that was tried. `is_submitted`: a
    worker begins it, drives it and perhaps lands it, whether anybody waits for that or not.
    """

    task: graph.Task
    run_id: str = ""
    is_submitted: bool = False
    view: graph.RunView | None = None
    landing: graph.Landing | None = None
    why: str = ""
    seconds: float = 0.0

    def fail(self, error: InterlockError) -> None:
        """Note, and say, what stopped it."""
        self.why = f"{error.code} {error.message} {error.fix}"
        Prefixed(self.run_id or self.task.task_id).print(f"stopped: {self.why}", style="red", markup=False)

    @property
    def end(self) -> str:
        """Where it ended, in a word."""
        if self.view is None:
            return "stopped" if self.run_id else "not begun"
        if self.landing is not None:
            return self.landing.state
        return "waiting" if self.view.phase == "waiting" else str(self.view.status)


class Prefixed(Console):
    """A console that begins each line with the name of what it is about."""

    def __init__(self, name: str) -> None:
        super().__init__(stderr=True, highlight=False, soft_wrap=True)
        self._name = name

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as a console does, each line of a text with the name before it."""
        for each in objects:
            for line in each.splitlines() if isinstance(each, str) else [each]:
                super().print(self._name, line, **options)


def task_files(paths: Sequence[Path]) -> list[Path]:
    """Return the task files that are named; of a folder, those in it.

    Raises:
        click.UsageError: A folder has none.
    """
    found: list[Path] = []
    for path in paths:
        rows = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not rows:
            raise click.UsageError(f"{path} holds no task file (*.toml)")
        found += rows
    return found


def check_clean(folder: Path, *, with_changes: bool, otherwise: str = "") -> None:
    """Say what is not in a tree that begins with the last commit.

    Raises:
        GraphError: Files that git tracks are changed, and nobody said what that means.
    """
    changed, new = graph.unsaved(folder)
    if changed and not with_changes:
        raise graph.GraphError(
            f"{count(len(changed), 'file')} of the checkout {'is' if len(changed) == 1 else 'are'} changed and not "
            f"committed, and a tree of its own begins with a commit: {', '.join(changed[:5])}",
            "Commit them"
            + (
                otherwise
                or "; or take them along with `--with-changes`; or work in the checkout itself, one task at a time: "
                "`interlock run --here TASK.toml`."
            ),
            graph.TREE,
        )
    if new and not with_changes:
        text = f"note: {count(len(new), 'new file')} of the checkout will be in no tree, since git does not track it"
        talk().print(f"{text}: {', '.join(new[:5])}", style="yellow", markup=False)


def run_many(
    folder: Path, tasks: Sequence[graph.Task], begin: graph.Start, *, jobs: int, land: bool, as_json: bool
) -> tuple[list[Job], int]:
    """Run tasks, at most `jobs` at a time, each in a tree of its own; return them with the exit code.

    With `land` each lands once it is approved.
    """
    rows = [Job(task) for task in tasks]
    again = f"interlock resume RUN{root_words(folder)}"
    with stops_at_once(f"stopped; the runs are kept. Go on with: {again}"), ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(_run, folder, job, begin, land=land, as_json=as_json) for job in rows]:
            future.result()
    return rows, _exit_code(rows)


def _run(folder: Path, job: Job, begin: graph.Start, *, land: bool, as_json: bool) -> None:
    started = time.monotonic()
    try:
        candidates = graph.candidates_of(job.task, load_config(folder), folder)
        if candidates:
            _best(folder, job, [Job(task) for task in candidates], begin, as_json=as_json)
        else:
            begin_job(folder, job, begin, land=land)
            drive_job(folder, job, as_json=as_json)
        if land and job.end == "APPROVED":
            land_job(folder, job, as_json=as_json)
    except InterlockError as error:
        job.fail(error)
    finally:
        job.seconds = time.monotonic() - started


def begin_job(folder: Path, job: Job, begin: graph.Start, *, until: str = "", land: bool = False) -> None:
    """Begin the run of a job in a tree of its own; with a database, have a worker begin it and drive it on."""
    console = Prefixed(job.task.task_id)
    if (database := database_of(folder)) is not None:
        graph.check_workers(database)
        job.run_id = graph.ask_to_begin(folder, database, job.task, begin, until=until, land=land)
        job.is_submitted = True
        return
    job.run_id = graph.start_apart(
        folder,
        job.task,
        begin,
        warn=lambda text: console.print(f"warning: {text}", style="yellow", markup=False),
        progress=Sparse.on(console),
    )


def drive_job(folder: Path, job: Job, *, as_json: bool, until: str = "") -> None:
    """Drive the run of a job, and say what happens on lines that begin with its id."""
    console = Prefixed(job.run_id)
    screen = Screen(console, live=False, answering=())
    notices: list[Callable[[Mapping[str, Any]], None]] = [screen.notice]
    events = None
    if as_json:
        again = f"interlock resume {job.run_id}"
        events = EventStream.begun(job.run_id, job.task.task_id, sys.stdout, again=again)
        notices.append(events.notice)

    def notice(step: Mapping[str, Any]) -> None:
        match step["kind"]:
            case "warning" | "progress" | "landing":  # of a run that a worker begins and lands
                console.print(step.get("text") or step["line"], markup=False)
            case _:
                for each in notices:
                    each(step)

    with screen:
        if job.is_submitted:
            job.view = graph.follow(job.run_id, root=folder, notice=notice)
        else:
            job.view = graph.drive(job.run_id, root=folder, notice=notice, until=until)
    job.is_submitted = False
    if events is not None:
        events.notice({"kind": "summary", **graph.run_summary(job.view, folder)})
    console.print(job.end, markup=False, style="green" if job.end in ("APPROVED", until) else "red")


def _best(folder: Path, job: Job, candidates: Sequence[Job], begin: graph.Start, *, as_json: bool) -> None:
    """Run the candidates of a task, and take the best one on; `job` becomes that one."""

    def build(row: Job) -> None:
        try:
            begin_job(folder, row, begin, until=graph.BEFORE_REVIEW)
            drive_job(folder, row, as_json=as_json, until=graph.BEFORE_REVIEW)
        except InterlockError as error:  # the others may do better
            row.fail(error)

    with ThreadPoolExecutor(len(candidates)) as pool:
        for future in [pool.submit(build, row) for row in candidates]:
            future.result()
    every = [row.run_id for row in candidates if row.run_id]
    green, console = graph.green_of(folder, every), Prefixed(job.task.task_id)
    sizes = ", ".join(f"{row.run_id} ({count(row.lines, 'line')})" for row in green) or "none"
    console.print(f"{len(green)} of {count(len(candidates), 'candidate')} passed the gates: {sizes}", markup=False)
    # Where none passed, the first one says why.
    best = candidates[0]
    for row in green:
        best = next(each for each in candidates if each.run_id == row.run_id)
        graph.keep_choice(folder, row.run_id, green, every)
        drive_job(folder, best, as_json=as_json)
        if best.end == "APPROVED":
            break
    job.task, job.run_id, job.view, job.why = best.task, best.run_id, best.view, best.why
    for row in every:
        if row != best.run_id:
            graph.abandon(folder, row)


def _said_on(console: Console) -> Callable[[Mapping[str, Any]], None]:
    said = Sparse.on(console)
    return lambda step: said(step["line"])


def land_job(folder: Path, job: Job, *, as_json: bool = False) -> None:
    """Land the run of a job; one that conflicts with what has landed goes back to its builder, and lands then."""
    for _ in range(1 + _REBUILDS):
        console = Prefixed(job.run_id)
        with _LANDING:  # what lands is judged on what has landed
            (job.landing,) = graph.land(folder, [job.run_id], notice=_said_on(console))
        if not job.landing.rebuilt:
            break
        console.print(f"{job.landing.error}; run {job.landing.rebuilt} begins", style="yellow", markup=False)
        job.run_id, job.landing, job.is_submitted = job.landing.rebuilt, None, bool(address_of(folder))
        drive_job(folder, job, as_json=as_json)
        if job.end != "APPROVED":
            return
    job.why = str(job.landing.error) if job.landing and job.landing.error else ""


def _exit_code(rows: Sequence[Job]) -> int:
    if any(job.view is None for job in rows):
        return Exit.USAGE
    if any(job.view is not None and job.view.phase == "waiting" for job in rows):
        return Exit.WAITING
    return Exit.GOOD if all(job.end in ("APPROVED", "landed") for job in rows) else Exit.REFUSED


def show_jobs(rows: Sequence[Job], folder: Path) -> None:
    """Print where each task ended, and what to do next."""

    def cells(job: Job) -> Iterator[object]:
        reasons = () if job.view is None else job.view.values.get("fail_reasons", ())
        yield from (job.run_id or job.task.task_id, job.end, f"{job.seconds:.0f} s")
        yield job.landing.commit[:12] if job.landing else ""
        yield from (job.task.task, job.why or "; ".join(reasons[:1]))

    head = ("run", "end", "time", "commit", "task", "why")
    show_table("", head, [list(cells(job)) for job in rows], wrap="why")
    for job in rows:
        if job.view is not None and (paths := graph.run_summary(job.view, folder)["put_back"]):
            click.echo(f"put back in {job.run_id}: {put_back_text(job.run_id, paths, folder)}")
    if ready := [job.run_id for job in rows if job.end == "APPROVED"]:
        click.echo(f"next: interlock land {' '.join(ready)}{root_words(folder)}")
