"""Which tool calls are in flight: what began and has not ended, whether or not its client ever says so.

Answers T1. Clients say that a tool has ended at once for work in the background, under another name where it failed,
late, or never (a call that was denied; a client that was killed, whose command goes on). So the event alone ends no
call: one that may write anything stays in flight, in the background, for as long as a process that belongs to it lives.
A process belongs to a call if it started after the call began, works below the call's checkout, and has the session's
id in its environment or the client among its ancestors. Where there is no `/proc`, the event ends the call.

An editing tool is followed in the same way, since clients run a user's own hooks after it, such as a formatter.

A call without an event ends when its session says that it stops, when its client has ended and nothing of it lives, or
after `MAX_SECONDS`: no client lets a command run longer in the foreground.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from interlock.reservations import place, process
from interlock.reservations.store.records import key_of
from interlock.reservations.versions import store
from interlock.reservations.versions.store import Call

MAX_SECONDS: Final = 900.0
MAX_EDIT_SECONDS: Final = 120.0
"""An editing tool takes milliseconds, and a while until somebody has allowed it."""
_START_SECONDS: Final = 0.5
"""Start times of processes are counted in ticks since the boot, whose time is known to about this."""


def matching(calls: Iterable[Call], agent: str, session: str, tool: str, use_id: str) -> Call | None:
    """Return the call whose end an event tells: by its id, else the oldest of the session with that tool."""
    own = [call for call in calls if call.agent == agent and call.session == session and not call.background]
    if use_id:
        return next((call for call in own if call.use_id == use_id), None)
    return next((call for call in own if call.tool == tool), None)


def ended(calls: Sequence[Call], now: float, is_running: Callable[[str, int, str], bool | None]) -> list[Call]:
    """Return the calls that have ended without a word."""
    found: list[Call] = []
    for call in calls:
        limit = MAX_EDIT_SECONDS if call.paths else MAX_SECONDS
        is_left = call.pid is not None and is_running(process.host(), call.pid, call.started) is False
        if (call.background or is_left or now - call.begun > limit) and not lives(call):
            found.append(call)
    return found


def acting(found: place.Place, name: str) -> str:
    """Return which agent of a session calls Interlock now: the one subagent of it that runs a command of ours or git's.

    A program cannot tell subagents of its session apart: all have one client and one environment. But each call passes
    the hook first. Where none of them runs such a command, or several do, it is the session's own agent.
    """
    if not os.path.lexists(store.path_of(found)):
        return name
    with store.opened(found).transaction() as tx:
        running = [call for call in tx.calls() if call.speaks and not call.background]
    key = key_of(name)
    own = {call.agent for call in running if key_of(call.agent) == key or key_of(call.agent).startswith(f"{key}/")}
    return own.pop() if len(own) == 1 else name


def lives(call: Call) -> bool:
    """Return whether a process that belongs to a call still runs; False where that cannot be known."""
    return next(_processes(call), None) is not None


def _processes(call: Call) -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    session, own = os.fsencode(call.session), {os.getpid(), *(each.pid for each in process.ancestors())}
    for name in names:
        if not name.isdigit() or int(name) in own:
            continue
        pid = int(name)
        try:
            if os.stat(f"/proc/{name}").st_uid != os.geteuid() or _started(pid) < call.begun - _START_SECONDS:
                continue
            folder = os.readlink(f"/proc/{name}/cwd").removesuffix(" (deleted)")
            if not place.inside(call.root, folder) or _is_hook(pid):
                continue
            with open(f"/proc/{name}/environ", "rb") as file:
                is_marked = bool(session) and session in file.read()
        except (OSError, ValueError):
            continue
        if is_marked or (call.pid is not None and _descends(pid, call.pid)):
            yield pid


def _started(pid: int) -> float:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X"):
        return 0.0
    return _boot() + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _boot() -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _is_hook(pid: int) -> bool:
    """Return whether a process is a hook of ours, which every tool call starts."""
    return "hook" in process.words_of(pid)[1:4]


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        found = process.from_proc(pid)
        pid = 0 if found is None else found.parent
    return False
