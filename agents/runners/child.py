"""One program of an agent: started in a process group of its own, fed, read within bounds, and gone afterwards."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024
"""More than so much on standard output is no answer: the program is ended."""
TAIL_BYTES: Final = 64 * 1024
"""So much of standard error is kept: its end."""
GRACE_SECONDS: Final = 5.0
"""How long a program that is asked to end may take before it is killed."""
LINGER_SECONDS: Final = 1.0
"""How long what the program leaves behind may hold its output open once it has ended itself."""

_LOOK_SECONDS: Final = 0.1

Stop: TypeAlias = Literal["", "timeout", "flood"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Args:
        status: Its exit status; negative for the signal that ended it.
        output: Standard output, at most `MAX_OUTPUT_BYTES`.
        complaints: The end of standard error.
        seconds: From start to end.
        stopped: Why it was ended from here: its time was up, or it printed too much; empty when it ended itself.
    """

    status: int
    output: bytes
    complaints: bytes
    seconds: float
    stopped: Stop


def run_child(argv: Sequence[str], *, stdin: bytes, cwd: Path, env: Mapping[str, str], timeout_seconds: float) -> Ended:
    """Run a program to its end. When this returns or raises, no process of its group is left.

    Args:
        argv: The program and its arguments; no shell.
        stdin: What it reads; a program that does not read it is no error.
        cwd: Where it runs.
        env: Its whole environment.
        timeout_seconds: After this it is asked to end, with SIGTERM to the group, and killed `GRACE_SECONDS` later.

    Raises:
        OSError: It cannot be started.
    """
    started = time.monotonic()
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        reading = _Reading(process, stdin)
        try:
            stopped = reading.until(started + timeout_seconds)
        finally:
            # Also when the caller is interrupted. The leader is not reaped yet, so its number is nobody else's.
            _signal_group(process.pid, signal.SIGKILL)
            reading.close()
        status = process.wait()
    return Ended(status, bytes(reading.output), bytes(reading.complaints), time.monotonic() - started, stopped)


class _Reading:
    """The three pipes of a program."""

    def __init__(self, process: "subprocess.Popen[bytes]", stdin: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._left = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self.output, self.complaints = bytearray(), bytearray()
        for pipe, kind in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, kind)
        if not stdin:
            self._drop(process.stdin)

    def until(self, deadline: float) -> Stop:
        """Feed and read until the program has ended, or must end; say why it must."""
        stopped: Stop = ""
        end, ended, asked = deadline, False, False
        while self._selector.get_map() or not ended:
            now = time.monotonic()
            if not ended and self._has_ended():
                ended, end = True, now + LINGER_SECONDS
            if len(self.output) > MAX_OUTPUT_BYTES:
                stopped = "flood"
                break
            if now >= end:
                if ended or asked:
                    break  # what is left is killed
                stopped, asked, end = "timeout", True, now + GRACE_SECONDS
                _signal_group(self._process.pid, signal.SIGTERM)
            self._step(min(_LOOK_SECONDS, max(0.0, end - now)))
        del self.output[MAX_OUTPUT_BYTES:]
        return stopped

    def close(self) -> None:
        """Close what is still open."""
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)  # pyright: ignore[reportArgumentType] - registered as files
        self._selector.close()

    def _has_ended(self) -> bool:
        """Look whether the program has ended, without reaping it: its number must stay its own."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def _step(self, seconds: float) -> None:
        if not self._selector.get_map():
            time.sleep(seconds)
            return
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._process.stdin:
                self._feed()
            else:
                self._take(key.fileobj, self.output if key.fileobj is self._process.stdout else self.complaints)  # pyright: ignore[reportArgumentType]

    def _feed(self) -> None:
        assert self._process.stdin is not None
        try:
            self._left = self._left[os.write(self._process.stdin.fileno(), self._left[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = memoryview(b"")
        if not self._left:
            self._drop(self._process.stdin)

    def _take(self, pipe: IO[bytes], into: bytearray) -> None:
        try:
            chunk = os.read(pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return
        into += chunk
        if into is self.complaints:
            del into[:-TAIL_BYTES]
        if not chunk:
            self._drop(pipe)

    def _drop(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
