"""`interlock init`: makes this project's coding agents find the server, shows what it writes, and undoes it."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.context import Exit, json_option, print_json, resolve_root, root_option, root_words
from interlock.install import (
    CLIENTS,
    NAME,
    Change,
    InstallError,
    Problem,
    apply,
    apply_undo,
    find_launch,
    pick,
    plan,
    plan_undo,
)

_ALL: Final = "all"
_GIT: Final = "git"
_DEFAULT: Final = ("claude",)
_PLANNED: Final = {
    "made": "would be made",
    "entry added": "an entry would be added",
    "brought up to date": "would be brought up to date",
    "removed": "would be removed",
    "restored byte for byte": "would be restored byte for byte",
    "edited since: only the entry is taken out": "edited since: only the entry would be taken out",
}
"""What a dry run says in place of a note; notes of files that stay as they are hold for both."""


client_option = click.option(
    "--client",
    "clients",
    multiple=True,
    type=click.Choice([*CLIENTS, _GIT, _ALL]),
    help="Whose configuration; may be repeated; `git`: its hooks alone. Default: claude; to take back: all.",
)


@click.command("init")
@client_option
@click.option("--hooks/--no-hooks", default=True, help="Hooks that refuse edits and commits of what others hold.")
@click.option("--git-hooks/--no-git-hooks", default=True, help="Those of git among them.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--undo", is_flag=True, help="Take back what init wrote; the same as `interlock uninstall`.")
@root_option
@json_option
def init_command(
    clients: tuple[str, ...],
    root: Path | None,
    *,
    hooks: bool,
    git_hooks: bool,
    dry_run: bool,
    undo: bool,
    as_json: bool,
) -> None:
    """Connect this project's coding agents to `interlock mcp`, and guard what they reserve.

    Writes the entry of the server and the hooks into the client's own files in the project, and git's hooks into this
    repository, and nothing outside of them. What stands there stays; a git hook that stood there is called first.
    Either every file is written or none.
    """
    if undo and not (hooks and git_hooks):
        raise click.UsageError("--undo takes back everything of the clients it names; leave out --no-hooks")
    if undo:
        take_back(clients, root, dry_run=dry_run, as_json=as_json)
        return
    home = _project(root)
    wanted = pick(clients or _DEFAULT, hooks=hooks)
    with _problems_shown(home, as_json=as_json):
        changes = plan(home, wanted, find_launch(), git=hooks and git_hooks)
        if not dry_run:
            apply(home, changes)
    _answer(home, changes, dry_run=dry_run, undo=False, as_json=as_json)


def take_back(clients: tuple[str, ...], root: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Undo what init wrote for some clients; for all of them, and git's hooks, when none is named."""
    home = _project(root)
    with _problems_shown(home, as_json=as_json):
        changes = plan_undo(home, pick(clients or (_ALL,)), git=not clients or bool({_ALL, _GIT} & set(clients)))
        if not dry_run:
            apply_undo(home, changes)
    _answer(home, changes, dry_run=dry_run, undo=True, as_json=as_json)


def _project(root: Path | None) -> Path:
    home = resolve_root(root)
    if home == Path.home().resolve():
        message = f"the root is your home folder ({home}), where these files would apply to every project"
        raise click.UsageError(f"{message}; run this in a project, or name one with --root")
    return home


@contextmanager
def _problems_shown(home: Path, *, as_json: bool) -> Generator[None]:
    """Show every file that cannot be changed; the JSON of an error is written at the last door."""
    try:
        yield
    except InstallError as error:
        if as_json:
            raise
        _show_problems(home, error.problems)
        sys.exit(Exit.USAGE)


def _answer(home: Path, changes: tuple[Change, ...], *, dry_run: bool, undo: bool, as_json: bool) -> None:
    if as_json:
        print_json(_data(home, changes, dry_run=dry_run, undo=undo))
    else:
        _show(home, changes, dry_run=dry_run, undo=undo)


def _data(home: Path, changes: tuple[Change, ...], *, dry_run: bool, undo: bool) -> dict[str, Any]:
    return {
        "schema": "interlock.init/1",
        "root": str(home),
        "undo": undo,
        "written": not dry_run and any(not change.is_done for change in changes),
        "files": [
            {
                "name": change.name,
                "client": change.client,
                "path": change.path,
                "changed": not change.is_done,
                "note": _note(change, dry_run=dry_run),
                "differs": "\n".join(change.differs),
                "diff": change.diff(),
            }
            for change in changes
        ],
    }


def _show(home: Path, changes: tuple[Change, ...], *, dry_run: bool, undo: bool) -> None:
    """Print each file with its diff, then what to do next."""
    if Path.cwd() != home:
        click.echo(f"in {home}:")
    for change in changes:
        click.echo(f"{change.path} ({change.title}): {_note(change, dry_run=dry_run)}")
        for there, wanted in zip_longest(change.differs, change.wanted if change.differs else (), fillvalue="-"):
            click.echo(f"  it runs:          {there}\n  init would write: {wanted}")
        click.echo(change.diff(), nl=False)
    todo = [change for change in changes if not change.is_done]
    kept = list(dict.fromkeys(change.path for change in changes if change.differs))
    launch = find_launch()
    if todo and not undo:
        click.echo(launch.reason)
    if dry_run and todo:
        click.echo("nothing was written (--dry-run)")
    elif undo:
        click.echo("undone" if changes else "nothing to undo")
    elif not todo:
        click.echo("nothing was written" if kept else "all is done")
    else:
        for then in dict.fromkeys(f"next, in {change.title}: {change.then}" for change in todo if change.then):
            click.echo(then.format(launch=launch))
        click.echo("then say to the agent: Work ticket DEMO-1 with Interlock.")
        click.echo(f"undo: interlock init --undo{root_words(home)}")
    if kept:
        again = f"`interlock init --undo{root_words(home)}` where init wrote it"
        click.echo(f"to have it anew, take what is of `{NAME}` out of {', '.join(kept)} ({again}) and run init again")


def _note(change: Change, *, dry_run: bool) -> str:
    return _PLANNED.get(change.note, change.note) if dry_run else change.note


def _show_problems(home: Path, problems: tuple[Problem, ...]) -> None:
    if Path.cwd() != home:
        click.echo(f"in {home}:", err=True)
    for problem in problems:
        click.echo(f"{problem.path}: error {problem.code}: {problem.message}", err=True)
        click.echo(f"  found:    {problem.found}", err=True)
        click.echo(f"  expected: {problem.expected}", err=True)
        click.echo("  fix:      " + problem.fix.replace("\n", "\n            "), err=True)
    click.echo("nothing was written", err=True)
