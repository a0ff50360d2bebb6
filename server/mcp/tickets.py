"""The toolset `tickets`: a ticket is begun, submitted and looked at; the server alone moves it (Ticket Protocol)."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar, cast

from pydantic import Field

from interlock import graph
from interlock.graph import MinimalResponse, MinimalTicket, RunBusyError, RunStatus, SentTicket, TicketResponse
from interlock.server.mcp.app import EVENTS_URI, READS, TICKET_URI, WRITES, InterlockServer
from interlock.server.mcp.concurrency import CallSlots

AnswerT = TypeVar("AnswerT")

TicketJson = Annotated[str | dict[str, Any], Field(description="The whole ticket: an object, or its JSON text.")]
Payload = Annotated[str | dict[str, Any], Field(description="The payload: an object, or its JSON text.")]

CALLS: Final = 32
"""How many ticket calls of one caller are at work at once."""
CALLS_ON_A_RUN: Final = 4
"""How many of them are about one run; a run does one thing at a time, so the others would only wait."""
MAX_REMEMBERED: Final = 1000
"""Of so many runs the last announced revision is remembered; of an older one, a repetition is announced again."""


def register(server: InterlockServer, *, single: bool = False) -> None:
    """Add the tools to a server; the toolset `poc` (Governance Design §MCP Server) is a `single` one."""
    announced: dict[str, int] = {}
    slots = CallSlots(CALLS, CALLS_ON_A_RUN)

    async def at_work(
        run_id: str, work: "Callable[[graph.Tickets, str], AnswerT]", *, minimal: bool = False
    ) -> AnswerT | TicketResponse:
        """Run one call in a thread: the first one imports the graph, and each waits for the disk."""
        try:
            return await server.at_work(slots, lambda who: work(server.tickets, who), run_id)
        except RunBusyError as error:
            return graph.busy_answer(error, minimal_too=minimal)

    async def moved(answer: TicketResponse | MinimalResponse) -> None:
        """Notify the listeners of a run that moved: its revision is another than the last one announced."""
        ticket = cast("SentTicket | MinimalTicket | None", answer.get("ticket_json") or answer.get("updated_ticket"))
        if ticket is None:
            return
        run_id, revision = ticket.get("run_id", ""), ticket["revision"]
        moves = announced.pop(run_id, None) != revision
        announced[run_id] = revision
        if len(announced) > MAX_REMEMBERED:
            del announced[next(iter(announced))]
        if moves:
            await server.announce(uri.format(run_id=run_id) for uri in (TICKET_URI, EVENTS_URI))

    async def interlock_begin_run(ticket_id: str, run_id: str | None = None) -> TicketResponse:
        """Begin a run of a ticket and get its ticket.json; the same run_id again returns its present ticket."""
        answer = await at_work(run_id or "", lambda tickets, who: tickets.begin(ticket_id, run_id, caller=who))
        await moved(answer)
        return answer

    async def interlock_submit_ticket(ticket_json: TicketJson) -> TicketResponse:
        """Submit the ticket with `payload` filled in; returns the next ticket, or what to fix."""
        answer = await at_work(_run_of(ticket_json), lambda tickets, who: tickets.submit(ticket_json, caller=who))
        await moved(answer)
        return answer

    async def interlock_submit_payload(run_id: str, revision: int, payload: Payload) -> TicketResponse:
        """Submit a payload alone, for the revision that the ticket has."""
        answer = await at_work(
            run_id, lambda tickets, who: tickets.submit_payload(run_id, revision, payload, caller=who)
        )
        await moved(answer)
        return answer

    async def interlock_next_step(ticket_json: TicketJson) -> TicketResponse | MinimalResponse:
        """Submit a ticket like interlock_submit_ticket; a minimal ticket is taken too, and answered in short."""
        answer = await at_work(
            _run_of(ticket_json), lambda tickets, who: tickets.next_step(ticket_json, caller=who), minimal=True
        )
        await moved(answer)
        return answer

    async def interlock_run_status(run_id: str) -> RunStatus | TicketResponse:
        """Get the state of a run: revision, required fields, retries left."""
        return await at_work("", lambda tickets, _who: tickets.status(run_id))

    several = (interlock_begin_run, interlock_submit_ticket, interlock_submit_payload, interlock_next_step)
    for tool in (interlock_next_step,) if single else several:
        server.add_tool(tool, annotations=WRITES)
    if not single:
        server.add_tool(interlock_run_status, annotations=READS)


def _run_of(ticket: object) -> str:
    if isinstance(ticket, str):
        try:
            ticket = json.loads(ticket)
        except (ValueError, RecursionError):
            return ""
    run_id = cast("dict[str, Any]", ticket).get("run_id") if isinstance(ticket, dict) else None
    return run_id if isinstance(run_id, str) else ""
