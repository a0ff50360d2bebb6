"""`interlock completion`: the script that teaches a shell the command's words."""

from typing import Literal

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script of SHELL; add it to the shell's start-up file."""
    from interlock.cli.main import interlock  # noqa: PLC0415

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(interlock, {}, "interlock", "_INTERLOCK_COMPLETE").source())
