"""The worker process seen from outside: started in a group of its own, given a time, and gone afterwards."""

import json
import sys
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.process import capture
from interlock.gates.collect.errors import collector_error

GRACE_SECONDS: Final = 5.0
"""The worker keeps the time itself and says what it waited for; this is how much later the whole group is killed."""

_NOISE: Final = (":CONSOLE:", "/dbus/", ":INFO:", ":WARNING:", "devtools_pipe_handler")
"""Lines of Chromium that say nothing about why it failed."""


def run_worker(job: dict[str, Any], folder: Path, timeout_seconds: float) -> dict[str, Any]:
    """Run one job, as `worker.work` takes it, in a worker and return its answer; it puts its files into the folder.

    When this returns or raises, no process of the group is left: the browser's processes all hold the error pipe, and
    its end is awaited. What the worker reported is raised, COL303 when it had to be killed, or COL310 when it failed
    itself.
    """
    # -P: nothing is imported from the current folder, which belongs to the agents.
    command = [sys.executable, "-P", "-m", "interlock.gates.collect.worker"]
    whole = json.dumps({**job, "timeout_seconds": timeout_seconds}).encode() + b"\n"
    seconds = timeout_seconds + GRACE_SECONDS
    ended = capture(command, cwd=folder, env=None, timeout_seconds=seconds, stdin=whole, hold=True, grace_seconds=0.0)
    if ended.timed_out:
        raise collector_error("COL303", f"The collector was still at work {seconds:g} s after its start.")
    try:
        value: object = json.loads(ended.output)
    except ValueError:
        value = None
    tail = _tail(ended.complaints)
    if not isinstance(value, dict):
        raise collector_error("COL310", f"The collector ended with status {ended.status} and no answer.{tail}")
    answer = cast("dict[str, Any]", value)
    if "error" in answer:
        error = answer["error"]
        message = error["message"] + (tail if error["code"] == "COL304" else "")
        raise collector_error(error["code"], message, error["fix"])
    return answer


def _tail(complaints: bytes) -> str:
    """Return the last telling lines of what the processes printed, for a message."""
    lines = [line for line in complaints.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if not any(noise in line for noise in _NOISE)]
    return f" It printed: {' | '.join(telling[-5:])}"[:2000] if telling else ""
