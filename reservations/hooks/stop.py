"""`interlock hook stop`: requests that still wait when the agent stops, and the leases of a session that ends.

A pause in the middle of a session (Stop) takes nothing away: the agent is sent back once for each request that it has
not answered. The end of a session (SessionEnd) releases what has no uncommitted changes; what has some stays reserved
until its lease ends or somebody takes it over from the ended process.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from interlock.reservations import place, status
from interlock.reservations.hooks import client_hook, client_input, release_requests
from interlock.reservations.leases import calls, granting, marks, wait_queue
from interlock.reservations.leases.runtime import Context
from interlock.reservations.versions import watch

END: Final = "SessionEnd"
SUBAGENT_END: Final = "SubagentStop"


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0; a Stop with open requests is answered with a block and the calls to make."""
    client = client_input.client_of(argv)
    call = client_input.read(data)
    found = place.find(call.cwd)
    if not place.is_used(found):
        return 0
    ctx = client_hook.opened(found, call, env, client)
    watch.stopped(ctx, found, call.session_id)
    if call.event == END:
        _end(ctx)
    elif not call.fields.get("stop_hook_active"):
        _remind(ctx)
    if call.event == SUBAGENT_END and call.agent_id:
        with calls.entered(ctx) as entry:
            granting.inherit(entry)
    return 0


def _remind(ctx: Context) -> None:
    """Send the agent back to its open requests; for each of them once."""
    with calls.entered(ctx) as entry:
        open_ones = release_requests.look(entry)
        new = [row for row, _ in open_ones.open if marks.once(entry, f"stop {row.thread_id}")]
    if not new:
        return
    reason = "\n".join(["Before you stop, answer who waits for your files:", *release_requests.spelled(open_ones, new)])
    sys.stdout.write(json.dumps({"decision": "block", "reason": reason}) + "\n")


def _end(ctx: Context) -> None:
    """Release what has no uncommitted changes; when nothing is left, the agent leaves."""
    own = calls.mine(ctx)["reservations"]
    dirty = ctx.runtime.dirty(ctx.caller.root, tuple(row["pattern"] for row in own))
    clean = [row["reservation_id"] for row in own if dirty.get(row["pattern"]) is False]
    if len(clean) == len(own):
        status.leave(ctx)
        return
    with calls.entered(ctx) as entry:
        wait_queue.leave_all(entry, "its session ended")
        wait_queue.settle(entry)
    if clean:
        calls.release(ctx, clean, report_unsaved=False)
