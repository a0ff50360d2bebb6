"""`interlock ui`: the pages, served to the browsers of this machine and opened by a link that works once."""

import json
import os
import sys
import webbrowser
from contextlib import ExitStack
from pathlib import Path

import click

from interlock.cli.answer import refuse_agents
from interlock.cli.context import json_option, login_name, resolve_root
from interlock.cli.serve import LOOPBACK, why_not


@click.command("ui")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A project's root, as often as there are projects; default: found upwards from here.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
@click.option("--read-only", is_flag=True, help="The link lets one look, and do nothing.")
@json_option
def ui_command(roots: tuple[Path, ...], port: int, no_browser: bool, read_only: bool, as_json: bool) -> None:
    """Open the pages: what waits for you, every run with its evidence and its changes, and who holds what.

    Prints a link that works once and opens it. A session lasts 12 hours, over restarts of the server too. Called again
    while the pages are served, it prints a new link. Objections and waivers are decided in pages opened from a
    terminal; `--json` prints {"url": …} with a link that reads and reviews.
    """
    refuse_agents("ui")
    from interlock.server.http.serving import HttpApp, listen, serve  # noqa: PLC0415 - `--help` needs none
    from interlock.web import Sessions, link, make_pages, serving  # noqa: PLC0415

    folders = [resolve_root(root) for root in roots] or [resolve_root(None)]
    # What decides has to come from a person at a terminal; a program that reads the link may look and review.
    at_terminal = not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    rights = "read" if read_only else "decide" if at_terminal else "review"
    sessions = Sessions(folders[0], login_name())

    def announce(url: str) -> None:
        address = link(url, sessions.invite(rights))
        if as_json:
            click.echo(json.dumps({"url": address}))
            sys.stdout.flush()
            return
        click.echo(f"interlock ui: {', '.join(map(str, folders))}, to a browser that may {rights}", err=True)
        click.echo(address)
        if not no_browser and not _opened(address):
            click.echo("no browser was found: open the link yourself; it works once, for 15 minutes", err=True)

    with ExitStack() as stack:
        running = stack.enter_context(serving(folders[0]))
        # Another `interlock ui` or `interlock serve` has the pages: one process for a project is enough.
        if running.url:
            announce(running.url)
            return
        try:
            bound = stack.enter_context(listen(LOOPBACK, port))
        except OSError as error:
            raise click.UsageError(why_not(error, port)) from error
        number = bound.getsockname()[1]
        # A page of another site could lead a browser here by a name of its own, so only these names are answered.
        hosts = frozenset({f"127.0.0.1:{number}", f"localhost:{number}"})
        pages = make_pages(folders, sessions, hosts=hosts)
        url = f"http://127.0.0.1:{number}{sessions.base}"

        def ready() -> None:
            running.announce(url)
            announce(url)
            if not as_json:
                click.echo("serves until Ctrl-C", err=True)

        serve(HttpApp(pages.app, pages.end_streams), bound, ready=ready)


def _opened(address: str) -> bool:
    """Open a browser of this machine; False where there is none, such as behind ssh."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
