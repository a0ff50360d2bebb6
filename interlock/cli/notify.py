"""`interlock notify`: the notification channels, and a test of them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from interlock.cli.context import json_option, resolve_root, root_option, show, show_finding
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.text import one_line
from interlock.gates.config import load_config
from interlock.notify import Event, Settings, build, deliver

_TEST = Event("test", "test", "test", "", "this is a test", "notifications of this project arrive here")


@click.command("notify")
@click.option("--test", "testing", is_flag=True, help="Send a test event now, in each way that is configured.")
@root_option
@json_option
def notify_command(testing: bool, root: Path | None, as_json: bool) -> None:
    """Show how `[notify]` notifies people, or send a test event.

    Exit codes: 0 all was delivered; 1 a test failed in some way; 2 nothing is configured for --test.
    """
    folder = resolve_root(root)
    settings = build(load_config(folder).notify)
    if not testing:
        data = {"schema": "interlock.notifications/1", "ok": True, "channels": list(settings.channels)}
        none = "none; docs/watch.md shows how to set them"
        show(data, lambda _data: click.echo(f"channels  {', '.join(settings.channels) or none}"), as_json=as_json)
        return
    if not settings.channels:
        raise click.UsageError("[notify] has no command, webhook or apprise_env; docs/watch.md shows them")
    data = _tested(folder, settings)
    show(data, _show_test, as_json=as_json)
    sys.exit(Exit.GOOD if data["ok"] else Exit.REFUSED)


def _tested(folder: Path, settings: Settings) -> dict[str, Any]:
    row = _TEST.row(str(folder))
    rows: list[dict[str, Any]] = []
    for channel in settings.channels:
        failed = deliver(channel, settings, str(folder), row)
        error = {"code": failed.code, "message": failed.message, "fix": failed.fix} if failed else None
        rows.append({"channel": channel, "ok": failed is None, "error": error})
    return {"schema": "interlock.notify-test/1", "ok": all(row["ok"] for row in rows), "channels": rows}


def _show_test(data: Mapping[str, Any]) -> None:
    for row in data["channels"]:
        error = row["error"]
        click.echo(f"{row['channel']:<9} {'delivered' if error is None else 'failed'}")
        if error is not None:
            show_finding(Finding(error["code"], "error", "", one_line(error["message"]), fix=error["fix"]))
