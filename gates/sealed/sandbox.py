"""One command in an enclosure: an export at the checkout's own path, a network of its own, nothing left running.

Where `bwrap` (0.8 or newer) works it makes the namespaces, else `probes/enclose.py` does with the system calls
themselves, else there are none: the command then runs in the export's folder, and its level says so. Inside, of the
machine only what its distribution installs (`SYSTEM`) and what the enclosure names is seen; only the export and a
private `/tmp` can be written, and no further namespace can be made, in which something else could be mounted over a
test.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, TypeAlias

from interlock.core import process
from interlock.core.process import Channel, Ended
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.runners.base import PROBES
from interlock.gates.sealed.settings import Network

Level: TypeAlias = Literal["namespaces", "none"]
Maker: TypeAlias = Literal["bwrap", "unshare", "none"]

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/store", "/gnu/store", "/snap",
    "/sys/devices/system",
)  # fmt: skip
"""Where distributions install: seen inside as they are, unlike any other place of the machine."""

PRIVATE: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - their empty doubles inside
_EMPTY: Final = ("/home", "/root", "/media", "/mnt", "/opt", "/srv", "/sys", "/var")
"""Folders that programs may look for; nothing is in them inside."""

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
        links: Symbolic links outside of these places: path to text.
    """

    binds: tuple[Bind, ...] = ()
    hidden: tuple[str, ...] = ()
    network: Network = "loopback"
    links: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Pipes:
    """What takes the output and the errors of a command, the two descriptors of its probe, and its standard input."""

    output: Callable[[bytes], None]
    channel: Channel | None = None
    stdin: bytes = b""


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
) -> Ended:
    """Run a command to its end or its time limit, and end everything that it started.

    Its program is an absolute path, or is looked up on PATH of `env`, its whole environment. Without an enclosure, or
    without namespaces here, it sees the machine as it is; `cwd` is where it runs, as seen inside.

    Raises:
        OSError: The program cannot be started.
    """
    words, where = list(argv), cwd
    if enclosure is not None and (made := maker()) != "none":
        words, where = _enclosed(argv, enclosure, cwd, made), "/"
    return process.run(
        words, cwd=where, env=env, timeout_seconds=timeout_seconds, output=pipes.output, stdin=pipes.stdin,
        channel=pipes.channel,
    )  # fmt: skip


def _enclosed(argv: Sequence[str], enclosure: Enclosure, cwd: str, name: Maker) -> list[str]:
    """Return the words that run a command in its enclosure.

    `bwrap` always brings a loopback up; without any network our own program makes the namespaces where it can.
    """
    if name == "bwrap" and not (enclosure.network == "none" and _works("unshare")):
        return [shutil.which("bwrap") or "bwrap", *_bwrap_options(enclosure, cwd), "--", *argv]
    own = (sys.executable, "-I", "-S", str(PROBES / "enclose.py"), "--network", enclosure.network, "--chdir", cwd)
    return [*own, *_mounts(enclosure), "--", *argv]


def _bwrap_options(enclosure: Enclosure, cwd: str) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc")
    yield from ("--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL", "--disable-userns")
    if enclosure.network != "host":
        yield "--unshare-net"
    yield from ("--dev", "/dev", "--proc", "/proc")
    yield from _mounts(enclosure)
    yield from ("--remount-ro", "/", "--chdir", cwd)


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
        raise SealError("SEAL122", f"No temporary folder can be made: {error.strerror}.", "Free disk space.") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
