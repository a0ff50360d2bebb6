"""`interlock uninstall`: takes back what init wrote into a project."""

from pathlib import Path

import click

from interlock.cli.context import json_option, root_option
from interlock.cli.init import client_option, take_back


@click.command("uninstall")
@client_option
@click.option("--dry-run", is_flag=True, help="Show what would be taken back, and write nothing.")
@root_option
@json_option
def uninstall_command(clients: tuple[str, ...], root: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Take back what `interlock init` wrote: every file as it was, byte for byte.

    A file that was edited since loses our part alone. Git's hooks go too, unless --client names a client. The program,
    the journal and what agents have reserved stay.
    """
    take_back(clients, root, dry_run=dry_run, as_json=as_json)
