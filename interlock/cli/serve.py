"""`interlock mcp` and `interlock serve`: the MCP server on standard input and output, and over HTTP; and the hooks."""

import errno
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from interlock.cli.context import json_option, login_name, resolve_root, root_option, root_words, warn_of_configuration

if TYPE_CHECKING:
    from interlock.server import InterlockServer
    from interlock.server.http.serving import HttpApp
    from interlock.server.http.tokens import TokenStore
    from interlock.web import Sessions

LOOPBACK: Final = "127.0.0.1"
STRAY_SECONDS: Final = 0.5
"""How long threads that nobody waits for any more may take once the service has ended."""


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
    # Somebody who tries the command by hand sees a program that hangs, unless it says what it waits for.
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - it was closed
        click.echo(
            f"interlock serves {folder} and waits for MCP messages on standard input; an agent host starts it "
            "(`interlock init` connects one), Ctrl-C ends it",
            err=True,
        )
    # What is written down is whole at any moment, and a thread that waits for input or for an agent cannot be stopped.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    anyio.run(server.run_stdio_async)
    # A thread that still waits for an agent would keep the process, and the host would wait for it to end.
    last = threading.Timer(STRAY_SECONDS, os._exit, (0,))
    last.daemon = True
    last.start()


def _end(_number: int, _frame: object) -> None:
    os._exit(0)


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option("--toolsets", help="Which toolsets, by commas; default: all.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="HOST[:PORT]", help="A further Host header to answer to, in full."
)
@root_option
@json_option
def serve_command(
    port: int,
    toolsets: str | None,
    hosts: tuple[str, ...],
    root: Path | None,
    as_json: bool,
) -> None:
    """Serve this project's tools to agents over HTTP, each known by its token, and its pages to people.

    It listens on 127.0.0.1; a TLS proxy makes it reachable from elsewhere. `interlock ui` prints a link to the pages.

    Stops on Ctrl-C. `--json` prints the address as {"url": …} on stdout once it listens.
    """
    folder = resolve_root(root)
    if patterns := [host for host in hosts if "*" in host]:
        # The SDK would take `NAME:*` for every port, and anything behind the colon.
        raise click.UsageError(f"--allow-host: `{patterns[0]}` is a pattern. Give each Host header in full.")
    from interlock.server.http.tokens import TokenError, TokenStore  # noqa: PLC0415

    # Before the SDK is imported, which takes a second: without a token nothing is served.
    store = TokenStore(folder)
    records = store.records()
    if not records:
        raise TokenError(
            "TOK904",
            "nobody could call: this project has no token",
            f"Make one first: `interlock token create AGENT{root_words(folder)}`.",
        )
    # The SDK configures the root logger unless somebody did.
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")

    from interlock.server import ALL, make_server  # noqa: PLC0415
    from interlock.server.http.access import PATH  # noqa: PLC0415
    from interlock.server.http.serving import caller, hosts_of, listen, serve, url_of  # noqa: PLC0415
    from interlock.web import Sessions, serving  # noqa: PLC0415

    server = make_server(folder, toolsets=ALL if toolsets is None else toolsets.split(","), caller=caller)
    try:
        bound = listen(LOOPBACK, port)
    except OSError as error:
        raise click.UsageError(why_not(error, port)) from error
    warn_of_configuration(folder)
    sessions = Sessions(folder, login_name())
    # A TLS proxy makes the origin of its pages https, so each host that is allowed is also an origin.
    app, url = _with_pages(sessions, server, store, hosts_of(bound, hosts), hosts), url_of(bound)
    agents = ", ".join(sorted({record.agent for record in records}))

    def announce() -> None:
        click.echo(f"interlock serves {folder} at {url} to {agents}; stop with Ctrl-C", err=True)
        if as_json:
            click.echo(json.dumps({"url": url}))
            sys.stdout.flush()

    try:
        # Whoever serves the pages first announces them; `interlock ui` then prints a link to those.
        with serving(folder) as running:
            if not running.url:
                running.announce(url.removesuffix(PATH) + sessions.base)
            serve(app, bound, ready=announce)
    finally:
        server.close()


def _with_pages(
    sessions: "Sessions",
    server: "InterlockServer",
    store: "TokenStore",
    names: frozenset[str],
    hosts: Iterable[str],
) -> "HttpApp":
    """Return the server, and for every other address the pages; a host of one's own may be behind a TLS proxy."""
    from interlock.server.http.access import HEALTH, PATH  # noqa: PLC0415
    from interlock.server.http.serving import HttpApp, http_app  # noqa: PLC0415
    from interlock.web import beside, make_pages  # noqa: PLC0415

    app = http_app(server, store, hosts=names)
    pages = make_pages([sessions.root], sessions, hosts=names, origins=[f"https://{host}" for host in hosts])
    both = beside(pages, app.app, app.end_streams, (PATH, HEALTH))
    return HttpApp(both.app, both.end_streams)


def why_not(error: OSError, port: int) -> str:
    """Return why a port cannot be listened on, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"--port: {port} is in use. Choose another port, or `--port 0` for a free one."
    return f"--port: {port} cannot be listened on: {error.strerror}. Use a port above 1023."


@click.command("hook", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def hook_command(arguments: tuple[str, ...]) -> None:
    """Answer a hook of an agent's client or of git; `interlock hook --help` lists them."""
    # This is the row in the help: the entry takes hooks on a shorter way, past the command line.
    from interlock.reservations.hooks.main import main  # noqa: PLC0415 - ends the process

    main(arguments)
