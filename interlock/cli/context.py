"""What the commands share: options, the root, JSON or text, findings in the form that was asked for, and tables."""

import difflib
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, cast

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock import __version__
from interlock.catalog import catalog
from interlock.core.finding import Finding
from interlock.core.project import find_root
from interlock.core.render import FORMS, OF_SERVICES, Form, checked, render
from interlock.core.text import few, one_line

DataT = TypeVar("DataT")

_UNCUT_COLUMNS: Final = 10_000


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


EXISTING_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
EXISTING: Final = click.Path(exists=True, path_type=Path)
NEW_FILE: Final = click.Path(dir_okay=False, path_type=Path)

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
    # The variables LOGNAME and USER would do, but an agent can set them, and the name is evidence of who decided.
    import pwd  # noqa: PLC0415

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def resolve_root(root: Path | None) -> Path:
    """Return the given root, or the one found from here."""
    return root.resolve() if root is not None else Path(find_root(""))


def show_finding(finding: Finding, *, err: bool = True) -> None:
    """Print a finding: in one line place, code, part and message; below, what was found, what is right, what to do."""
    place = f"{finding.location}: " if finding.location else ""
    part = f" {finding.field}" if finding.field else ""
    click.echo(f"{place}{finding.level} {finding.code}{part}: {finding.message}", err=err)
    for name, text in (("found", finding.found), ("expected", finding.expected), ("fix", finding.fix)):
        if text:
            click.echo(f"  {name}: " + text.replace("\n", "\n            "), err=err)


def diff_text(before: bytes, after: bytes, before_name: str, after_name: str) -> str:
    """Return how two files differ; empty when they do not."""
    texts = [each.decode("utf-8", "replace").splitlines(keepends=True) for each in (before, after)]
    lines = difflib.unified_diff(texts[0], texts[1], before_name, after_name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def show_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, wrap: str = "") -> None:
    """Print a table of the columns that hold anything; nothing without rows.

    On a terminal the column `wrap` takes several lines where the table is too wide; into a pipe each row is one line.
    """
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    if not cells:
        return
    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="")
    # A column in which no row has anything, such as reasons, is left out.
    used = [at for at in range(len(head)) if any(row[at] for row in cells)]
    for at in used:
        drawn.add_column(head[at], no_wrap=head[at] != wrap)
    for row in cells:
        # Names of others are plain text: Rich would read brackets in them as its markup.
        drawn.add_row(*(Text(row[at]) for at in used))
    width = shutil.get_terminal_size().columns - 2 if sys.stdout.isatty() else _UNCUT_COLUMNS
    # Rich pads each line to the width of the table; what is printed ends where its text ends.
    console = Console(width=width, color_system=None, file=StringIO())
    with console.capture() as lines:
        console.print(drawn)
    if title:
        click.echo(title)
    for line in lines.get().splitlines():
        click.echo(f"  {line.rstrip()}")


def warn_of_configuration(root: Path) -> None:
    """Say on stderr what is wrong with a project's configuration; a server that goes on answers its calls with that."""
    from interlock.gates import build_protocol  # noqa: PLC0415
    from interlock.gates.config import load_config  # noqa: PLC0415 - and below: few commands serve
    from interlock.gates.errors import ConfigError  # noqa: PLC0415

    try:
        build_protocol(load_config(root))
    except ConfigError as error:
        for item in error.problems:
            show_finding(item._replace(level="warning"))
        click.echo("Calls that need the configuration are refused with this until it is fixed.", err=True)


def root_words(root: Path) -> str:
    """Return the words that a command needs to find this root from the current folder; none when it finds it itself."""
    return "" if find_root("") == str(root) else f" --root {shlex.quote(str(root))}"


def put_back_text(run_id: str, paths: Sequence[str], root: Path) -> str:
    """Return which files a run put back, and what shows the changes that it took back by that."""
    return f"{few(paths, 5)} (as in the base; the agent's text: interlock restore {run_id} --show{root_words(root)})"


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

    A service gets the findings, with paths from the top of the repository; `path` is the file of those that name none.
    JSON is `data`, and a person reads what `text` prints.
    """
    if form in OF_SERVICES:
        rows = checked(in_repository(root, findings, path))
        click.echo(render(rows, form, rules=catalog().values(), version=__version__), nl=False)
    elif form == "json":
        print_json(data)
    else:
        text()
    sys.exit(code)


def in_repository(root: Path, findings: Iterable[Finding], path: str = "") -> list[Finding]:
    """Return findings at their files as a service knows these, from the top of the repository; others as they are."""
    from interlock.gates.sealed import place_of  # noqa: PLC0415 - few calls are for a service

    _, relative = place_of(root)

    def known(name: str) -> str:
        seen = os.path.relpath(root / name, root) if name else ".."
        return name if seen.startswith("..") else f"{relative}/{seen}".lstrip("/")

    return [row._replace(path=known(row.path or path)) for row in findings]
