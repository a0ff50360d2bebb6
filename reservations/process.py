"""Processes of this machine: which one is the client that we work for, and whether one still runs.

Linux is read from `/proc`; elsewhere `ps` is asked.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

PLAIN_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh"})
"""Those that run what is written for `sh`."""
SHELLS: Final = PLAIN_SHELLS | {"rbash", "zsh", "fish", "csh", "tcsh", "busybox", "pwsh"}
_PREFIXES: Final = (
    "busybox caffeinate chronic chrt doas eatmydata env flock ionice logsave ltrace nice nohup parallel setsid stdbuf "
    "strace sudo taskset time timeout toybox unbuffer watch xargs"
)
PREFIXES: Final = frozenset(_PREFIXES.split())
"""Programs that run the words behind their own."""
WRAPPERS: Final = frozenset({
    *PREFIXES, "interlock", "git", "su", "script", "make", "gmake", "just", "uv", "uvx", "pipx", "pre-commit", "husky",
    "lefthook",
})  # fmt: skip
"""Programs that run a command for somebody else and end with it."""
INITS: Final = frozenset({
    "init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "runit", "s6-svscan", "pause",
})  # fmt: skip
"""What adopts processes whose parent has ended: nobody's client."""

_MAX_ANCESTORS: Final = 64
_MAX_CMDLINE: Final = 4096
_FIRST_NAMESPACE: Final = "pid:[4026531836]"
_PS_SECONDS: Final = 2
_TABLE_SECONDS: Final = 1.0
_ON_LINUX: Final = sys.platform == "linux"
_tables: Final[list[tuple[float, Mapping[int, "Process"]]]] = []


class Process(NamedTuple):
    """One process.

    Args:
        started: When it started, which distinguishes it from a later process of the same number.
        ended: It waits for its parent to take note.
    """

    pid: int
    parent: int
    name: str
    started: str
    ended: bool = False


def host() -> str:
    """Return the machine's name; in a container or sandbox with processes of its own, with that space's number."""
    name = os.uname().nodename
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return name
    return name if space == _FIRST_NAMESPACE else f"{name}/{space[5:-1]}"


def client() -> tuple[int | None, str]:
    """Return the process that this one works for: pid and start mark, or (None, "") when there is none.

    It is the nearest ancestor that is not a shell, a program that only runs a command for another, init, or one of
    our own programs. Only shells above: the highest of them, as in a container that runs a shell.
    """
    shell: Process | None = None
    for process in ancestors():
        if process.name in INITS:
            break
        if process.name in SHELLS:
            shell = process
        elif process.name not in WRAPPERS and not _is_ours(process.pid):
            return process.pid, process.started
    return (None, "") if shell is None else (shell.pid, shell.started)


def own() -> tuple[int, str]:
    """Return this process: pid and start mark."""
    pid = os.getpid()
    process = _read(pid)
    return pid, "" if process is None else process.started


def started(pid: int) -> str:
    """Return the start mark of a process; empty where it cannot be known."""
    found = from_proc(pid) if _ON_LINUX else from_ps("-p", str(pid)).get(pid)
    return "" if found is None else found.started


def ancestors() -> Iterator[Process]:
    """Yield the ancestors of this process, the parent first."""
    table = None if _ON_LINUX else _table()
    pid = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        process = _read(pid) if table is None else table.get(pid)
        if process is None:
            return
        yield process
        pid = process.parent


def is_running(host_name: str, pid: int, started: str) -> bool | None:
    """Return whether a process still runs; None when that cannot be known from here, as for another machine.

    Without the start mark, any process of that number counts.
    """
    if host_name != host() or pid <= 0:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    except OverflowError:
        return False
    process = _read(pid)
    if process is None:
        return None
    return not process.ended and (not started or process.started == started)


def _read(pid: int) -> Process | None:
    return from_proc(pid) if _ON_LINUX else _table().get(pid)


def _table() -> Mapping[int, Process]:
    """Return all processes as of the last second.

    `is_running` is asked inside transactions, where `ps` would hold everybody up for each agent. So that is at most one
    `ps` a second; and opening the store looks for the own client first, so that most often there is none at all.
    """
    known = _tables[-1:]
    if not known or time.monotonic() - known[0][0] > _TABLE_SECONDS:
        known = [(time.monotonic(), from_ps("-ax"))]
        _tables[:] = known
    return known[0][1]


def from_proc(pid: int) -> Process | None:
    """Read `/proc/PID/stat`: the name is in parentheses and may hold anything, parentheses included."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read(_MAX_CMDLINE).decode("utf-8", "replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    values = rest.split()
    return Process(pid, int(values[1]), name.removeprefix("-"), f"{_boot()}-{values[19]}", values[0] in {"Z", "X"})


@lru_cache(maxsize=1)
def _boot() -> str:
    """Return the id of this boot of the machine, since start times count from its beginning."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(8).decode()
    except OSError:
        return ""


def from_ps(*which: str) -> dict[int, Process]:
    """Ask `ps`, where there is no `/proc`; its start times are whole seconds."""
    rows = [line.split(None, 8) for line in _ps(*which, "-o", "pid=,ppid=,stat=,lstart=,comm=").splitlines()]
    return {
        int(row[0]): Process(
            int(row[0]), int(row[1]), os.path.basename(row[8]).removeprefix("-"), "-".join(row[3:8]), row[2][0] in "ZX"
        )
        for row in rows
        if len(row) == 9
    }


def _ps(*arguments: str) -> str:
    """Return what `ps` prints; nothing where there is none, or where it hangs: then nobody is known to have ended."""
    from subprocess import DEVNULL, PIPE, TimeoutExpired, run  # noqa: PLC0415 - slow to import, and Linux needs none

    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = run(("ps", *arguments), stdout=PIPE, stderr=DEVNULL, env=environment, timeout=_PS_SECONDS, check=False)
    except (OSError, TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def group(leader: int) -> Mapping[int, bytes] | None:
    """Return the environment of each process of a group that still runs; None when that cannot be known.

    It is the one that a program was started with, empty where it cannot be read; of `ps`, its command line as well.
    """
    if not _ON_LINUX:
        rows = [row.split(None, 4) for row in _ps("-ax", "-E", "-ww", "-o", "pid=,pgid=,stat=,command=").splitlines()]
        found = {int(row[0]): " ".join(row[3:]) for row in rows if row[1] == str(leader) and row[2][0] not in "ZX"}
        return {pid: os.fsencode(text).replace(b" ", b"\0") for pid, text in found.items()} if rows else None
    return {int(pid): _environment(pid) for pid in os.listdir("/proc") if pid.isdigit() and _is_of(pid, leader)}


def _is_of(pid: str, leader: int) -> bool:
    """Return whether a process runs and belongs to a group; on Linux."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        state, _, number = file.read(_MAX_CMDLINE).rpartition(b")")[2].split()[:3]
        return int(number) == leader and state not in (b"Z", b"X")
    return False


def _environment(pid: str) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()
    return b""


def words_of(pid: int) -> list[str]:
    """Return the command line of a process; empty when it cannot be read."""
    if not _ON_LINUX:
        return _ps("-p", str(pid), "-o", "args=").split()
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(_MAX_CMDLINE).decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def _is_ours(pid: int) -> bool:
    words = words_of(pid)
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return os.path.basename(script) in {"interlock", "interlock-mcp"}
