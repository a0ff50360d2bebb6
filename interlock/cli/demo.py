"""`interlock demo`: the example task in a folder of its own, with scripted agents, a real page and a real browser."""

import shutil
import sys
from importlib.resources import as_file, files
from pathlib import Path

import click

from interlock.cli.context import talk
from interlock.cli.events import events_option
from interlock.cli.run import drive_and_show
from interlock.graph.errors import TaskError
from interlock.graph.runs import start_run
from interlock.graph.task import load_task

_MARK = ".interlock-demo"


@click.command("demo")
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("interlock-demo"),
              show_default=True, help="Where to run it; emptied first if an earlier demo made it.")  # fmt: skip
@click.option("--example", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Run another folder that holds a task.toml.")  # fmt: skip
@events_option
def demo_command(folder: Path, example: Path | None, as_json: bool) -> None:
    """Run the landing page example: a first hand-over that fails its gates, a rework, QA, review, APPROVED."""
    work = folder.resolve()
    _prepare(work)
    if example is not None:
        shutil.copytree(example, work, dirs_exist_ok=True)
    else:
        with as_file(files("interlock").joinpath("examples", "landing-page")) as source:
            shutil.copytree(source, work, dirs_exist_ok=True)
    talk().print(f"demo in {work}")
    run_id = start_run(work, load_task(work / "task.toml"))
    code = drive_and_show(run_id, work, as_json=as_json)
    if not as_json:
        click.echo(f"{'folder':<12}{work}")
    sys.exit(code)


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
