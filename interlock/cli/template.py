"""`interlock init --template`: the files that a project starts with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from interlock.cli.context import print_json, root_words
from interlock.core.text import closest
from interlock.install.templates import TASK, TEMPLATES, existing, render, suggested, write

OPTION: Final = "--template"


def complete_template(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the templates that begin so, with what their tests are."""
    return [CompletionItem(row.name, help=row.title) for row in TEMPLATES.values() if row.name.startswith(incomplete)]


def write_template(name: str, home: Path, *, dry_run: bool, show: bool, as_json: bool) -> None:
    """Write the files of a template into a project, or show them.

    Raises:
        InstallError: One of the files is there; nothing was written.
        click.UsageError: There is no such template.
    """
    if name not in TEMPLATES:
        raise click.UsageError(_unknown(name, home))
    files = render(TEMPLATES[name], home)
    refused = {problem.path for problem in existing(home, files)}
    if not dry_run:
        write(home, files)
    if as_json:
        print_json(_data(name, home, files, dry_run=dry_run))
        return
    if Path.cwd() != home:
        click.echo(f"in {home}:")
    for path, text in files.items():
        click.echo(f"{path}: {_note(refused=path in refused, dry_run=dry_run)}")
        if show:
            click.echo(text)
    if dry_run:
        click.echo("nothing was written (--dry-run)")
        return
    model = "command:claude" if name == "page" else "builder=command:claude"
    where = root_words(home)
    click.echo(f"next: say in {TASK} what is to be done, and which files the work may touch")
    click.echo(f"check it: interlock check {TASK} --model {model}{where}")
    click.echo(f"run it: interlock run {TASK} --model {model}{where}")


def _note(*, refused: bool, dry_run: bool) -> str:
    return "is there, and would be refused" if refused else "would be made" if dry_run else "made"


def _unknown(name: str, home: Path) -> str:
    near = closest(name, TEMPLATES)
    hints: Sequence[str] = [f"{file} is here: {OPTION} {found}." for found, file in suggested(home).items()]
    if near:
        hints = [f"Did you mean `{near}`?"]
    return " ".join([f"there is no template `{name}`; the templates are {', '.join(TEMPLATES)}.", *hints])


def _data(name: str, home: Path, files: dict[str, str], *, dry_run: bool) -> dict[str, Any]:
    rows = [{"path": path, "content": text} for path, text in files.items()]
    return {
        "schema": "interlock.template/1",
        "root": str(home),
        "template": name,
        "written": not dry_run,
        "files": rows,
    }
