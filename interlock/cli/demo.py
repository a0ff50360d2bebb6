"""`interlock demo`: an example in a folder of its own, with scripted agents and real gates."""

import shutil
import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click

from interlock.cli.context import talk
from interlock.cli.events import events_option
from interlock.cli.run import drive_and_show
from interlock.cli.screen import Sparse
from interlock.core import git
from interlock.gates.config import load_config
from interlock.gates.sealed import Store
from interlock.graph import TaskError, load_task, start_run

EXAMPLES: Final = ("landing-page", "pytest-project")
"""The examples that hold a task, which the package brings along."""

_MARK = ".interlock-demo"


@click.command("demo")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("interlock-demo"),
    show_default=True,
    help="Where to run it; emptied first if an earlier demo made it.",
)
@click.option(
    "--example",
    type=click.Choice(EXAMPLES),
    default=EXAMPLES[0],
    show_default=True,
    help="Which example.",
)
@events_option
def demo_command(folder: Path, example: str, as_json: bool) -> None:
    """Run an example from a first hand-over that fails its gates to APPROVED.

    landing-page: a page with faults, checked by a browser. pytest-project: a library with a bug, and an agent that
    weakens the failing test before it fixes the bug; needs pytest and git.
    """
    work = folder.resolve()
    _prepare(work)
    shutil.rmtree(Store(work).folder, ignore_errors=True)  # what an earlier demo there recorded
    with as_file(files("interlock").joinpath("examples", example)) as source:
        shutil.copytree(source, work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    # An example without a command gate needs no git.
    if any(row.command for row in load_config(work).gates.values()):
        _make_checkout(work)
    console = talk()
    console.print(f"demo in {work}")
    task = load_task(work / "task.toml")
    run_id = start_run(work, task, progress=Sparse.on(console))
    code = drive_and_show(run_id, work, as_json=as_json)
    if not as_json:
        click.echo(f"{'folder':<12}{work}")
    sys.exit(code)


def _make_checkout(work: Path) -> None:
    """Make the folder a checkout of its own: command gates are sealed there, and no checkout around it counts."""
    done = git.run(work, ["init", "--quiet"])
    if done.status != 0:
        raise TaskError(f"`git init` failed in {work}: {done.why}", "Install git; this example needs it.")


def _prepare(work: Path) -> None:
    """Make an empty folder; one that an earlier demo did not make is left alone."""
    if work.exists() and any(work.iterdir()):
        if not (work / _MARK).exists():
            raise TaskError(
                f"{work} is not empty and was not made by a demo",
                "Choose another folder: `--dir DIR`, or `make demo DIR=DIR`.",
            )
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    (work / _MARK).write_text("This folder is emptied by the next demo.\n", encoding="utf-8")
