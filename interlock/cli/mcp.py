"""`interlock mcp`: the MCP server on standard input and output."""

import logging
import os
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Final

import click

from interlock.cli.context import resolve_root, root_option, warn_of_configuration

LEAVE_SECONDS: Final = 8.0
"""How long the service may take to end; the requests that came last have most of it."""
STRAY_SECONDS: Final = 0.5
"""How long threads that nobody waits for any more may take after that."""


@click.command("mcp")
@click.option(
    "--toolsets",
    metavar="A,B",
    help="Which toolsets to offer, by commas: tickets, tasks, reservations, envelope (the default), or poc.",
)
@root_option
def mcp_command(toolsets: str | None, root: Path | None) -> None:
    """Serve this project's tools to one agent host over standard input and output.

    Ends with 0 when the host closes its side, or on Ctrl-C. Standard output carries the protocol alone; messages
    go to stderr.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    import anyio  # noqa: PLC0415 - and the SDK below: a second to import, and `--help` needs neither

    from interlock.server import ALL, make_server  # noqa: PLC0415

    folder = resolve_root(root)
    server = make_server(folder, toolsets=ALL if toolsets is None else toolsets.split(","))
    warn_of_configuration(folder)
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - it was closed
        click.echo(
            f"interlock serves {folder} and waits for MCP messages on standard input; an agent host starts it "
            "(`interlock init` connects one), Ctrl-C ends it",
            err=True,
        )
    anyio.run(partial(server.run_stdio_async, leaving=partial(_leave, LEAVE_SECONDS)))
    _leave(STRAY_SECONDS)


def _leave(seconds: float) -> None:
    """End the process soon: a thread that waits for an agent cannot be stopped, and what is written down is whole."""
    last = threading.Timer(seconds, os._exit, (0,))
    last.daemon = True
    last.start()
