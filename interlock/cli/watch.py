"""`interlock watch`: what `interlock status` prints, again and again, until Ctrl-C or the end of a run."""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from interlock import graph
from interlock.cli.context import finite, json_option, resolve_root, root_option
from interlock.cli.run import exit_code, known_run, show_summary
from interlock.cli.status import overview, show_overview


@click.command("watch")
@click.argument("run", required=False)
@click.option("--once", is_flag=True, help="Print what there is now, and exit.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    callback=finite,
    help="How often to look.",
)
@root_option
@json_option
def watch_command(run: str | None, once: bool, interval: float, root: Path | None, as_json: bool) -> None:
    """Print what `interlock status` prints whenever it has changed, until Ctrl-C.

    With RUN (the id of a run, or of a task for its newest) only that run, until it ends. A terminal is cleared before
    each picture. --json prints each as one line, of what `interlock status --json` prints.

    Exit codes: 0 with --once, or RUN is APPROVED; 1 RUN is BLOCKED or abandoned; with --once and RUN also 3 it waits
    for an answer, and 5 it is at work or was cut off; 130 Ctrl-C.
    """
    folder = resolve_root(root)
    run_id = known_run(folder, run) if run else ""
    before: Any = None
    while True:
        code, is_over, data, show = _look_at_run(folder, run_id) if run_id else _look_at_all(folder)
        is_last = once or is_over
        # Ages change at each look: a pipe gets a line only when something else did.
        now = _lasting(data)
        if as_json and now != before:
            click.echo(json.dumps(data))  # in ASCII, so that nothing in it drives a terminal
            sys.stdout.flush()
        elif not as_json and (now != before or sys.stdout.isatty()):
            # The end of a run is printed below what was on the screen, which nobody may have read yet.
            if not is_last:
                click.clear()  # does nothing unless it is a terminal
            show()
            sys.stdout.flush()
        before = now
        if is_last:
            sys.exit(code)
        time.sleep(interval)


def _look_at_all(folder: Path) -> tuple[int, bool, dict[str, Any], Callable[[], None]]:
    """Return the exit code, that it never ends, and what there is in a project: as JSON values, and how to print it."""
    data, me = overview(folder)
    # A damaged run is shown in the picture; it is no reason to stop watching the others.
    return 0, False, data, partial(show_overview, data, me)


def _look_at_run(folder: Path, run_id: str) -> tuple[int, bool, dict[str, Any], Callable[[], None]]:
    """Return the exit code of a run, whether it has ended, and the run: as JSON values, and how to print it.

    Raises:
        UnknownRunError: It was removed.
    """
    # `interlock prune` may have removed it since the last look.
    if not graph.RunStore(folder, run_id).exists():
        raise graph.no_task_run(folder, run_id)
    view = graph.view_run(run_id, root=folder)
    data = graph.run_summary(view, folder) | graph.tree_after(view, folder)
    return exit_code(view), view.phase == "done", data, partial(show_summary, data, folder)


def _lasting(value: Any) -> Any:
    """Return JSON values without those that grow older by themselves."""
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value)
        return {key: _lasting(each) for key, each in rows.items() if not key.endswith(("_seconds", "_minutes"))}
    return [_lasting(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
