"""The events of a run as lines of JSON on stdout, one for each step as it happens."""

import json
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import click

from interlock.cli.interrupt import stop_unread

SCHEMA: Final = "interlock.events/1"

EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("schema", "task_id"),
    "status": ("from", "to", "by", "attempt", "reasons", "cause"),
    "asking": ("role", "attempt", "reask"),
    "working": ("role", "tool", "calls", "tokens", "usd"),
    "quiet": ("role", "minutes"),
    "answered": ("role", "outcome", "codes", "findings", "first", "seconds", "usage", "model"),
    "collecting": ("role", "gate"),
    "collected": ("gate", "ok", "files", "findings"),
    "queued": ("blockers", "waited_seconds"),
    "unqueued": ("waited_seconds",),
    "scope_lost": ("blockers",),
    "leases_trouble": ("code", "message"),
    "not_notified": ("code", "message"),
    "summary": (),
}
"""What each kind of event holds beside `kind`, `at` and `run_id`; a summary holds what `interlock status` prints."""


def _now() -> datetime:
    return datetime.now(UTC)


events_option = click.option(
    "--json", "as_json", is_flag=True, help="Print each step on stdout as a line of JSON; the last one is the summary."
)


_LOCK: Final = threading.Lock()
"""Runs that one process drives side by side write to one stream."""


class EventStream:
    """Writes the steps of one run, each as one line, flushed; also from several threads at once.

    When nobody reads them any more, `unread` is printed and the process ends.
    """

    def __init__(self, run_id: str, out: TextIO, *, unread: str, now: Callable[[], datetime] = _now) -> None:
        self._run_id = run_id
        self._out = out
        self._unread = unread
        self._now = now

    @classmethod
    @contextmanager
    def on_stdout(cls, run_id: str, task_id: str, *, again: str) -> Generator["EventStream"]:
        """Write to stdout, the run first; what anybody else in this process prints there goes to stderr meanwhile."""
        events = cls.begun(run_id, task_id, sys.stdout, again=again)
        # A runner in Python that prints would break the lines of JSON.
        with redirect_stdout(sys.stderr):
            yield events

    @classmethod
    def begun(cls, run_id: str, task_id: str, out: TextIO, *, again: str) -> "EventStream":
        """Write the event of a run that begins, and return what writes those after it."""
        events = cls(run_id, out, unread=f"stopped: nobody reads the events; the run is kept. Go on with: {again}")
        events.notice({"kind": "run", "schema": SCHEMA, "task_id": task_id})
        return events

    def notice(self, step: Mapping[str, Any]) -> None:
        """Write one step; `kind` says which of `EVENTS` it is."""
        with _LOCK:
            at = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = {"kind": step["kind"], "at": at, "run_id": self._run_id, **step}
            try:
                click.echo(json.dumps(line, ensure_ascii=False), file=self._out)
            except BrokenPipeError:
                stop_unread(self._unread)
