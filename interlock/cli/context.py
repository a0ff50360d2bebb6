"""What the commands share: exit codes, the root, and the two streams."""

import json
import math
import shlex
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any

import click
from rich.console import Console


class Exit(IntEnum):
    """Exit codes of every command."""

    GOOD = 0
    REFUSED = 1
    USAGE = 2
    WAITING = 3
    CONFLICT = 5
    INTERNAL = 70
    SYSTEM = 74


def talk() -> Console:
    """Return the console for people: stderr, colour only on a terminal."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def print_json(data: Any) -> None:
    """Print one JSON value on stdout."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


_MARKS = ("interlock.toml", ".interlock", ".git")


def find_root(start: Path | None = None) -> Path:
    """Return the project's root: the nearest folder upwards with `interlock.toml`, `.interlock` or `.git`, or here."""
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if any((folder / mark).exists() for mark in _MARKS)), here)


root_option = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project's root; default: found upwards from here.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Return an option's number; `nan` and `inf`, which click takes for numbers, are refused."""
    if not math.isfinite(value):
        raise click.BadParameter("it is no finite number", context, parameter)
    return value


def resolve_root(root: Path | None) -> Path:
    """Return the given root, or the one found from here."""
    return root.resolve() if root is not None else find_root()


def root_words(root: Path) -> str:
    """Return the words that a command needs to find this root from the current folder; none when it finds it itself."""
    return "" if find_root() == root else f" --root {shlex.quote(str(root))}"
