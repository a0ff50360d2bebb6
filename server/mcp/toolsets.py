"""The toolsets of the MCP server, by their names, and the server that offers some of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from interlock.server.mcp import envelope, prompts, tickets
from interlock.server.mcp.app import INSTRUCTIONS, InterlockServer
from interlock.server.rules import CallError

ALL: Final = ("tickets", "tasks", "reservations", "envelope")
"""Every toolset that is offered unless others are named, in the order of the tool list."""

POC: Final = "poc"
"""The toolset with `interlock_next_step` alone, for clients of the Governance Design; `tickets` has the tool too."""

POC_INSTRUCTIONS: Final = """\
Begin with `{"ticket_id": …, "title": …, "state": "intake", "run_id": …}` and call `interlock_next_step` once a state: \
set `state` to `next_state`, do what `agent_role` says, and put the fields of the state into `payload`.
On `retry`, fix what `fixes` names and send again. On `stop`, and in `finalize`, end and report `reason`.
Change no file of the project before the plan has passed."""


def make_server(
    root: Path, *, toolsets: Sequence[str] = ALL, caller: Callable[[], str] = lambda: ""
) -> InterlockServer:
    """Return the MCP server of a project.

    Raises:
        CallError: A toolset is unknown, or none is named (MCP301).
    """
    wanted = [each.strip() for each in toolsets if each.strip()]
    unknown = [each for each in wanted if each not in (*ALL, POC)]
    if unknown or not wanted:
        message = f"there is no toolset `{unknown[0][:80]}`" if unknown else "no toolset is named"
        raise CallError("MCP301", message, f"Name some of {', '.join((*ALL, POC))}.")
    instructions = POC_INSTRUCTIONS if set(wanted) == {POC} else INSTRUCTIONS
    server = InterlockServer(root.resolve(), caller=caller, instructions=instructions)
    if "tickets" in wanted or POC in wanted:
        tickets.register(server, single="tickets" not in wanted)
    # These two are imported only where they are offered, since each adds to the time before the first answer.
    if "tasks" in wanted:
        from interlock.server.mcp import tasks  # noqa: PLC0415

        tasks.register(server)
    if "reservations" in wanted:
        from interlock.server.mcp import reservations  # noqa: PLC0415

        server.on_close = reservations.register(server).drain
    if "envelope" in wanted:
        envelope.register(server)
    prompts.register(server)
    return server
