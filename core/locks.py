"""Advisory locks on files, for processes and threads of this machine alone; a killed holder's lock is free at once.

A lock belongs to the open file and not to the process: a child that was forked meanwhile has the same one. So a lock is
given up before its file is closed; closing alone would leave it with the child.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import IO

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


@contextmanager
def locked(
    file: int | IO[bytes],
    *,
    shared: bool = False,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> Generator[bool]:
    """Hold the lock of an open file, and give it up at the end.

    Args:
        file: An open file, or its descriptor; the caller closes it.
        shared: Whether others may hold it as well, as long as all of them share it.
        seconds: How long to wait for it; without limit by default.
        clock: Seconds that only grow.
        pause: Waits for so many seconds.

    Yields:
        Whether the lock is held; False when another had it for all that time.

    Raises:
        OSError: The file system has no locks.
    """
    # Few hooks ever take a lock, and each of them is a new process.
    import fcntl  # noqa: PLC0415

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    held = False
    try:
        if seconds is None:
            fcntl.flock(file, kind)
            held = True
        else:
            end, wait_seconds = clock() + seconds, _FIRST_PAUSE_SECONDS
            # `flock` knows no time limit, so that it is tried again and again.
            while not held:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                    held = True
                except BlockingIOError:
                    if clock() >= end:
                        break
                    pause(wait_seconds)
                    wait_seconds = min(wait_seconds * 2, _LONGEST_PAUSE_SECONDS)
        yield held
    finally:
        if held:
            fcntl.flock(file, fcntl.LOCK_UN)
