"""`interlock hook pre-edit`: an edit touches no path that another agent holds, and reserves its file.

Before a shell command the git guard is asked, since a shell bypasses editing tools. Before either all held files are
looked at.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from interlock.reservations import place
from interlock.reservations.errors import ReservationError
from interlock.reservations.hooks import client_hook, client_input
from interlock.reservations.hooks.client_input import Call
from interlock.reservations.leases.runtime import Context
from interlock.reservations.place import Place
from interlock.reservations.versions import watch
from interlock.reservations.versions.store import owner_of_stash

REFUSED: Final = 2
"""The status that stops the tool call; clients let it through on every other."""
_ASKS: Final = re.compile(r"\s*interlock [^;&|`$<>\n]*")
"""A command line that asks or releases by a command of ours, and does nothing else."""


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0 when the tool may go on, or 2 with the reason on standard error; without a word when all is well.

    What cannot be known is refused: input that is not understood, a store that cannot be read.
    """
    client = client_input.client_of(argv)
    call = client_input.read(data)
    paths = client_input.written(call)
    for command in client_input.commands(call):
        if status := _guarded(command, call, env, client):
            return status
    here = place.find(call.cwd)
    if not paths:
        notices = _begun(here, client_hook.opened_if_used(here, call, env, client), call, ())
        client_hook.answer(call, "PreToolUse", "\n".join(notices))
        return 0
    from interlock.reservations.hooks.edit import reserve_files  # noqa: PLC0415 - most calls are commands

    edit = reserve_files(here, call, paths, env, client)
    if edit.refusal:
        return _stopped(edit.refusal)
    context = edit.context
    for found, ctx in edit.looks:
        # A line that applies a patch may write anything beside it.
        context += _begun(found, ctx, call, () if client_input.commands(call) else edit.places)
    client_hook.answer(call, "PreToolUse", "\n".join(context))
    return 0


def _begun(found: Place, ctx: Context | None, call: Call, paths: tuple[str, ...]) -> list[str]:
    """Look at all held files, and enter the call as one that is about to begin; return what the agent is told."""
    if ctx is None:
        return []
    edit = client_input.edit_of(call) if paths else None
    texts = (call.tool, *client_input.commands(call))
    speaks = any(name in text for text in texts for name in ("interlock", "git"))
    began = watch.Began(call.session_id, call.tool_use_id, call.tool, paths, speaks, edit)
    try:
        return [f"Interlock: {line}" for line in watch.look_now(ctx, found, began)]
    except ReservationError:
        if all(_ASKS.fullmatch(text) for text in texts[1:]) and (texts[1:] or "interlock" in call.tool):
            return []  # to ask for what cannot be kept has to be possible
        raise


def _guarded(command: str, call: Call, env: Mapping[str, str], client: str) -> int:
    from interlock.reservations.guard.check import check_command  # noqa: PLC0415 - editing tools do not need them

    found = place.find(call.cwd)
    opened = client_hook.opened(found, call, env, client) if place.is_used(found) else None
    known = {} if opened is None else {found.store_path: opened}
    named = {**env, **client_hook.identified(env, call, client)}
    reason = check_command(command, call.cwd, named, known, partial(owner_of_stash, found))
    return 0 if reason is None else _stopped([reason.rstrip()])


def _stopped(lines: Sequence[str]) -> int:
    sys.stderr.write("\n".join(lines) + "\n")
    return REFUSED
