"""A program in a process group of its own: started, fed, read within bounds, and gone afterwards.

A group is killed while its leader is not reaped yet: until then the leader's number, which is the group's, is nobody
else's.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024
"""More than so much on standard output is no answer: the program is ended."""
TAIL_BYTES: Final = 64 * 1024
"""So much of standard error is kept: its end."""
GRACE_SECONDS: Final = 5.0
"""How long a program that is asked to end may take before it is killed."""
LINGER_SECONDS: Final = 1.0
"""How long what the program leaves behind may hold its output open once it has ended, and again once it was killed."""
COMMON_ENVIRONMENT: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
"""What every program of an agent gets from the environment; `*` at the end matches any ending."""

_LOOK_SECONDS: Final = 0.05
_READ_BYTES: Final = 64 * 1024

Stop: TypeAlias = Literal["", "timeout", "flood", "unstarted", "over"]
Sink: TypeAlias = Callable[[bytes], object]
"""Takes what a program writes, while it runs. When it raises, the program is ended."""
Talk: TypeAlias = Callable[[], bytes | None]
"""Returns what is written to a program next, again and again while it runs; None once the conversation is over."""


class Ended(NamedTuple):
    """How a program ended.

    Args:
        status: Its exit status; negative for the signal that ended it.
        seconds: From start to end.
        stopped: Why it was ended from here: its time was up, it printed too much, or the conversation with it was
            over; `unstarted` when it never ran; empty when it ended itself.
        output: Standard output, where it is captured: at most `MAX_OUTPUT_BYTES`.
        complaints: The end of standard error, where it is captured.
    """

    status: int
    seconds: float
    stopped: Stop = ""
    output: bytes = b""
    complaints: bytes = b""

    @property
    def exit_status(self) -> int | None:
        """The exit status of a program that ended itself; None when it was stopped."""
        return None if self.stopped else self.status

    @property
    def timed_out(self) -> bool:
        """Whether its time was up."""
        return self.stopped == "timeout"


class Channel:
    """Two pipes to and from a program, open before the command is put together that names their numbers."""

    def __init__(self, stream: Sink) -> None:
        self.stream = stream
        self.spec = b""
        self.spec_fd, self.feed_fd = os.pipe()
        self.drain_fd, self.stream_fd = os.pipe()

    def close(self, *names: str) -> None:
        """Close some of the ends, or whatever is open."""
        for name in names or ("spec_fd", "feed_fd", "drain_fd", "stream_fd"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)


def environment_of(names: Iterable[str]) -> dict[str, str]:
    """Return the variables of this process that are named; `*` at the end of a name matches any ending."""
    return {name: value for name, value in os.environ.items() if any(fnmatchcase(name, each) for each in names)}


def start(argv: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
    """Start a program as the leader of a session and a group of its own: Ctrl-C in the terminal is not for it."""
    return subprocess.Popen(argv, start_new_session=True, **options)


def signal_group(leader: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a group, by default the one that kills it; one that is gone is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def end_group(leader: int, runs: Callable[[], bool]) -> bool:
    """End a group that this process has not started, and return whether it is gone: `runs` says if it is not.

    It gets `GRACE_SECONDS` after SIGTERM, and is killed then. The group of this process is never ended.
    """
    for number in (signal.SIGTERM, signal.SIGKILL) if leader > 1 and leader != os.getpgrp() else ():
        if not runs():
            return True
        signal_group(leader, number)
        end = time.monotonic() + GRACE_SECONDS
        while runs() and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
    return not runs()


def capture(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str] | None,
    timeout_seconds: float,
    stdin: bytes = b"",
    hold: bool = False,
    grace_seconds: float | None = None,
    at_start: Callable[[int], object] = lambda _pid: None,
    seen: Sink | None = None,
    talk: Talk | None = None,
) -> Ended:
    """Run a program as `run` does, and return what it printed as well; more than `MAX_OUTPUT_BYTES` are a flood.

    Standard output that `seen` takes, while the program runs, is neither kept nor bounded.
    """
    output, complaints = bytearray(), bytearray()

    def tail(data: bytes) -> None:
        complaints.extend(data)
        del complaints[:-TAIL_BYTES]

    ended = run(
        argv,
        cwd=cwd,
        env=env,
        timeout_seconds=timeout_seconds,
        output=output.extend if seen is None else seen,
        complaints=tail,
        stdin=stdin,
        hold=hold,
        grace_seconds=GRACE_SECONDS if grace_seconds is None else grace_seconds,
        is_flood=lambda: len(output) > MAX_OUTPUT_BYTES,
        at_start=at_start,
        talk=talk,
    )
    return ended._replace(output=bytes(output[:MAX_OUTPUT_BYTES]), complaints=bytes(complaints))


def run(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str] | None,
    timeout_seconds: float,
    output: Sink,
    complaints: Sink | None = None,
    stdin: bytes = b"",
    hold: bool = False,
    channel: Channel | None = None,
    grace_seconds: float = 0.0,
    is_flood: Callable[[], bool] = lambda: False,
    at_start: Callable[[int], object] = lambda _pid: None,
    talk: Talk | None = None,
) -> Ended:
    """Run a program to its end. When this returns or raises, no process of its group is left.

    Args:
        argv: The program and its arguments; no shell.
        cwd: Where it runs.
        env: Its whole environment; None for that of this process.
        timeout_seconds: How long it may take.
        output: Takes its standard output, and its standard error where nothing else does.
        complaints: Takes its standard error.
        stdin: What it reads; a program that does not read it is no error.
        hold: Its standard input stays open until the program is gone, so that it sees when this process goes.
        channel: Pipes that it inherits; its ends of them are closed here.
        grace_seconds: How long it may take to end after SIGTERM when its time is up; 0: it is killed at once.
        is_flood: Returns whether it wrote too much, and is to be killed.
        at_start: Called with its process id before it is fed anything.
        talk: A conversation on its standard input. When that is over its input is closed, and it may take
            `grace_seconds` to end before it is killed. Nothing more is asked for while it does not read.

    Raises:
        OSError: It cannot be started.
    """
    started = time.monotonic()
    process = start(
        argv,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=subprocess.PIPE if stdin or hold or talk else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if complaints is None else subprocess.PIPE,
        pass_fds=() if channel is None else (channel.spec_fd, channel.stream_fd),
    )
    with process, selectors.DefaultSelector() as selector:
        try:
            at_start(process.pid)
            exchange = _Exchange(process, selector)
            if process.stdout is not None:
                exchange.read(process.stdout.fileno(), output)
            if process.stderr is not None and complaints is not None:
                exchange.read(process.stderr.fileno(), complaints)
            if process.stdin is not None:
                exchange.write(process.stdin.fileno(), stdin, (lambda: None) if hold or talk else process.stdin.close)
            if channel is not None:
                channel.close("spec_fd", "stream_fd")
                exchange.read(channel.drain_fd, channel.stream)
                exchange.write(channel.feed_fd, channel.spec, lambda: channel.close("feed_fd"))
            stopped = exchange.until(started + timeout_seconds, grace_seconds, is_flood, talk)
        finally:
            # The leader is not reaped yet, so that its number can be nobody else's.
            signal_group(process.pid)  # also when the caller is interrupted, or a sink raises
        exchange.drain()
    return Ended(process.returncode, time.monotonic() - started, stopped)


class _Exchange:
    """Feeds and drains the pipes of one program."""

    def __init__(self, process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector) -> None:
        self._process = process
        self._selector = selector
        self._pending: dict[int, tuple[memoryview, Callable[[], None]]] = {}

    def read(self, descriptor: int, sink: Sink) -> None:
        """Hand on what comes from a pipe."""
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, sink)

    def write(self, descriptor: int, data: bytes, close: Callable[[], None]) -> None:
        """Write into a pipe, and close it."""
        os.set_blocking(descriptor, False)
        self._pending[descriptor] = memoryview(data), close
        self._selector.register(descriptor, selectors.EVENT_WRITE)

    def until(
        self, deadline: float, grace_seconds: float, is_flood: Callable[[], bool], talk: Talk | None = None
    ) -> Stop:
        """Exchange until the program has ended, or must be killed; return why it must.

        Something that it started may hold a pipe open after it: that is given a moment.
        """
        stopped: Stop = ""
        end, ended = deadline, False
        while not ended or self._is_read():
            now = time.monotonic()
            if not ended and self._has_ended():
                ended, end = True, now + LINGER_SECONDS
            if is_flood():
                return "flood"
            if talk is not None and not ended and not stopped and self._speak(talk):
                stopped, end = "over", now + grace_seconds
            if now >= end:
                # Either its children have had their moment, or it has had its grace: now it is killed.
                if ended or stopped:
                    break
                stopped, end = "timeout", now + grace_seconds
                if not grace_seconds:
                    break
                signal_group(self._process.pid, signal.SIGTERM)
            self._step(min(_LOOK_SECONDS, max(0.0, end - now)))
        return stopped

    def drain(self) -> None:
        """Read what is left after the kill: a pipe ends when all processes are gone that held it."""
        end = time.monotonic() + LINGER_SECONDS
        while self._is_read() and time.monotonic() < end:
            self._step(_LOOK_SECONDS)

    def _speak(self, talk: Talk) -> bool:
        """Write what is said next, and return whether that was all: its input is closed then."""
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        if descriptor in self._selector.get_map():
            return False  # it has not read yet what was said before
        said = talk()
        if said is None:
            self._process.stdin.close()
        elif said:
            self.write(descriptor, said, lambda: None)
        return said is None

    def _has_ended(self) -> bool:
        """Return whether the program has ended, without reaping it."""
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError as error:  # without a status nothing has passed
            why = "SIGCHLD is ignored here, so that the exit status of a program is not known"
            raise ChildProcessError(error.errno, why) from None

    def _is_read(self) -> bool:
        return any(key.events & selectors.EVENT_READ for key in self._selector.get_map().values())

    def _step(self, seconds: float) -> None:
        if not self._selector.get_map():
            time.sleep(seconds)
            return
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                self._feed(key.fd)
            elif data := os.read(key.fd, _READ_BYTES):
                key.data(data)
            else:
                self._selector.unregister(key.fd)

    def _feed(self, descriptor: int) -> None:
        rest, close = self._pending[descriptor]
        try:
            # A pipe that does not block takes what it has space for.
            rest = rest[os.write(descriptor, rest[:_READ_BYTES]) :]
        except BlockingIOError:
            return
        # It closed its input, which is its right; the rest is for nobody.
        except BrokenPipeError:
            rest = rest[:0]
        self._pending[descriptor] = rest, close
        if not rest:
            self._selector.unregister(descriptor)
            close()
