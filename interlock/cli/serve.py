"""`interlock mcp` and `interlock serve`: the MCP server on standard input and output, and over HTTP; and the hooks."""

import errno
import json
import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from interlock.cli.context import json_option, login_name, resolve_root, root_option, root_words, warn_of_configuration

if TYPE_CHECKING:
    from interlock.server import InterlockServer
    from interlock.server.http.serving import HttpApp
    from interlock.server.http.tokens import TokenStore
    from interlock.web import Sessions

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


_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?", re.ASCII)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.ASCII)
_PLAIN = (
    "note: other machines reach this over plain HTTP: whoever sees the traffic has the tokens. "
    "Put TLS in front, or listen on 127.0.0.1 behind a proxy."
)
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option("--toolsets", help="Which toolsets, by commas; default: all.")
@click.option("--allow-remote", is_flag=True, help="Listen on an address that other machines reach.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="HOST[:PORT]", help="A further Host header to answer to, in full."
)
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN", help="A web origin whose pages may call.")
@root_option
@json_option
def serve_command(
    host: str,
    port: int,
    toolsets: str | None,
    allow_remote: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    root: Path | None,
    as_json: bool,
) -> None:
    """Serve this project's tools to agents over HTTP, each known by its token, and its pages to people.

    `interlock ui` prints a link to the pages.

    Stops on Ctrl-C. `--json` prints the address as {"url": …} on stdout once it listens.
    """
    _check_names(hosts, _HOST, "--allow-host", "`interlock.example.org` or `192.0.2.7:8765`")
    _check_names(origins, _ORIGIN, "--allow-origin", "`https://app.example.org`, without a path")
    folder = resolve_root(root)
    from interlock.server.http.tokens import TokenError, TokenStore  # noqa: PLC0415

    store = TokenStore(folder)
    records = store.records()
    if not records:
        raise TokenError(
            "TOK905",
            "nobody could call: this project has no token",
            f"Make one first: `interlock token create AGENT{root_words(folder)}`.",
        )
    # The SDK configures the root logger unless somebody did.
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")

    from interlock.server import ALL, make_server  # noqa: PLC0415
    from interlock.server.http.access import PATH, is_loopback  # noqa: PLC0415
    from interlock.server.http.serving import caller, hosts_of, listen, serve, url_of  # noqa: PLC0415
    from interlock.web import Sessions, serving  # noqa: PLC0415

    server = make_server(folder, toolsets=ALL if toolsets is None else toolsets.split(","), caller=caller)
    try:
        bound = listen(host, port)
    except OSError as error:
        raise click.UsageError(why_not(error, host, port)) from error
    address = str(bound.getsockname()[0])
    if not is_loopback(address):
        _refuse_remote(address, allow_remote, hosts)
    warn_of_configuration(folder)
    sessions = Sessions(folder, login_name())
    app, url = _with_pages(sessions, server, store, hosts_of(bound, hosts), hosts, origins), url_of(bound)
    agents = ", ".join(sorted({record.agent for record in records}))

    def announce() -> None:
        click.echo(f"interlock serves {folder} at {url} to {agents}; stop with Ctrl-C", err=True)
        if not is_loopback(address):
            click.echo(_PLAIN, err=True)
        if as_json:
            click.echo(json.dumps({"url": url}))
            sys.stdout.flush()

    try:
        with serving(folder) as running:
            if not running.url:
                running.announce(url.removesuffix(PATH) + sessions.base)
            serve(app, bound, ready=announce)
    finally:
        server.close()


def _with_pages(
    sessions: "Sessions", server: "InterlockServer", store: "TokenStore", names: frozenset[str], hosts: Iterable[str],
    origins: Iterable[str],
) -> "HttpApp":  # fmt: skip
    """Return the server, and for every other address the pages; a host of one's own may be behind a TLS proxy."""
    from interlock.server.http.access import HEALTH, PATH  # noqa: PLC0415
    from interlock.server.http.serving import HttpApp, http_app  # noqa: PLC0415
    from interlock.web import beside, make_pages  # noqa: PLC0415

    app = http_app(server, store, hosts=names, origins=origins)
    pages = make_pages([sessions.root], sessions, hosts=names, origins=[f"https://{host}" for host in hosts])
    both = beside(pages, app.app, app.end_streams, (PATH, HEALTH))
    return HttpApp(both.app, both.end_streams)


def _check_names(names: Iterable[str], pattern: re.Pattern[str], option: str, example: str) -> None:
    for name in names:
        if not pattern.fullmatch(name):
            raise click.UsageError(f"{option}: `{name}` is not accepted: {_mistake(name, option)}. Example: {example}.")


def _mistake(name: str, option: str) -> str:
    rest = name.partition("://")[2] or name
    if option == "--allow-host" and "://" in name:
        return f"a Host header has no `{name.partition('://')[0]}://` in front"
    if option == "--allow-origin" and "://" not in name:
        return "an origin begins with `http://` or `https://`"
    if "/" in rest:
        return f"it must not have a path, so remove `/{rest.partition('/')[2]}`"
    if "*" in rest:
        return "no pattern is accepted, since values are compared in full"
    if name != name.lower():
        return "it is compared in lower case"
    return "values are compared in full and in lower case"


def _refuse_remote(address: str, allow_remote: bool, hosts: tuple[str, ...]) -> None:
    """Refuse an address that other machines reach unless that is wanted and a name for it is known."""
    if not allow_remote:
        raise click.UsageError(
            f"{address} is reached by other machines, over plain HTTP: whoever sees the traffic has the tokens. "
            "Listen on 127.0.0.1 behind a TLS proxy, or add `--allow-remote`."
        )
    if address in _EVERYWHERE and not hosts:
        raise click.UsageError(
            f"{address} has no name of its own, and requests are accepted for known names alone. "
            "Add `--allow-host NAME:PORT` as clients write it."
        )


def why_not(error: OSError, host: str, port: int) -> str:
    """Return why an address cannot be listened on, and what to do."""
    if isinstance(error, socket.gaierror):
        return f"--host: `{host}` is not an address of this machine. Use 127.0.0.1."
    if error.errno == errno.EADDRINUSE:
        return f"--port: {port} on {host} is in use. Choose another port, or `--port 0` for a free one."
    if error.errno == errno.EACCES:
        return f"--port: {port} needs rights that this user does not have. Use a port above 1023."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host: {host} is not an address of this machine. Use 127.0.0.1."
    return f"{host}:{port} cannot be listened on: {error.strerror}. Use `--host 127.0.0.1 --port 0`."


@click.command("hook", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def hook_command(arguments: tuple[str, ...]) -> None:
    """Answer a hook of an agent's client or of git; `interlock hook --help` lists them."""
    # This is the row in the help: the entry takes hooks on a shorter way, past the command line.
    from interlock.reservations.hooks.main import main  # noqa: PLC0415 - ends the process

    main(arguments)
