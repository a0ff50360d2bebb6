"""`interlock hook session-start`: the session gets its name, and its client's process is remembered.

With that the MCP server, shell commands and git's hooks below the same client are the same agent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlock.reservations import identity, place, status
from interlock.reservations.hooks import client_hook, client_input
from interlock.reservations.leases import calls, marks
from interlock.reservations.leases.runtime import Context
from interlock.reservations.rules import named, shown, some
from interlock.reservations.store.records import key_of

ENV_FILE: Final = "CLAUDE_ENV_FILE"
EVENT: Final = "SessionStart"
MAX_SHOWN: Final = 8


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0; the agent gets a short context: its name, who else is here, and what is asked of it.

    In a folder that is not a project (no git checkout, never used with Interlock) nothing is made or printed.
    """
    client = client_input.client_of(argv)
    call = client_input.read(data)
    found = place.find(call.cwd)
    if not found.common and not place.is_used(found):
        return 0
    ctx = client_hook.opened(found, call, env, client)
    own = status.join(ctx)
    with calls.entered(ctx) as entry:
        marks.put(entry, entry.agent.name, "root", found.root)
    client_hook.answer(call, EVENT, _context(ctx, own))
    if path := env.get(ENV_FILE):
        _export(path, identity.exports(env, own["name"], call.session_id))
    return 0


def _context(ctx: Context, own: Mapping[str, Any]) -> str:
    me = key_of(own["name"])
    seen = status.current_state(ctx, 0)
    held = [row for row in seen["leases"] if key_of(row["holder"]) != me]
    others = [row for row in status.list_agents(ctx)["agents"] if key_of(row["name"]) != me]
    here = [named(row["name"]) for row in others if row["state"] == "alive"]
    lines = [f"Interlock: you are {shown(own['name'])} in {shown(ctx.caller.root)}. Your edits reserve their files."]
    if here:
        lines.append(f"Others here: {some(here, MAX_SHOWN)}.")
    if held:
        rows = [f"{named(row['pattern'])} ({named(row['holder'])}, {row['holder_state']})" for row in held]
        lines.append(f"They hold: {some(rows, MAX_SHOWN)}. Reserve what you need with reserve_files before you begin.")
    if own["leases"]:
        lines.append(f"You hold: {some((row['pattern'] for row in own['leases']), MAX_SHOWN)}.")
    if own["requests"]:
        rows = [f"{named(row['requester'])} asks for {named(row['file'])}" for row in own["requests"]]
        lines.append(f"{some(rows, MAX_SHOWN)}: answer with respond_to_release; fetch_inbox() has the thread ids.")
    elif own["unread"]:
        lines.append(f"Unread messages: {own['unread']}; fetch_inbox() reads them.")
    if here or held:
        lines.append("Commit with `interlock commit`, which takes your own paths alone.")
    return "\n".join(lines)


def _export(path: str, variables: Mapping[str, str]) -> None:
    """Add the variables to the file that the client reads before each shell command."""
    from shlex import quote  # noqa: PLC0415 - slow to import

    with open(path, "a", encoding="utf-8") as file:
        file.writelines(f"\nexport {name}={quote(value)}\n" for name, value in variables.items())
