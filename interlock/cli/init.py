"""`interlock init`: makes this project's coding agents find the server, shows what it writes, and undoes it."""

import sys
from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.context import Exit, json_option, print_json, resolve_root, root_option, root_words
from interlock.install import (
    INSTALLATIONS,
    NAME,
    Change,
    Installation,
    InstallError,
    Launch,
    Problem,
    apply,
    apply_undo,
    find_launch,
    pick,
    plan,
    plan_undo,
)

_ALL: Final = "all"
_DEFAULT: Final = ("claude",)
_PLANNED: Final = {
    "made": "would be made",
    "entry added": "an entry would be added",
    "removed": "would be removed",
    "restored byte for byte": "would be restored byte for byte",
    "edited since: only the entry is taken out": "edited since: only the entry would be taken out",
}
"""What a dry run says in place of a note; notes of files that stay as they are hold for both."""


@click.command("init")
@click.option("--client", "clients", multiple=True,
              type=click.Choice([*(row.name for row in INSTALLATIONS), _ALL]),
              help="Whose configuration to write; may be repeated. Default: claude; for --undo all.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--undo", is_flag=True, help="Take back what init wrote.")
@root_option
@json_option
def init_command(clients: tuple[str, ...], root: Path | None, *, dry_run: bool, undo: bool, as_json: bool) -> None:
    """Connect this project's coding agents to `interlock mcp`.

    Writes one entry into the client's own file in the project, and nothing outside of it. What stands there stays.
    Either every file is written or none.
    """
    home = resolve_root(root)
    if home == Path.home().resolve():
        message = f"the root is your home folder ({home}), where these files would apply to every project"
        raise click.UsageError(f"{message}; run this in a project, or name one with --root")
    wanted = pick(clients or ((_ALL,) if undo else _DEFAULT))
    try:
        changes = plan_undo(home, wanted) if undo else plan(home, wanted, find_launch())
        if not dry_run:
            (apply_undo if undo else apply)(home, changes)
    except InstallError as error:
        if as_json:
            raise
        _show_problems(home, error.problems)
        sys.exit(Exit.USAGE)
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
                "client": change.installation.name,
                "path": change.path,
                "changed": not change.is_done,
                "note": _note(change, dry_run=dry_run),
                "differs": change.differs,
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
        click.echo(f"{change.path} ({change.installation.title}): {_note(change, dry_run=dry_run)}")
        if change.differs:
            click.echo(f"  it runs:          {change.differs}\n  init would write: {change.wanted}")
        click.echo(change.diff(), nl=False)
    todo = [change for change in changes if not change.is_done]
    kept = [change.path for change in changes if change.differs]
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
        _show_next(home, [change.installation for change in todo], launch)
    if kept:
        again = f"`interlock init --undo{root_words(home)}` where init wrote it"
        click.echo(f"to have it anew, take the entry `{NAME}` out of {', '.join(kept)} ({again}) and run init again")


def _note(change: Change, *, dry_run: bool) -> str:
    return _PLANNED.get(change.note, change.note) if dry_run else change.note


def _show_next(home: Path, written: list[Installation], launch: Launch) -> None:
    for row in written:
        click.echo(f"next, in {row.title}: {row.after.format(launch=launch)}")
    click.echo("then say to the agent: Work ticket DEMO-1 with Interlock.")
    click.echo(f"undo: interlock init --undo{root_words(home)}")


def _show_problems(home: Path, problems: tuple[Problem, ...]) -> None:
    if Path.cwd() != home:
        click.echo(f"in {home}:", err=True)
    for problem in problems:
        click.echo(f"{problem.path}: error {problem.code}: {problem.message}", err=True)
        click.echo(f"  found:    {problem.found}", err=True)
        click.echo(f"  expected: {problem.expected}", err=True)
        click.echo("  fix:      " + problem.fix.replace("\n", "\n            "), err=True)
    click.echo("nothing was written", err=True)
