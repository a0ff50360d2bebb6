"""The worker process seen from outside: started in a group of its own, given a time, and gone afterwards."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, cast

from interlock.gates.collect.errors import collector_error

GRACE_SECONDS: Final = 5.0
"""The worker keeps the time itself and says what it waited for; this is how much later the whole group is killed."""

_TAIL_BYTES: Final = 64 * 1024
_NOISE: Final = (":CONSOLE:", "/dbus/", ":INFO:", ":WARNING:", "devtools_pipe_handler")
"""Lines of Chromium that say nothing about why it failed."""


def run_worker(job: dict[str, Any], folder: Path, timeout_seconds: float) -> dict[str, Any]:
    """Run one job in a worker and return its answer.

    When this returns or raises, no process of the group is left: the browser's processes all hold the error pipe, and
    its end is awaited.

    Args:
        job: JSON values, see `worker.work`.
        folder: Where the worker runs and puts its files.
        timeout_seconds: How long the page may take.

    Raises:
        CollectorError: What the worker reported, COL303 when it had to be killed, or COL310 when it failed itself.
    """
    # -P: nothing is imported from the current folder, which belongs to the agents.
    command = [sys.executable, "-P", "-m", "interlock.gates.collect.worker"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    ) as worker:
        assert worker.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.write(json.dumps({**job, "timeout_seconds": timeout_seconds}).encode() + b"\n")
                worker.stdin.flush()
            output, complaints, in_time = _drain(worker, time.monotonic() + timeout_seconds + GRACE_SECONDS)
        finally:
            _kill_group(worker.pid)
            worker.stdin.close()
    if not in_time:
        seconds = timeout_seconds + GRACE_SECONDS
        raise collector_error("COL303", f"The collector was still at work {seconds:g} s after its start.")
    try:
        value: object = json.loads(output)
    except ValueError:
        value = None
    tail = _tail(complaints)
    if not isinstance(value, dict):
        raise collector_error("COL310", f"The collector ended with status {worker.returncode} and no answer.{tail}")
    answer = cast("dict[str, Any]", value)
    if "error" in answer:
        error = answer["error"]
        message = error["message"] + (tail if error["code"] == "COL304" else "")
        raise collector_error(error["code"], message, error["fix"])
    return answer


def _drain(worker: "subprocess.Popen[bytes]", deadline: float) -> tuple[bytes, bytes, bool]:
    """Read both pipes to their ends; once the worker closed its output, or the time is up, kill what is left."""
    output, complaints = bytearray(), bytearray()
    in_time = True
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ, output)  # pyright: ignore[reportArgumentType]
        selector.register(worker.stderr, selectors.EVENT_READ, complaints)  # pyright: ignore[reportArgumentType]
        while selector.get_map():
            ready = selector.select(None if not in_time else max(0.0, deadline - time.monotonic()))
            if not ready:
                in_time = False
                _kill_group(worker.pid)
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                key.data.extend(chunk)
                if key.data is complaints:
                    del complaints[:-_TAIL_BYTES]
                if not chunk:
                    selector.unregister(key.fileobj)
                    if key.data is output:
                        # The worker has said all that it will say; its status is worth a short wait.
                        with contextlib.suppress(subprocess.TimeoutExpired):
                            worker.wait(GRACE_SECONDS)
                        _kill_group(worker.pid)
    return bytes(output), bytes(complaints), in_time


def _kill_group(leader: int) -> None:
    """Kill a process group; its leader is not reaped yet or its members keep the number from being used again."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _tail(complaints: bytes) -> str:
    """Return the last telling lines of what the processes printed, for a message."""
    lines = [line for line in complaints.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if not any(noise in line for noise in _NOISE)]
    return f" It printed: {' | '.join(telling[-5:])}"[:2000] if telling else ""
