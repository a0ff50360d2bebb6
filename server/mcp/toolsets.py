"""The toolsets of the MCP server, by their names, and the server that offers some of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from interlock.core.errors import InterlockError
from interlock.core.text import closest
from interlock.server.mcp import envelope, resources, tickets
from interlock.server.mcp.app import INSTRUCTIONS, InterlockServer

ALL: Final = ("tickets", "tasks", "reservations", "envelope")
"""Every toolset that is offered unless others are named, in the order of the tool list."""

POC: Final = "poc"
"""The toolset with `interlock_next_step` alone, for clients of the Governance Design; `tickets` has the tool too."""

POC_INSTRUCTIONS: Final = """\
Begin with `{"ticket_id": …, "title": …, "state": "intake", "run_id": …}` and call `interlock_next_step` once a state: \
set `state` to `next_state`, do what `agent_role` says, and put the fields of the state into the ticket.
On `retry`, fix what `fixes` names and send again. On `stop`, and in `finalize`, end and report `reason`.
Change no file of the project before the plan has passed."""


class ToolsetError(InterlockError):
    """A toolset is named that does not exist."""

    code = "MCP301"


def make_server(
    root: Path, *, toolsets: Sequence[str] = ALL, caller: Callable[[], str] = lambda: ""
) -> InterlockServer:
    """Return the MCP server of a project.

    Raises:
        ToolsetError: A toolset is unknown, or none is named.
    """
    wanted = [each.strip() for each in toolsets if each.strip()]
    for each in wanted:
        if each not in (*ALL, POC):
            near = closest(each, (*ALL, POC), 0.75)
            fix = f"Write `{near}`." if near else f"Name some of {', '.join((*ALL, POC))}."
            raise ToolsetError(f"there is no toolset `{each[:80]}`", fix)
    if not wanted:
        raise ToolsetError("no toolset is named", f"Name some of {', '.join((*ALL, POC))}.")
    instructions = POC_INSTRUCTIONS if set(wanted) == {POC} else INSTRUCTIONS
    server = InterlockServer(root.resolve(), caller=caller, instructions=instructions)
    if "tickets" in wanted or POC in wanted:
        tickets.register(server, single="tickets" not in wanted)
    if "tasks" in wanted:
        from interlock.server.mcp import tasks  # noqa: PLC0415

        tasks.register(server)
    if "reservations" in wanted:
        from interlock.server.mcp import reservations  # noqa: PLC0415

        server.on_close = reservations.register(server).drain
    if "envelope" in wanted:
        envelope.register(server)
    resources.register(server)
    return server
