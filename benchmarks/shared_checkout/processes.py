"""The processes that a line has left behind: they carry a mark in their environment."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "INTERLOCK_BENCH_LINE"


def marked(value: str) -> list[int]:
    """Return the processes that run with a mark."""
    wanted = f"{MARK}={value}\0".encode()
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if wanted in (process / "environ").read_bytes():
                    found.append(int(process.name))
    return found


def wait_until_over(value: str, seconds: float) -> bool:
    """Wait until no process with a mark runs; return whether that came about, and end those that still run."""
    until = time.monotonic() + seconds
    while rows := marked(value):
        if time.monotonic() > until:
            for pid in rows:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.05)
    return True
