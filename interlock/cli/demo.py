"""`interlock demo`: an example in a folder of its own, with scripted agents and real gates."""

import os
import re
import shutil
import sys
from contextlib import nullcontext
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from interlock.cli.context import talk
from interlock.cli.events import events_option
from interlock.cli.progress import Sparse
from interlock.cli.run import drive_and_show
from interlock.core import git
from interlock.gates.config import load_config
from interlock.gates.sealed import Store
from interlock.graph import TaskError, journal_path, load_task, start_run
from interlock.journal import Journal

EXAMPLES: Final = ("landing-page", "pytest-project")
"""The examples that hold a task, which the package brings along."""

_MARK = ".interlock-demo"


class _Example(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name as it is, or the path of the folder."""
        return value if value in EXAMPLES else super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so, and the folders."""
        names = [CompletionItem(name) for name in EXAMPLES if name.startswith(incomplete)]
        return [*names, *super().shell_complete(ctx, param, incomplete)]


@click.command("demo")
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("interlock-demo"),
              show_default=True, help="Where to run it; emptied first if an earlier demo made it.")  # fmt: skip
@click.option("--example", type=_Example(exists=True, file_okay=False, path_type=Path), default=EXAMPLES[0],
              show_default=True, help=f"{', '.join(EXAMPLES)}, or a folder that holds a task.toml.")  # fmt: skip
@events_option
def demo_command(folder: Path, example: str | Path, as_json: bool) -> None:
    """Run an example from a first hand-over that fails its gates to APPROVED.

    landing-page: a page with faults, checked by a browser. pytest-project: a library with a bug, and an agent that
    weakens the failing test before it fixes the bug; needs pytest and git.
    """
    work = folder.resolve()
    _prepare(work)
    shutil.rmtree(Store(work).folder, ignore_errors=True)  # what an earlier demo there recorded
    there = isinstance(example, Path)
    with nullcontext(example) if there else as_file(files("interlock").joinpath("examples", example)) as source:
        shutil.copytree(source, work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    if any(row.command for row in load_config(work).gates.values()):
        _make_checkout(work)
    console = talk()
    console.print(f"demo in {work}")
    task = load_task(work / "task.toml")
    run_id = start_run(work, task, progress=Sparse(lambda line: console.print(line, style="dim", markup=False)))
    code = drive_and_show(run_id, work, as_json=as_json)
    if not as_json:
        click.echo(f"{'folder':<12}{work}")
        _show_refusals(work, run_id)
    sys.exit(code)


def _make_checkout(work: Path) -> None:
    """Make the folder a checkout of its own: command gates are sealed there, and no checkout around it counts."""
    done = git.run(work, ["init", "--quiet"])
    if done.status != 0:
        raise TaskError(f"`git init` failed in {work}: {done.why}", "Install git; this example needs it.")


def _show_refusals(work: Path, run_id: str) -> None:
    for entry in Journal(journal_path(work)).entries(run_id):
        if entry.type == "status" and entry.data["to"] == "BLOCKED":
            for reason in entry.data["envelope"]["fail_reasons"]:
                click.echo(f"{'refused':<12}attempt {entry.data['attempt']}: {reason}")


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
    _exclude(work)


def _exclude(work: Path) -> None:
    """Keep the folder out of the commits of a checkout around it, whose `git add` a checkout in it would stop."""
    asked = git.run(work.parent, ["rev-parse", "--show-prefix", "--git-path", "info/exclude"])
    if asked.status == 0:
        prefix, path, *_ = asked.output.split(b"\n")
        exclude, name = work.parent / os.fsdecode(path), prefix + os.fsencode(work.name)
        line = b"/" + re.sub(rb"([\\*?\[])", rb"\\\1", name) + b"/"
        known = exclude.read_bytes() if exclude.exists() else b""
        if line not in known.splitlines():
            exclude.parent.mkdir(exist_ok=True)
            with exclude.open("ab") as file:
                file.write(b"\n"[: bool(known) and not known.endswith(b"\n")] + line + b"\n")
