"""`interlock notify`: the notification channels, what was sent lately, and a test of them."""

import sqlite3
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from interlock.cli.context import json_option, resolve_root, root_option, show
from interlock.core.errors import Exit
from interlock.core.text import count, one_line
from interlock.gates.config import load_config
from interlock.graph import state_dir
from interlock.notify import DeliveryError, Event, Settings, body_of, build, deliver, history, start_sender, waiting

_TEST = Event("test", "test", "test", "", "this is a test", "notifications of this project arrive here")


@click.command("notify")
@click.option("--test", "testing", is_flag=True, help="Send a test event now, in each way that is configured.")
@root_option
@json_option
def notify_command(testing: bool, root: Path | None, as_json: bool) -> None:
    """Show how `[notify]` notifies people, and what became of the last notifications.

    Where some wait and nobody sends them, for instance after a restart of the machine, they are sent on.

    Exit codes: 0 all was delivered, or is still tried; 1 a test or the last notification in some way failed; 2 nothing
    is configured for --test.
    """
    folder = resolve_root(root)
    settings = build(load_config(folder).notify)
    if testing and not settings.channels:
        raise click.UsageError("[notify] has no command, webhook or desktop; docs/notifications.md shows them")
    data = _tested(folder, settings) if testing else _sent(folder, settings)
    show(data, _show_test if testing else _show_sent, as_json=as_json)
    sys.exit(Exit.GOOD if data["ok"] else Exit.REFUSED)


def _tested(folder: Path, settings: Settings) -> dict[str, Any]:
    body = body_of({"id": 0, **_TEST.row(str(folder), time.time()), "earlier": []})
    rows: list[dict[str, Any]] = []
    for channel in settings.channels:
        try:
            deliver(channel, settings, str(folder), body)
            rows.append({"channel": channel, "ok": True, "error": None})
        except DeliveryError as error:
            said = {"code": error.code, "message": error.message, "fix": error.fix}
            rows.append({"channel": channel, "ok": False, "error": said})
    return {"schema": "interlock.notify-test/1", "ok": all(row["ok"] for row in rows), "channels": rows}


def _show_test(data: Mapping[str, Any]) -> None:
    for row in data["channels"]:
        error = row["error"]
        click.echo(f"{row['channel']:<9} {'delivered' if error is None else 'failed'}")
        if error is not None:
            click.echo(f"error {error['code']}: {one_line(error['message'])}\n  fix: {error['fix']}", err=True)


def _sent(folder: Path, settings: Settings) -> dict[str, Any]:
    try:
        left, rows = waiting(str(folder)), history(str(folder))
    except sqlite3.Error as error:
        path = state_dir(folder) / "notify.sqlite"
        raise click.UsageError(
            f"{path} cannot be read: {error}. Remove it; what was sent is then forgotten."
        ) from error
    if left:
        start_sender(str(folder))
    last = {each["channel"]: each for row in reversed(rows) for each in row["deliveries"]}
    ok = all(each["state"] != "failed" for each in last.values())
    return {
        "schema": "interlock.notifications/1", "ok": ok, "channels": list(settings.channels), "waiting": left,
        "sent": rows,
    }  # fmt: skip


def _show_sent(data: Mapping[str, Any]) -> None:
    click.echo(f"channels  {', '.join(data['channels']) or 'none; docs/notifications.md shows how to set them'}")
    if data["waiting"]:
        click.echo(f"waiting   {count(data['waiting'], 'event or attempt', 'events and attempts')}")
    for row in reversed(data["sent"]):
        states = ", ".join(f"{each['channel']} {each['state']}" for each in row["deliveries"])
        more = f" and {len(row['earlier'])} earlier" if row["earlier"] else ""
        click.echo(f"{row['at']}  {one_line(row['title'])}: {one_line(row['text'])}{more}  ({states})")
        for each in row["deliveries"]:
            if each["error"]:
                click.echo(f"  {each['channel']}: {one_line(each['error'])}", err=True)
