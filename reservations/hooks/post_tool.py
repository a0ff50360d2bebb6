"""`interlock hook post-tool`: the tool has ended, so what others hold is looked at, and what it did to that is undone.

Every tool that may write is followed, also where it failed: a script that breaks off has done half its harm.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final, cast

from interlock.reservations import place
from interlock.reservations.hooks import client_hook, client_input
from interlock.reservations.hooks.client_input import Call
from interlock.reservations.versions import store, watch

_FAILED: Final = "PostToolUseFailure"


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0; what was undone goes to the agent as context, and to the holders as messages."""
    client = client_input.client_of(argv)
    call = client_input.read(data, is_over=True)
    # A command may have removed the folder that it ran in.
    found = place.find(call.cwd) if os.path.isdir(call.cwd) else store.place_of_session(call.session_id)
    ctx = None if found is None else client_hook.opened_if_used(found, call, env, client)
    if found is None or ctx is None:
        return 0
    ended = watch.Ended(call.session_id, call.tool_use_id, call.tool, failed=_failed(call))
    lines = [f"Interlock: {line}" for line in watch.look_now(ctx, found, ended)]
    client_hook.answer(call, "PostToolUse", "\n".join(lines))
    return 0


def _failed(call: Call) -> bool:
    response: object = call.fields.get("tool_response")
    answer = cast("dict[str, object]", response) if isinstance(response, dict) else {}
    return call.event == _FAILED or bool(answer.get("error"))
