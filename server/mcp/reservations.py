"""The toolset `reservations`: who may edit what, and how agents in one checkout settle it (Reservation Tools)."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from anyio import to_thread
from pydantic import Field

from interlock.core.json import compact
from interlock.reservations import (
    Caller,
    Reservations,
    Runtime,
    acting,
    bounded,
    drain_events,
    identity,
    open_runtime,
    place,
    process,
    replace,
    settings,
)
from interlock.reservations.answers import (
    AgentsAnswer,
    ConflictsAnswer,
    InboxAnswer,
    MineAnswer,
    NegotiateAnswer,
    ReleaseAllAnswer,
    ReleaseAnswer,
    RequestAnswer,
    ReserveAnswer,
    RespondAnswer,
    SentAnswer,
    StatusAnswer,
)
from interlock.server.mcp.app import READS, SENDS, WRITES, InterlockServer

if TYPE_CHECKING:
    from interlock.journal import Journal

AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])

RESERVATIONS_URI: Final = "interlock://reservations"

Patterns = Annotated[list[str], Field(description="Relative to the repository root: `src/app.py`, `docs/**`.")]
WaitSeconds = Annotated[float, Field(description="How long to wait, at most 45.")]

_LOG: Final = logging.getLogger("interlock.server")


class ReservationCalls:
    """The reservations of one project for everybody who calls through this server."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._lock = threading.Lock()
        self._runtime: Runtime | None = None
        self._place: place.Place | None = None
        self._journal: Journal | None = None
        self._due = False
        self._draining: asyncio.Task[None] | None = None

    def of(self, who: str, gone: threading.Event | None = None) -> Reservations:
        """Return the calls of one agent. The settings are those of the configuration as it is now.

        Args:
            who: The agent that a token belongs to; empty on stdio, where it is the client's session, looked up each
                time: it may have begun, or begun anew, after this server.
            gone: Set when nobody waits for the answer any more.

        Raises:
            ReservationError: The place, the settings or the store cannot be used.
        """
        found, runtime = self._open()
        runtime = replace(runtime, settings=settings.read(found.root), pause=_pause(gone))
        if who:
            # The process behind a request is not known, and may be on another machine.
            return Reservations(runtime, Caller(who, "agent", found.root, "http"))
        known = identity.who(os.environ, runtime.store, via="mcp")
        name = acting(found, known.name)
        via = "mcp" if name == known.name else "subagent"
        caller = Caller(name, known.kind, found.root, via, process.host(), known.pid, known.started)
        return Reservations(runtime, caller)

    def current_state(self, who: str) -> StatusAnswer:
        """Return the leases, the wait queue, and the negotiations of the last hour; where no store is, none is made."""
        found, _ = self._open()
        if not place.is_used(found):
            return StatusAnswer(leases=[], waiters=[], negotiations=[])
        return self.of(who).current_state()

    def drain(self) -> None:
        """Write what happened into the journal; what cannot be written stays queued, which is logged."""
        if self._runtime is None or self._place is None:
            return
        try:
            from interlock.journal import journal_of  # noqa: PLC0415 - slow to load

            # Kept, so that each time only what is new in the file is read.
            self._journal = self._journal or journal_of(self._place.root)
            drain_events(self._runtime.store, self._place.root, self._journal)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is out and nothing is lost
            # A journal that was removed or replaced is read anew.
            self._journal = None
            _LOG.warning("what happened to reservations stays queued and is not in the journal yet: %s", error)

    def drain_soon(self) -> None:
        """Have `drain` called, behind the answer; calls that come together are written together."""
        self._due = True
        if self._draining is None or self._draining.done():
            self._draining = asyncio.ensure_future(self._drain_all())

    async def _drain_all(self) -> None:
        # Taken down before the writing, so that a call which ends meanwhile gets a round of its own.
        while self._due:
            self._due = False
            await to_thread.run_sync(self.drain)

    def _open(self) -> tuple[place.Place, Runtime]:
        # The first calls may come at once, each in a thread of its own.
        with self._lock:
            if self._runtime is None or self._place is None:
                self._place = place.find(self._root)
                self._runtime = open_runtime(self._place)
            return self._place, self._runtime


def _pause(gone: threading.Event | None) -> Callable[[float], None]:
    """Return how a waiting call pauses: it ends when its client went away."""
    event = gone or threading.Event()

    def pause(seconds: float) -> None:
        if event.wait(seconds):
            raise asyncio.CancelledError

    return pause


def changes(answer: Mapping[str, Any]) -> bool:
    """Return whether the call with this answer changed what `interlock://reservations` holds."""
    parts = ("reservations", "taken_over", "waiting", "released", "released_count", "negotiation_timeouts")
    # Only an answer about a negotiation has a thread; it changes what waits, unless it was refused.
    asked = answer.get("thread_id") is not None and answer.get("status") != "refused"
    return asked or any(answer.get(part) for part in parts)


