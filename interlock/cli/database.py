"""`interlock database setup | migrate`: the database that several machines share."""

from pathlib import Path

import click

from interlock import graph
from interlock.cli.context import json_option, resolve_root, root_option, show
from interlock.core.database import check_address


@click.group("database")
def database_command() -> None:
    """Make and describe the database that machines share."""


@database_command.command("setup")
@click.option("--print", "printed", is_flag=True, help="Print the SQL instead of running it.")
@click.option("--roles", is_flag=True, help="Also the roles interlock_worker, interlock_server and interlock_reader.")
@root_option
@json_option
def setup_command(printed: bool, roles: bool, root: Path | None, as_json: bool) -> None:
    """Make the tables in the project's database, or bring them up to date. Safe to repeat, while workers run, too."""
    if printed:
        click.echo((graph.setup_sql() + graph.roles_sql()) if roles else graph.setup_sql(), nl=False)
        return
    address = graph.needed(resolve_root(root)).address
    version = graph.set_up(address, roles=roles)
    text = f"tables of version {version} are there; next: interlock worker"
    show({"version": version}, lambda _data: click.echo(text), as_json=as_json)


@click.command("migrate")
@click.option("--to", "address", required=True, metavar="URL", help="The database; `interlock database setup` made it.")
@root_option
@json_option
def migrate_command(address: str, root: Path | None, as_json: bool) -> None:
    """Copy journal, runs, evidence and reservations of this project into a database, and compare the heads."""
    folder = resolve_root(root)
    check_address(address, "--to")
    found = graph.migrate(folder, address)

    def text(_data: object) -> None:
        click.echo(f"copied {found.lines} journal lines, {found.runs} runs, {found.rows} rows of reservations")
        click.echo(f"verified: {found.heads} heads are the same here and there")
        click.echo(f'next: write `database = "{address}"` into interlock.toml, commit it, and start interlock worker')

    show(found._asdict(), text, as_json=as_json)
