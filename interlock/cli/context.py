"""What the commands share: exit codes, the root, and the two streams."""

import json
import math
import shlex
import sys
from collections.abc import Sized
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from interlock.core.project import find_root


def talk() -> Console:
    """Return the console for people: stderr, colour only on a terminal."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def print_json(data: Any) -> None:
    """Print one JSON value on stdout."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


root_option = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project's root; default: found upwards from here.",
)
accept_option = click.option(
    "--accept-base",
    is_flag=True,
    help="Begin although tests, or files that decide a gate, are as an earlier run left them: you have looked at them.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Return an option's number; `nan` and `inf`, which click takes for numbers, are refused."""
    if not math.isfinite(value):
        raise click.BadParameter("it is no finite number", context, parameter)
    return value


def resolve_root(root: Path | None) -> Path:
    """Return the given root, or the one found from here."""
    return root.resolve() if root is not None else Path(find_root(""))


def count(items: int | Sized, noun: str, several: str = "") -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    number = items if isinstance(items, int) else len(items)
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def warn_of_configuration(root: Path) -> None:
    """Say on stderr what is wrong with a project's configuration; a server that goes on answers its calls with that."""
    from interlock.gates import build_protocol  # noqa: PLC0415
    from interlock.gates.config import load_config  # noqa: PLC0415 - and below: few commands serve
    from interlock.gates.errors import ConfigError  # noqa: PLC0415

    try:
        build_protocol(load_config(root))
    except ConfigError as error:
        for item in error.problems:
            click.echo(f"warning {item.code}: {item.text}\n  fix: {item.fix}", err=True)
        click.echo("Calls that need the configuration are refused with this until it is fixed.", err=True)


def root_words(root: Path) -> str:
    """Return the words that a command needs to find this root from the current folder; none when it finds it itself."""
    return "" if find_root("") == str(root) else f" --root {shlex.quote(str(root))}"
