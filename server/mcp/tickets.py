"""The toolset `tickets`: a ticket is begun, submitted and looked at; the server alone moves it (Ticket Protocol)."""

from dataclasses import asdict
from typing import Annotated, Any, Final, cast

from pydantic import Field

from interlock.core.json import compact
from interlock.graph import MinimalResponse, MinimalTicket, RunStatus, Ticket, TicketResponse
from interlock.server.mcp.app import READS, WRITES, InterlockServer

TicketJson = Annotated[str | dict[str, Any], Field(description="The whole ticket: an object, or its JSON text.")]
Payload = Annotated[str | dict[str, Any], Field(description="The payload: an object, or its JSON text.")]

TICKET_URI: Final = "interlock://runs/{run_id}/ticket"
EVENTS_URI: Final = "interlock://runs/{run_id}/events"

MAX_EVENTS: Final = 200
"""The most events that one reading returns; `next_after` says where the next one begins."""


def register(server: InterlockServer, *, single: bool = False) -> None:
    """Add the tools to a server; the toolset `poc` (Governance Design §MCP Server) is a `single` one."""

    async def moved(answer: TicketResponse | MinimalResponse) -> None:
        """Notify the listeners of the run that a call was about; it may have moved."""
        ticket = cast("Ticket | MinimalTicket | None", answer.get("ticket_json") or answer.get("updated_ticket"))
        # No run was found, so none has moved.
        if ticket is None:
            return
        await server.announce(uri.format(run_id=ticket.get("run_id", "")) for uri in (TICKET_URI, EVENTS_URI))

    async def interlock_begin_run(ticket_id: str, run_id: str | None = None) -> TicketResponse:
        """Begin a run of a ticket and get its ticket.json; the same run_id again returns its present ticket."""
        answer = await server.at_work(lambda who: server.tickets.begin(ticket_id, run_id, caller=who))
        await moved(answer)
        return answer

    async def interlock_submit_ticket(ticket_json: TicketJson) -> TicketResponse:
        """Submit the ticket with `payload` filled in; returns the next ticket, or what to fix."""
        answer = await server.at_work(lambda who: server.tickets.submit(ticket_json, caller=who))
        await moved(answer)
        return answer

    async def interlock_submit_payload(run_id: str, revision: int, payload: Payload) -> TicketResponse:
        """Submit a payload alone, for the revision that the ticket has."""
        answer = await server.at_work(lambda who: server.tickets.submit_payload(run_id, revision, payload, caller=who))
        await moved(answer)
        return answer

    async def interlock_next_step(ticket_json: TicketJson) -> TicketResponse | MinimalResponse:
        """Submit a ticket like interlock_submit_ticket; a minimal ticket is taken too, and answered in short."""
        answer = await server.at_work(lambda who: server.tickets.next_step(ticket_json, caller=who))
        await moved(answer)
        return answer

    async def interlock_run_status(run_id: str) -> RunStatus | TicketResponse:
        """Get the state of a run: revision, required fields, retries left."""
        return await server.at_work(lambda _who: server.tickets.status(run_id))

    several = (interlock_begin_run, interlock_submit_ticket, interlock_submit_payload, interlock_next_step)
    for tool in (interlock_next_step,) if single else several:
        server.add_tool(tool, annotations=WRITES)
    if not single:
        server.add_tool(interlock_run_status, annotations=READS)

    @server.resource(
        TICKET_URI, name="ticket", description="The authoritative ticket of a run.", mime_type="application/json"
    )
    async def ticket(run_id: str) -> str:
        return await server.at_work(lambda _who: compact(server.tickets.ticket(run_id)))

    @server.resource(
        EVENTS_URI + "{?after}",
        name="events",
        description="What happened in a run, oldest first, at most 200; `after` is a sequence number.",
        mime_type="application/json",
    )
    async def events(run_id: str, after: int = 0) -> str:
        def read() -> str:
            rows = server.tickets.events(run_id, after=after, limit=MAX_EVENTS)
            # A full page may be the last one: then the next is empty, and says so.
            more = rows[-1].seq if len(rows) == MAX_EVENTS else None
            return compact({"run_id": run_id, "events": [asdict(row) for row in rows], "next_after": more})

        return await server.at_work(lambda _who: read())