def register(server: InterlockServer) -> ReservationCalls:
    """Add the tools and the resource to a server; returns the calls behind them."""
    calls = ReservationCalls(server.root)

    async def at_work(
        work: Callable[[Reservations], AnswerT], *, wait_seconds: float = 0, quiet: bool = False
    ) -> AnswerT:
        gone = threading.Event()
        slots = server.waiting if wait_seconds > 0 else None
        try:
            answer = await server.at_work(lambda who: work(calls.of(who, gone)), slots)
        finally:
            # A wait whose client went away ends at its next look.
            gone.set()
            calls.drain_soon()
        # A quiet call moves nothing, though its answer names leases. Shortening is last: it may cut off what changed.
        if not quiet and changes(answer):
            await server.announce([RESERVATIONS_URI])
        return bounded(answer)

    @server.tool(annotations=WRITES)
    async def reserve_files(
        patterns: Patterns,
        reason: Annotated[str, Field(description="Why, for the others.")] = "",
        ttl_minutes: Annotated[float | None, Field(description="Default: 15, or as configured.")] = None,
        exclusive: bool = True,
        no_force: Annotated[bool, Field(description="Never to be taken by escalation.")] = False,
        wait_seconds: WaitSeconds = 0,
    ) -> ReserveAnswer:
        """Reserve what you are about to edit: all of it or, with errors[], none. Reserving again renews."""
        return await at_work(
            lambda mine: mine.reserve_files(
                patterns,
                reason,
                ttl_minutes,
                exclusive=exclusive,
                no_force=no_force,
                wait_seconds=wait_seconds,
            ),
            wait_seconds=wait_seconds,
        )

    @server.tool(annotations=WRITES)
    async def release_files(reservation_ids: list[str]) -> ReleaseAnswer:
        """Release reservations by id, as soon as you have committed."""
        return await at_work(lambda mine: mine.release_files(reservation_ids))

    @server.tool(annotations=WRITES)
    async def release_all() -> ReleaseAllAnswer:
        """Release everything that you hold, and leave every queue."""
        return await at_work(lambda mine: mine.release_all())

    @server.tool(annotations=READS)
    async def check_conflicts(patterns: Patterns) -> ConflictsAnswer:
        """See who holds what overlaps patterns, and whether they still work; reserves nothing."""
        return await at_work(lambda mine: mine.check_conflicts(patterns), quiet=True)

    @server.tool(annotations=READS)
    async def my_reservations() -> MineAnswer:
        """List what you hold now."""
        return await at_work(lambda mine: mine.my_reservations(), quiet=True)

    @server.tool(annotations=SENDS)
    async def send_message(
        to: Annotated[str, Field(description="An agent of list_agents.")],
        body: str,
        topic: str | None = None,
    ) -> SentAnswer:
        """Send a message to one agent."""
        return await at_work(lambda mine: mine.send_message(to, body, topic), quiet=True)

    @server.tool(annotations=SENDS)
    async def fetch_inbox(
        cursor: Annotated[int | None, Field(description="next_cursor of the last answer.")] = None,
        unread_only: bool = True,
        limit: int | None = None,
    ) -> InboxAnswer:
        """Read messages to you, and mark them as read; tells which of your requests timed out."""
        return await at_work(lambda mine: mine.fetch_inbox(cursor, unread_only=unread_only, limit=limit))

    @server.tool(annotations=READS)
    async def list_agents() -> AgentsAnswer:
        """List the agents of this project: whether each still works, and how much it holds."""
        return await at_work(lambda mine: mine.list_agents(), quiet=True)

    @server.tool(annotations=WRITES)
    async def request_release(agent_name: str, pattern: str, reason: str) -> RequestAnswer:
        """Ask for a release without urgency and time limit; deprecated, use negotiate_release."""
        return await at_work(lambda mine: mine.request_release(agent_name, pattern, reason))

    @server.tool(annotations=WRITES)
    async def negotiate_release(
        file: Annotated[str, Field(description="A path or a pattern that another agent holds.")],
        reason: str,
        urgency: Literal["low", "normal", "urgent"] = "normal",
        agent_name: Annotated[str | None, Field(description="The holder; default: whoever it is.")] = None,
        wait_seconds: WaitSeconds = 0,
    ) -> NegotiateAnswer:
        """Ask the holder of a file to release it. On `free` or `release` reserve it; on `pending` ask again later."""
        return await at_work(
            lambda mine: mine.negotiate_release(file, reason, urgency, agent_name, wait_seconds),
            wait_seconds=wait_seconds,
        )

    @server.tool(annotations=WRITES)
    async def respond_to_release(
        thread_id: str,
        action: Literal["release", "defer"],
        eta_minutes: Annotated[float | None, Field(description="To defer: in how many minutes.")] = None,
        reason: str = "",
    ) -> RespondAnswer:
        """Answer a release-request of your inbox: release now, or defer."""
        return await at_work(lambda mine: mine.respond_to_release(thread_id, action, eta_minutes, reason))

    @server.resource(
        RESERVATIONS_URI,
        name="reservations",
        description="Leases, who waits, and the negotiations of the last hour.",
        mime_type="application/json",
    )
    async def current_state() -> str:
        return await server.at_work(lambda who: compact(bounded(calls.current_state(who))))

    return calls
