"""The toolset `tickets`: a ticket is begun, submitted and looked at; the server alone moves it (Ticket Protocol)."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from anyio import to_thread
from mcp_types import ToolAnnotations
from pydantic import Field

from interlock.graph.pipeline.contract import MinimalResponse, RunStatus, TicketResponse
from interlock.server.resources import run_uris

if TYPE_CHECKING:
    from interlock.graph.pipeline.tickets import Tickets
    from interlock.server.app import InterlockServer

AnswerT = TypeVar("AnswerT")

TicketJson = Annotated[str | dict[str, Any], Field(description="The whole ticket: an object, or its JSON text.")]
Payload = Annotated[str | dict[str, Any], Field(description="The payload: an object, or its JSON text.")]

_WRITES = ToolAnnotations(destructive_hint=False, idempotent_hint=True)
_READS = ToolAnnotations(read_only_hint=True)


def register(server: "InterlockServer") -> None:
    """Add the tools to a server."""
    told: dict[str, int] = {}

    async def at_work(work: "Callable[[Tickets], AnswerT]") -> AnswerT:
        """Run one call in a thread: the first one imports the graph, and each waits for the disk."""
        return await to_thread.run_sync(lambda: work(server.tickets))

    async def moved(answer: TicketResponse | MinimalResponse, submitted: object = None) -> None:
        """Tell who listens that a run moved: its revision is another than the last one told."""
        ticket = answer.get("updated_ticket")
        if ticket is None:
            named = _run_of(submitted)
            if named:
                await server.announce(run_uris(named))
        elif told.get(ticket["run_id"]) != ticket["revision"]:
            told[ticket["run_id"]] = ticket["revision"]
            await server.announce(run_uris(ticket["run_id"]))

    @server.tool(annotations=_WRITES)
    async def interlock_begin_run(ticket_id: str, run_id: str | None = None) -> TicketResponse:
        """Begin a run of a ticket and get its ticket.json; the same run_id again returns its present ticket."""
        who = server.caller()
        answer = await at_work(lambda tickets: tickets.begin(ticket_id, run_id, caller=who))
        await moved(answer)
        return answer

    @server.tool(annotations=_WRITES)
    async def interlock_submit_ticket(ticket_json: TicketJson) -> TicketResponse:
        """Submit the ticket with `payload` filled in; returns the next ticket, or what to mend."""
        who = server.caller()
        answer = await at_work(lambda tickets: tickets.submit(ticket_json, caller=who))
        await moved(answer)
        return answer

    @server.tool(annotations=_WRITES)
    async def interlock_submit_payload(run_id: str, revision: int, payload: Payload) -> TicketResponse:
        """Submit a payload alone, for the revision that the ticket has."""
        who = server.caller()
        answer = await at_work(lambda tickets: tickets.submit_payload(run_id, revision, payload, caller=who))
        await moved(answer)
        return answer

    @server.tool(annotations=_WRITES)
    async def interlock_next_step(ticket_json: TicketJson) -> TicketResponse | MinimalResponse:
        """Submit a ticket like interlock_submit_ticket; a minimal ticket is taken too, and answered in short."""
        who = server.caller()
        answer = await at_work(lambda tickets: tickets.next_step(ticket_json, caller=who))
        await moved(answer, ticket_json)
        return answer

    @server.tool(annotations=_READS)
    async def interlock_run_status(run_id: str) -> RunStatus | TicketResponse:
        """Say where a run stands: state, revision, required fields, retries left."""
        return await at_work(lambda tickets: tickets.status(run_id))


def _run_of(ticket: object) -> str:
    """Return the run that a minimal ticket names, which its answer does not repeat; nothing when it names none."""
    if isinstance(ticket, str):
        try:
            ticket = json.loads(ticket)
        except (ValueError, RecursionError):
            return ""
    run_id = cast("dict[str, Any]", ticket).get("run_id") if isinstance(ticket, dict) else None
    return run_id if isinstance(run_id, str) else ""
