"""What the commands share: options, the root, the two streams, and findings in the form that was asked for."""

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import click
from rich.console import Console

from interlock import __version__
from interlock.catalog import catalog
from interlock.core.finding import Finding
from interlock.core.project import find_root
from interlock.core.render import FORMS, OF_SERVICES, Form, checked, render

DataT = TypeVar("DataT")


def talk() -> Console:
    """Return the console for people: stderr, colour only on a terminal."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def print_json(data: Any) -> None:
    """Print one JSON value on stdout."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def show(data: DataT, text: Callable[[DataT], object], *, as_json: bool) -> None:
    """Print JSON, or what a person reads."""
    if as_json:
        print_json(data)
    else:
        text(data)


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
        raise click.BadParameter("not a finite number", context, parameter)
    return value


def login_name() -> str:
    """Return the login name of who runs this process: that of its user, whatever the environment says."""
    import pwd  # noqa: PLC0415

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def resolve_root(root: Path | None) -> Path:
    """Return the given root, or the one found from here."""
    return root.resolve() if root is not None else Path(find_root(""))


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


form_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="How findings are printed: text, json, sarif for code scanning, or github for annotations of a workflow.",
)


def asked(form: str | None, *, as_json: bool) -> Form:
    """Return the form that `--format` and `--json` ask for."""
    if as_json and form not in (None, "json"):
        raise click.UsageError("--json and --format contradict each other; leave one out")
    return "json" if as_json else cast("Form", form or "text")


def report(
    findings: Iterable[Finding],
    form: Form,
    root: Path,
    data: Mapping[str, Any],
    text: Callable[[], object],
    *,
    path: str = "",
    code: int,
) -> NoReturn:
    """Print what a command found in the form that was asked for, and exit.

    A service gets the findings, with paths from the root; `path` is the file of those that name none. JSON is `data`,
    and a person reads what `text` prints.
    """
    if form in OF_SERVICES:
        rows = [row._replace(path=_from(root, row.path or path)) for row in findings]
        click.echo(render(checked(rows), form, rules=catalog().values(), version=__version__), nl=False)
    elif form == "json":
        print_json(data)
    else:
        text()
    sys.exit(code)


def _from(root: Path, path: str) -> str:
    seen = os.path.relpath(root / path, root) if path else ""
    return path if seen.startswith("..") else seen
