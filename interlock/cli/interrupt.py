"""Ctrl-C: stop at once, as a kill would, and say how to go on.

A graph that is asked to stop waits for the agents that are at work, and an agent whose process was interrupted with it
hands in a failure that would end the run. So the process ends before either: what is on disk is what a kill leaves,
and a run is resumed from that.
"""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

import psutil

from interlock.core.process import signal_group

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR: Final = "\x1b[?25h\r\x1b[K"


@contextmanager
def stops_at_once(message: str) -> Generator[None]:
    """End the process with 128 + n when signal n comes, after a message and without its child processes.

    A signal that is ignored, as in a background job, stays ignored.
    """
    text = (_SHOW_CURSOR if sys.stderr.isatty() else "") + message + "\n"

    before = {n: handler for n in SIGNALS if (handler := signal.getsignal(n)) not in (None, signal.SIG_IGN)}
    reading, writing = os.pipe()
    # The interpreter writes to it in a signal handler, which must never wait.
    os.set_blocking(writing, False)
    threading.Thread(target=_watch, args=(reading, text, frozenset(before)), daemon=True).start()
    # A handler in Python runs when the main thread comes to it, which may be waiting for an agent.
    woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in before:
        signal.signal(number, _passed_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(writing)


def _passed_on(_number: int, _frame: FrameType | None) -> None:
    """Do nothing in the main thread: `_watch` has the signal."""


def _watch(reading: int, text: str, numbers: frozenset[int]) -> None:
    """End the process with the first signal that is written to a pipe; end with the pipe."""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while data := pipe.read(1):
            if data[0] in numbers:
                _end(text, 128 + data[0])


def stop_unread(message: str) -> NoReturn:
    """End the process with 128 + SIGPIPE, as it ends whom nobody reads; what is on disk is what a kill leaves."""
    _end((_SHOW_CURSOR if sys.stderr.isatty() else "") + message + "\n", 128 + signal.SIGPIPE)


def _end(text: str, code: int) -> NoReturn:
    # No lock, no buffer, no cleaning up: whoever holds them may never let go.
    with suppress(OSError):
        os.write(2, text.encode())
    _end_children()
    os._exit(code)


def _end_children() -> None:
    """End the commands and browsers of this process with what they started; stopped first, they start no more."""
    # The list grows while it is walked: children of children come after their parents.
    below = [psutil.Process()]
    for process in below:
        with suppress(psutil.Error):
            if process.pid != os.getpid():
                # A process that is stopped starts no further one between this look and the end.
                process.suspend()
            below += process.children()
    for process in below[1:]:
        with suppress(psutil.Error, OSError):
            # The leader of a group ends with all of its group, also what left its parent.
            if os.getpgid(process.pid) == process.pid:
                signal_group(process.pid)
            else:
                process.terminate()
                # A stopped process acts on the signal only when it goes on.
                process.resume()
