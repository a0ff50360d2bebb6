"""`interlock hook post-tool`: what a command wrote is compared with what others hold.

Writes through a shell bypass the edit hook. After a tool that may write, changed files that another agent holds and
that changed while the tool ran are reported to both: once for each file and lease. A holder that was at work in the
same time is left out, since then nobody can say whose change it is.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from interlock.reservations import place
from interlock.reservations.git import commands
from interlock.reservations.hooks import client_hook, client_input
from interlock.reservations.hooks.client_input import Call
from interlock.reservations.leases import calls, hook_state
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.patterns import Pattern, canonical
from interlock.reservations.patterns.prefix_index import Near
from interlock.reservations.rules import shown
from interlock.reservations.store.records import Lease, key_of

MAX_SHOWN: Final = 10
MAX_ASKED: Final = 500
"""For more leases than these git is asked about the whole checkout: its command line has an end."""


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0; what was found goes to the agent as context, and to the holders as messages."""
    client = client_input.client_of(argv)
    call = client_input.read(data)
    if not client_input.is_watched(call):
        return 0
    found = place.find(call.cwd)
    if not os.path.lexists(found.store_path):
        return 0
    ctx = client_hook.opened(found, call, env, client)
    with calls.entered(ctx) as entry:
        begun = hook_state.begun(entry, call.tool_use_id)
        held = [] if begun is None else _idle(entry, begun - hook_state.GRAIN_SECONDS)
    if begun is None or not held:
        return 0
    hits = _changed(found, held, begun - hook_state.GRAIN_SECONDS)
    if hits:
        client_hook.answer(call, "PostToolUse", _report(ctx, call, hits))
    return 0


def _idle(entry: Entry, since: float) -> list[Lease]:
    me = key_of(entry.agent.name)
    others = (lease for lease in entry.tx.leases() if key_of(lease.agent) != me)
    return [lease for lease in others if max(lease.granted_at, lease.renewed_at) < since]


def _changed(found: place.Place, held: Sequence[Lease], since: float) -> list[tuple[str, Lease]]:
    """Return the held files that changed on the disk since a time, each with its lease.

    In a git checkout these are files with uncommitted changes; elsewhere only leases of single files can be looked at.
    """
    if found.common:
        near = Near((lease.pattern, lease.prefix, lease) for lease in held)
        paths = commands.changed(
            found.root, {commands.beginning(lease.prefix) for lease in held} if len(held) <= MAX_ASKED else ()
        )
        pairs = [(path, lease) for path in paths for lease in near.covering(path)]
    else:
        rows = ((canonical(lease.pattern), lease) for lease in held)
        pairs = [(row.path, lease) for row, lease in rows if isinstance(row, Pattern) and row.literal]
    return [(path, lease) for path, lease in pairs if hook_state.time_of(os.path.join(found.root, path)) >= since]


def _report(ctx: Context, call: Call, hits: Sequence[tuple[str, Lease]]) -> str:
    """Notify the holders, and return the message for the writer: only what was not reported before."""
    with calls.entered(ctx) as entry:
        new = [hit for hit in hits if hook_state.once(entry, f"surprise {hit[1].reservation_id} {hit[0]}")]
        if new:
            from interlock.reservations.git import overwritten  # noqa: PLC0415 - few tools surprise anybody

            overwritten.notify_in_call(entry, new, f"while {shown(call.tool)} of {entry.agent.name} ran", call.tool)
    if not new:
        return ""
    lines = [
        f"  {shown(path)}: held by {shown(lease.agent)} as {shown(lease.pattern)}" for path, lease in new[:MAX_SHOWN]
    ]
    lines += [f"  and {len(new) - MAX_SHOWN} more"] if len(new) > MAX_SHOWN else []
    return "\n".join([
        f"Interlock: while {shown(call.tool)} ran, files changed that other agents hold; the holders were notified.",
        *lines,
        "If it was this command, tell the holder what you changed with send_message, and undo it unless you agree.",
    ])  # fmt: skip
