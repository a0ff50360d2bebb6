"""Processes of this machine: which one is the client that we work for, and whether one still runs.

What a hook asks is read from `/proc`; psutil answers the rest, and everything where there is no `/proc`. To import it
takes longer than a whole hook.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from interlock.core.record import Record

PLAIN_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh"})
"""Those that run what is written for `sh`."""
SHELLS: Final = PLAIN_SHELLS | {"rbash", "zsh", "fish", "csh", "tcsh", "busybox", "pwsh"}
_WRAPPERS: Final = (
    "busybox caffeinate chronic chrt doas eatmydata env flock ionice logsave ltrace nice nohup parallel setsid stdbuf "
    "strace sudo taskset time timeout toybox unbuffer watch xargs interlock git su script make gmake just uv uvx pipx "
    "pre-commit husky lefthook"
)
WRAPPERS: Final = frozenset(_WRAPPERS.split())
"""Programs that run a command for somebody else and end with it."""
INITS: Final = frozenset(
    {
        "init",
        "systemd",
        "launchd",
        "tini",
        "dumb-init",
        "docker-init",
        "catatonit",
        "runit",
        "s6-svscan",
        "pause",
    }
)
"""What adopts processes whose parent has ended: nobody's client."""

_FIRST_NAMESPACE: Final = "pid:[4026531836]"
HAS_PROC: Final = os.environ.get("INTERLOCK_PROC") != "off" and os.path.exists("/proc/sys/kernel/random/boot_id")
"""Whether `/proc` is there and may be read."""
_OF_PSUTIL: Final = "psutil-"
"""How start marks begin that were made without `/proc`."""


class Process(Record):
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
    space = os.readlink("/proc/self/ns/pid") if HAS_PROC else _FIRST_NAMESPACE
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
    return pid, started(pid)


def started(pid: int) -> str:
    """Return the start mark of a process; empty where it cannot be known."""
    process = read(pid)
    return "" if process is None else process.started


def ancestors() -> Iterator[Process]:
    """Yield the ancestors of this process, the parent first."""
    pid = os.getppid()
    while (process := read(pid)) is not None:
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
    process = read(pid)
    if process is None or (started and started.startswith(_OF_PSUTIL) is HAS_PROC):
        return None
    return not process.ended and (not started or process.started == started)


def read(pid: int) -> Process | None:
    """Return a process; None when there is none.

    The name in `/proc/PID/stat` is in parentheses and may hold anything, parentheses included.
    """
    if not HAS_PROC:
        return _from_psutil(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    values = rest.split()
    return Process(pid, int(values[1]), name.removeprefix("-"), f"{_boot()}-{values[19]}", values[0] in {"Z", "X"})


@lru_cache(maxsize=1)
def _boot() -> str:
    """Return the id of this boot of the machine, since start times count from its beginning."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read(8).decode()


def _from_psutil(pid: int) -> Process | None:
    import psutil  # noqa: PLC0415 - see the top

    if pid <= 0:  # the kernel of macOS is its own parent
        return None
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        name, ended = process.name().removeprefix("-"), process.status() in {psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE}
        # The hash is of the number and the start time, as no later change of the clock moves it.
        return Process(pid, process.ppid(), name, f"{_OF_PSUTIL}{hash(process):x}", ended)
    return None


def folders() -> Iterator[tuple[int, str]]:
    """Yield processes, each with the folder that it works in; not those of which that cannot be known."""
    if not HAS_PROC:
        import psutil  # noqa: PLC0415 - see the top

        for process in psutil.process_iter():
            with suppress(psutil.Error):
                yield process.pid, process.cwd()
        return
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                yield int(name), os.readlink(f"/proc/{name}/cwd").removesuffix(" (deleted)")


def beginning(pid: int) -> tuple[float, bytes] | None:
    """Return when a process of this user started, and the environment that it was given; None when it has ended."""
    if not HAS_PROC:
        import psutil  # noqa: PLC0415 - see the top

        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.uids().effective == os.geteuid():
                # Of Linux psutil counts from the second in which it booted.
                began = process.create_time() + (1 if psutil.LINUX else 0)
                return began, os.fsencode("\0".join(process.environ().values()))
        return None
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return None
        with open(f"/proc/{pid}/stat", "rb") as stat, open(f"/proc/{pid}/environ", "rb") as environ:
            fields, variables = stat.read().rpartition(b")")[2].split(), environ.read()
    except OSError:
        return None
    if fields[0] in {b"Z", b"X"}:
        return None
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + int(fields[19]) / os.sysconf("SC_CLK_TCK"), variables


def group(leader: int) -> Mapping[int, Mapping[str, str]]:
    """Return the environment of each process of a group that still runs.

    It is the one that a program was started with, empty where it cannot be read.
    """
    import psutil  # noqa: PLC0415 - see the top

    members: dict[int, Mapping[str, str]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members[process.pid] = {}
                members[process.pid] = process.environ()
    return members


def words_of(pid: int) -> list[str]:
    """Return the command line of a process; empty when it cannot be read."""
    if not HAS_PROC:
        import psutil  # noqa: PLC0415 - see the top

        with suppress(psutil.Error):
            return psutil.Process(pid).cmdline()
        return []
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def _is_ours(pid: int) -> bool:
    words = words_of(pid)
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return os.path.basename(script) in {"interlock", "interlock-mcp"}
