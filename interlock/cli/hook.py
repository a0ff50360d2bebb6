"""`interlock hook`: the row in the help; the entry takes hooks on a shorter way, past the command line."""

import click


@click.command("hook", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def hook_command(arguments: tuple[str, ...]) -> None:
    """Answer a hook of an agent's client or of git; `interlock hook --help` lists them."""
    from interlock.reservations.hooks.main import main  # noqa: PLC0415 - ends the process

    main(arguments)
