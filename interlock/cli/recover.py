"""`interlock recover`: what was put back or kept twice of held files, and any version of them back again."""

from pathlib import Path
from typing import Any

import click

from interlock.cli.commit import from_here
from interlock.cli.context import diff_text, json_option, print_json, root_option
from interlock.cli.lease_calls import calls_of
from interlock.core.text import count
from interlock.reservations import place
from interlock.reservations.rules import shown
from interlock.reservations.versions import recovery

_MAX_ROWS = 50


@click.command("recover")
@click.argument("path", required=False, type=click.Path())
@click.option("--show", "shown_number", metavar="N", type=int, help="Show how version N differs from what is there.")
@click.option("--restore", "number", metavar="N", type=int, help="Write version N to where it was.")
@root_option
@json_option
def recover_command(
    path: str | None, shown_number: int | None, number: int | None, *, root: Path | None, as_json: bool
) -> None:
    """List what was put back of held files or kept twice, or the versions of PATH, and bring one back.

    Contents of held files are kept for a week, outside of the checkout. What --restore replaces is kept too.

    Example: interlock recover src/app.py; interlock recover --restore 12

    Exit 0 when it is done, 5 when another agent holds the file, 2 for wrong usage or when there is no such version.
    """
    if number is not None and shown_number is not None:
        raise click.UsageError("give --show or --restore, not both")
    found = place.find(str(root or Path.cwd()))
    if shown_number is not None:
        _show(found, shown_number, as_json=as_json)
    elif number is not None:
        _restore(root, found, number, as_json=as_json)
    else:
        name = "" if path is None else from_here(path, found.root)
        _list(recovery.listing(found, name), as_json=as_json)


def _list(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"schema": "interlock.recover/1", "versions": rows})
        return
    if not rows:
        click.echo("no held file was changed by others; `interlock recover FILE` lists the versions of one")
    for row in rows[:_MAX_ROWS]:
        by = f" ({', '.join(map(shown, row['others']))})" if row["others"] else ""
        holders = ", ".join(map(shown, row["holders"]))
        click.echo(f"{row['version']:>5}  {row['at']}  {shown(row['path'])}: {row['what']}{by}")
        click.echo(f"       held by {holders}; in {shown(row['root'])}")
    if len(rows) > _MAX_ROWS:
        click.echo(f"and {len(rows) - _MAX_ROWS} more; --json lists all")
    if rows:
        click.echo("interlock recover --show N shows a version, --restore N brings it back", err=True)


def _show(found: place.Place, number: int, *, as_json: bool) -> None:
    row, data = recovery.content(found, number)
    target = Path(row.root, row.path)
    is_file = target.is_file() and not target.is_symlink()
    present = target.read_bytes() if is_file else b""
    diff = diff_text(present, data, f"{row.path} (as it is)", f"{row.path} (version {number})")
    if as_json:
        print_json({"schema": "interlock.recover/1", "version": number, "path": row.path, "diff": diff})
        return
    click.echo(diff or "nothing differs", nl=not diff)


def _restore(root: Path | None, found: place.Place, number: int, *, as_json: bool) -> None:
    with calls_of(root) as mine:
        target, before = recovery.restore(mine, found, number)
    if as_json:
        print_json({"schema": "interlock.recover/1", "version": number, "written": target, "before": before})
        return
    click.echo(f"{count(1, 'file')} written: {target}")
    if before is not None:
        click.echo(f"what was there before: interlock recover --restore {before}", err=True)
