"""One command in an enclosure: an export at the checkout's own path, a network of its own, nothing left running.

Where `bwrap` (0.8 or newer) works it makes the namespaces, else `probes/enclose.py` does with the system calls
themselves, else there are none: the command then runs in the export's folder, and its level says so. Inside, of the
machine only what its distribution installs (`SYSTEM`) and what the enclosure names is seen; only the export and a
private `/tmp` can be written, and no further namespace can be made, in which something else could be mounted over a
test.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.settings import Network

Level: TypeAlias = Literal["namespaces", "none"]
Maker: TypeAlias = Literal["bwrap", "unshare", "none"]

PROBES: Final = Path(__file__).resolve().parent / "probes"
"""The programs that run inside."""

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/store", "/gnu/store", "/snap",
    "/sys/devices/system",
)  # fmt: skip
"""Where distributions install: seen inside as they are, unlike any other place of the machine."""

PRIVATE: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - their empty doubles inside
_EMPTY: Final = ("/home", "/root", "/media", "/mnt", "/opt", "/srv", "/sys", "/var")
"""Folders that programs may look for; nothing is in them inside."""

_POLL_SECONDS: Final = 0.05
_DRAIN_SECONDS: Final = 1.0
_READ_BYTES: Final = 64 * 1024
_TRIAL_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Bind:
    """One place of the machine that is seen inside, at a path of its own."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Enclosure:
    """What a command sees.

    Args:
        binds: Places that are seen, beside `SYSTEM`.
        hidden: Files and folders that are empty inside, where they lie in a place that is seen.
        network: `none`, `loopback`, or `host`.
        links: Symbolic links outside of these places: path to text.
    """

    binds: tuple[Bind, ...] = ()
    hidden: tuple[str, ...] = ()
    network: Network = "loopback"
    links: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit status (negative for a signal; None when it was stopped), and after how long."""

    exit_status: int | None
    timed_out: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Pipes:
    """What flows to and from a command.

    Args:
        output: Takes its standard output and error.
        channel: The two descriptors that a probe gets, or None.
        stdin: Its standard input.
    """

    output: Callable[[bytes], None]
    channel: "Channel | None" = None
    stdin: bytes = b""


class Channel:
    """Two pipes between a probe and Interlock, open before the command is put together that names their numbers.

    Args:
        stream: Takes what the probe writes, while it runs.
    """

    def __init__(self, stream: Callable[[bytes], None]) -> None:
        self.stream = stream
        self.spec = b""
        self.spec_fd, self.feed_fd = os.pipe()
        self.drain_fd, self.stream_fd = os.pipe()

    def close_inherited(self) -> None:
        """Close the ends that the command has now."""
        for name in ("spec_fd", "stream_fd"):
            self._close(name)

    def close(self) -> None:
        """Close whatever is open."""
        for name in ("spec_fd", "feed_fd", "drain_fd", "stream_fd"):
            self._close(name)

    def _close(self, name: str) -> None:
        if getattr(self, name) >= 0:
            os.close(getattr(self, name))
            setattr(self, name, -1)


@cache
def maker() -> Maker:
    """Return what makes namespaces here; it is tried once in this process."""
    return "bwrap" if shutil.which("bwrap") and _works("bwrap") else "unshare" if _works("unshare") else "none"


@cache
def _works(name: Maker) -> bool:
    words = _enclosed(("true",), Enclosure(), "/", name)
    with suppress(OSError, subprocess.TimeoutExpired):
        tried = subprocess.run(words, capture_output=True, timeout=_TRIAL_SECONDS, check=False, env=_SMALL)
        return tried.returncode == 0
    return False


def level() -> Level:
    """Return the level of isolation that is to be had on this machine."""
    return "none" if maker() == "none" else "namespaces"


_SMALL: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def run(
    argv: Sequence[str],
    enclosure: Enclosure | None,
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_seconds: float,
    pipes: Pipes,
    clock: Callable[[], float] = time.monotonic,
) -> Ended:
    """Run a command to its end or its time limit, and end everything that it started.

    Args:
        argv: The command; its program is an absolute path, or is looked up on PATH of `env`.
        enclosure: What it sees; None, or no namespaces here: the machine as it is.
        cwd: Where it runs, as seen inside.
        env: Its whole environment.
        timeout_seconds: How long it may take.
        pipes: Its input and output.
        clock: Seconds from some start.

    Raises:
        OSError: The program cannot be started.
    """
    made = maker() if enclosure is not None else "none"
    words, where = list(argv), cwd
    if made != "none" and enclosure is not None:
        words, where = _enclosed(argv, enclosure, cwd, made), "/"
    channel, started = pipes.channel, clock()
    process = subprocess.Popen(
        words,
        cwd=where,
        env=dict(env),
        stdin=subprocess.PIPE if pipes.stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=() if channel is None else (channel.spec_fd, channel.stream_fd),
    )
    if channel is not None:
        channel.close_inherited()
    with process:
        try:
            timed_out = _Exchange(process, pipes, clock).until(started + timeout_seconds)
        finally:
            _end(process)
    return Ended(None if timed_out else process.returncode, timed_out, clock() - started)


@dataclass(slots=True)
class _Exchange:
    """Feeds and drains the pipes of one command until it ends."""

    process: "subprocess.Popen[bytes]"
    pipes: Pipes
    clock: Callable[[], float]
    pending: dict[int, memoryview] = field(default_factory=dict[int, memoryview])

    def until(self, deadline: float) -> bool:
        """Exchange until the command ends; return whether it had to be stopped.

        Something that it started may hold a pipe open after it: it is given a moment, then ended with the group.
        """
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while not _has_ended(self.process.pid):
                if self.clock() >= deadline:
                    return True
                self._step(selector)
            last = min(deadline, self.clock() + _DRAIN_SECONDS)
            while any(key.events & selectors.EVENT_READ for key in selector.get_map().values()) and self.clock() < last:
                self._step(selector)
        return False

    def _register(self, selector: selectors.BaseSelector) -> None:
        assert self.process.stdout is not None
        sources: list[tuple[int, Callable[[bytes], None]]] = [(self.process.stdout.fileno(), self.pipes.output)]
        channel = self.pipes.channel
        if channel is not None:
            sources.append((channel.drain_fd, channel.stream))
        for descriptor, sink in sources:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ, sink)
        feeds: list[tuple[int, bytes]] = []
        if self.process.stdin is not None:
            feeds.append((self.process.stdin.fileno(), self.pipes.stdin))
        if channel is not None:
            feeds.append((channel.feed_fd, channel.spec))
        for descriptor, data in feeds:
            os.set_blocking(descriptor, False)
            self.pending[descriptor] = memoryview(data)
            selector.register(descriptor, selectors.EVENT_WRITE)

    def _step(self, selector: selectors.BaseSelector) -> None:
        if not selector.get_map():
            time.sleep(_POLL_SECONDS)
            return
        for key, _ in selector.select(_POLL_SECONDS):
            if key.data is None:
                self._feed(selector, key.fd)
            elif data := os.read(key.fd, _READ_BYTES):
                key.data(data)
            else:
                selector.unregister(key.fd)

    def _feed(self, selector: selectors.BaseSelector, descriptor: int) -> None:
        rest = self.pending[descriptor]
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            rest = rest[:0]
        self.pending[descriptor] = rest
        if not rest:
            selector.unregister(descriptor)
            if self.process.stdin is not None and descriptor == self.process.stdin.fileno():
                self.process.stdin.close()
            elif self.pipes.channel is not None:
                os.close(descriptor)
                self.pipes.channel.feed_fd = -1


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended, without reaping it: its number, and its group's, stay its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command and its group, before its leader is reaped."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _enclosed(argv: Sequence[str], enclosure: Enclosure, cwd: str, name: Maker) -> list[str]:
    """Return the words that run a command in its enclosure.

    `bwrap` always brings a loopback up; without any network our own program makes the namespaces where it can.
    """
    if name == "bwrap" and not (enclosure.network == "none" and _works("unshare")):
        return [shutil.which("bwrap") or "bwrap", *_bwrap_options(enclosure, cwd), "--", *argv]
    return [sys.executable, "-I", "-S", str(PROBES / "enclose.py"), *_enclose_words(enclosure, cwd), "--", *argv]


def _bwrap_options(enclosure: Enclosure, cwd: str) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc")
    yield from ("--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL", "--disable-userns")
    if enclosure.network != "host":
        yield "--unshare-net"
    yield from ("--dev", "/dev", "--proc", "/proc")
    yield from _mounts(enclosure)
    yield from ("--remount-ro", "/", "--chdir", cwd)


def _enclose_words(enclosure: Enclosure, cwd: str) -> Iterator[str]:
    yield from ("--network", enclosure.network, "--chdir", cwd)
    yield from _mounts(enclosure)


def _mounts(enclosure: Enclosure) -> Iterator[str]:
    """Yield the words for what is seen inside; a place comes after the one that it lies in."""
    shown = [name for name in SYSTEM if os.path.isdir(name)]
    rows: list[tuple[str, tuple[str, ...]]] = [(name, ("--dir", name)) for name in (*_EMPTY, os.path.expanduser("~"))]
    rows += [(name, ("--tmpfs", name)) for name in PRIVATE]
    rows.append(("/var/run", ("--symlink", "../run", "/var/run")))
    for name in shown:
        link = os.path.islink(name)
        rows.append((name, ("--symlink", os.readlink(name), name) if link else ("--ro-bind", name, name)))
    rows += [
        (row.target, ("--bind" if row.writable else "--ro-bind", row.source, row.target)) for row in enclosure.binds
    ]
    targets = {row.target for row in enclosure.binds}
    shown += targets
    for path, text in enclosure.links.items():
        if not is_below(path, shown):
            rows.append((path, ("--symlink", text, path)))
    hidden: list[str] = []
    for path in sorted(map(os.path.realpath, enclosure.hidden), key=len):
        seen = is_below(path, shown) and not is_below(path, hidden) and path not in (*targets, *SYSTEM)
        if seen and os.path.lexists(path):
            rows.append((path, ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", os.devnull, path)))
            hidden.append(path)
    for _, words in sorted(rows, key=lambda row: row[0].count("/")):
        yield from words


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these folders or lies in one."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def is_system(path: str) -> bool:
    """Return whether a path lies where a distribution installs, `/usr` for example; links are not followed."""
    return is_below(path, SYSTEM)


@contextmanager
def private_folder() -> Generator[str]:
    """Make a folder for one run of a gate, and remove it with whatever is in it."""
    try:
        folder = tempfile.mkdtemp(prefix="interlock-")
    except OSError as error:
        raise SealError("SEAL122", f"No temporary folder can be made: {error.strerror}.", "Make room.") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
