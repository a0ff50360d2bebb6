"""Which tool calls are in flight: what began and has not ended, whether or not its client ever says so.

Answers T1. Clients say that a tool has ended at once for work in the background, under another name where it failed,
late, or never (a call that was denied; a client that was killed, whose command goes on). So the event alone ends no
call: one that may write anything stays in flight, in the background, for as long as a process that belongs to it lives.
A process belongs to a call if it started after the call began, works below the call's checkout, and has the session's
id in its environment or the client among its ancestors.

An editing tool is followed in the same way, since clients run a user's own hooks after it, such as a formatter.

A call without an event ends when its session says that it stops, when its client has ended and nothing of it lives, or
after `MAX_SECONDS`: no client lets a command run longer in the foreground.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from interlock.reservations import place, process
from interlock.reservations.store.records import key_of
from interlock.reservations.versions import store
from interlock.reservations.versions.store import Call

MAX_SECONDS: Final = 900.0
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
    clients = {(call.pid, call.started) for call in calls if call.pid is not None}
    gone = {client for client in clients if is_running(process.host(), *client) is False}
    doubtful = [
        call for call in calls if call.background or (call.pid, call.started) in gone or now - call.begun > MAX_SECONDS
    ]
    running = living(doubtful)
    return [call for call in doubtful if call.number not in running]


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


def living(calls: Sequence[Call]) -> set[int]:
    """Return the numbers of the calls of which a process still runs."""
    found: set[int] = set()
    if not calls:
        return found
    own = {os.getpid(), *(each.pid for each in process.ancestors())}
    for pid, folder in process.folders():
        # The folder is asked first, for most processes work elsewhere.
        here = [call for call in calls if place.inside(call.root, folder)]
        if not here or pid in own or _is_hook(pid) or (begun := process.beginning(pid)) is None:
            continue
        since, variables = begun[0] + _START_SECONDS, begun[1]
        for call in here:
            is_marked = bool(call.session) and os.fsencode(call.session) in variables
            if call.begun <= since and (is_marked or (call.pid is not None and _descends(pid, call.pid))):
                found.add(call.number)
    return found


def _is_hook(pid: int) -> bool:
    """Return whether a process is a hook of ours, which every tool call starts."""
    return "hook" in process.words_of(pid)[1:4]


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        found = process.read(pid)
        pid = 0 if found is None else found.parent
    return False


def result(edit: str, before: bytes) -> bytes | None:
    """Return what an editing tool makes of a file, from what it was before; None where that is not known.

    So the tool's own result is known from what it was asked to do, and never from what a hook finds on the disk later.

    Args:
        edit: A JSON object with `content`, the whole text, or `edits`, each with `old_string` and `new_string`.
    """
    said: Mapping[str, Any] = json.loads(edit)
    text = said["content"] if "content" in said else _edited(before, said["edits"])
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _edited(before: bytes, edits: list[object]) -> str | None:
    try:
        text = before.decode("utf-8")
    except UnicodeDecodeError:
        return None
    for edit in edits:
        row: Mapping[str, Any] = cast("Mapping[str, Any]", edit) if isinstance(edit, dict) else {}
        old, new = row.get("old_string"), row.get("new_string")
        if not isinstance(old, str) or not isinstance(new, str) or (old and old not in text):
            return None
        text = text.replace(old, new, -1 if row.get("replace_all") else 1) if old else new
    return text
