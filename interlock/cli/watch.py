"""`interlock watch`: what goes on in a project, live in the terminal, as lines of text, or as JSON for programs."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.live import Live

from interlock import graph
from interlock.cli.completion import complete_task_run
from interlock.cli.context import finite, json_option, resolve_root, root_option
from interlock.cli.run import exit_code, known_run
from interlock.cli.watch_frame import frame
from interlock.core.text import few, one_line

SCHEMA: Final = "interlock.watch/1"
_UNCUT_COLUMNS: Final = 200
_KEYS: Final = {"run": "run_id", "lease": "reservation_id", "queue": "since", "wait": "key"}
_OVER: Final = ("ended", "abandoned", "blocked")


@click.command("watch")
@click.argument("run", required=False, shell_complete=complete_task_run)
@click.option("--once", is_flag=True, help="Print what there is now, and exit.")
@click.option("--interval", metavar="SECONDS", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True,
              callback=finite, help="How often to look.")  # fmt: skip
@root_option
@json_option
def watch_command(run: str | None, once: bool, interval: float, root: Path | None, as_json: bool) -> None:
    """Show what waits for you, the runs with who is at work in them, and who holds and waits for files, until Ctrl-C.

    With RUN (the id of a run, or of a task for its newest) only that run, until it ends. On a terminal the picture is
    redrawn; into a pipe each change is a line. --json prints each change as one JSON object.

    Exit codes: 0 with --once, or RUN is APPROVED; 1 RUN is BLOCKED or abandoned; with --once and RUN also 3 it waits
    for an answer, and 5 it is at work or was cut off; 130 Ctrl-C.
    """
    folder = resolve_root(root)
    run_id = known_run(folder, run) if run else ""
    looks = _looks(graph.Watch(folder, run_id), folder, run_id, interval, once=once)
    title = run_id or folder.name
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNCUT_COLUMNS
    if as_json:
        for line in changes(looks):
            click.echo(json.dumps(line))  # in ASCII, so that nothing in it drives a terminal
            sys.stdout.flush()
    elif once:
        console.print(frame(next(looks), title, datetime.now(UTC), console.width, None))
    elif console.is_terminal and not console.is_dumb_terminal:
        _draw(console, looks, title)
    else:
        printed: dict[str, str] = {}
        for line in changes(looks):
            key, text = in_words(line)
            if text and printed.get(key) != text:  # of a run, more changes than its line shows
                click.echo(f"{datetime.now():%H:%M:%S}  {one_line(text)}")  # noqa: DTZ005 - the local time of day
                sys.stdout.flush()
            printed[key] = text
    sys.exit(exit_code(graph.view_run(run_id, root=folder)) if run_id else 0)


def _looks(watch: graph.Watch, folder: Path, run_id: str, interval: float, *, once: bool) -> Iterator[graph.Look]:
    """Yield what there is, again and again; of one run, until it has ended.

    Raises:
        UnknownRunError: The run that is watched was removed.
    """
    while True:
        look = watch.look()
        yield look
        if once or (run_id and any(row["state"] in _OVER for row in look.runs)):
            return
        if run_id and not graph.RunStore(folder, run_id).exists():
            raise graph.no_task_run(folder, run_id)
        time.sleep(interval)


def _draw(console: Console, looks: Iterator[graph.Look], title: str) -> None:
    """Redraw the picture at each look, on a screen of its own; the last one is left behind."""
    last: graph.Look | None = None
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # the terminal is restored first
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for last in looks:
                live.update(frame(last, title, datetime.now(UTC), console.width, console.height), refresh=True)
    finally:
        if last is not None:
            console.print(frame(last, title, datetime.now(UTC), console.width, None))


def changes(looks: Iterator[graph.Look]) -> Iterator[dict[str, Any]]:
    """Yield each row that is new, has changed or is gone since the look before; at first, all that are there."""
    before: dict[tuple[str, str], dict[str, Any]] = {}
    yield {"kind": "watch", "schema": SCHEMA, "at": _stamp()}
    for look in looks:
        now: dict[tuple[str, str], dict[str, Any]] = {}
        for kind, rows in (("wait", look.waits), ("run", look.runs), ("lease", look.leases), ("queue", look.queue)):
            for row in reversed(rows):
                lasting = {key: value for key, value in row.items() if not key.endswith(("_seconds", "last_seen"))}
                now[kind, f"{row[_KEYS[kind]]} {row.get('agent', '')}"] = lasting
        if look.damaged:
            now["damaged", ""] = {"message": look.damaged}
        changed = [
            (key, "changed" if key in before else "new", row) for key, row in now.items() if before.get(key) != row
        ]
        gone = [(key, "gone", row) for key, row in before.items() if key not in now]
        for (kind, _), change, row in (*gone, *changed):
            yield {"kind": kind, "change": change, "at": _stamp(), **row}
        before = now


def in_words(line: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a change is about, and the change as a person reads it; nothing for what says nothing new."""
    more = " no more" if line.get("change") == "gone" else ""
    match line["kind"]:
        case "run":
            busy = ", ".join(f"{row['name']}: {row['doing']}" for row in line["at_work"])
            words = f"{graph.status_text(line)}, attempt {line['attempt']}: {line['state']}"
            words += f" ({busy})" if busy else ""
            words += f"; put back as in the base: {few(line['put_back'])}" if line["put_back"] else ""
            return f"run {line['run_id']}", f"{line['run_id']} {'not shown any more' if more else words}"
        case "wait":
            text = f"waits for you{more}: {line['wait']} in {line['run_id']}: {line['text']}"
            return line["key"], text if more else f"{text} ({line['next']})"
        case "lease":
            return line["reservation_id"], f"{line['holder']} holds {line['pattern']}{more}"
        case "queue":
            return f"queue {line['agent']}", f"{line['agent']} waits{more} for {', '.join(line['patterns'])}"
        case "damaged":
            return "damaged", f"can be read again: {line['message']}" if more else f"cannot be read: {line['message']}"
        case _:
            return "", ""


def _stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
