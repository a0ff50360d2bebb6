"""A note that a build agent works on and changes nothing. It is said once for an ask; nothing is stopped by it."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from interlock.agents.ask import Ask
from interlock.gates.errors import TreeError
from interlock.gates.tree import paths_in_scope
from interlock.graph.task.context import TaskContext


@contextmanager
def quiet_noted(context: TaskContext, ask: Ask) -> Generator[None]:
    """Give the notice `{kind: "quiet", role, minutes}` when no file in scope changes for so long; build roles alone."""
    if ask.step != "build":
        yield
        return
    minutes, began, over = context.policy.quiet_minutes, time.time(), Event()

    def watch() -> None:
        left = minutes * 60
        # The files are looked at only when the time may be over: in ten minutes of work, once.
        while not over.wait(left):
            quiet = time.time() - max(began, _last_change(context.root, context.task.scope))
            if quiet >= minutes * 60 and not over.is_set():
                ask.notice({"kind": "quiet", "role": ask.role, "minutes": minutes})
                return
            left = min(minutes * 60 - quiet, minutes * 60)

    Thread(target=watch, name=f"quiet {ask.role}", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _last_change(root: Path, scope: tuple[str, ...]) -> float:
    """Return when a file in scope changed last, in seconds since 1970; 0.0 where there is none.

    It is the time of change that the system itself notes, which no program can set back. A file that was removed is a
    change of its folder.
    """
    newest = 0.0
    with suppress(TreeError):
        paths = {*paths_in_scope(root, scope)}
        for path in paths | {os.path.dirname(path) for path in paths}:  # noqa: PTH120 - strings, and many of them
            with suppress(OSError):
                newest = max(newest, os.lstat(root / path).st_ctime)
    return newest
