"""The calls of one agent: what the MCP tools, the command line, the hooks and the graph use."""

from collections.abc import Sequence
from typing import Any, cast

from interlock.reservations import status
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
    StandingAnswer,
)
from interlock.reservations.leases import calls
from interlock.reservations.leases.arguments import shortened_wait
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.messages import negotiation, sending


class Reservations:
    """What one agent can do. The first call registers the agent; every call is a sign of life.

    A refusal is an answer with `errors`, never an exception; exceptions (`ReservationError`) are for what the agent
    cannot mend. Every argument may be anything: what has the wrong type is refused like any other wrong value.

    Args:
        runtime: The store and the world.
        caller: Who calls.
    """

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self.runtime = runtime
        self.caller = caller

    def reserve_files(
        self,
        patterns: Sequence[str],
        reason: str = "",
        ttl_minutes: float | None = None,
        *,
        exclusive: bool = True,
        no_force: bool = False,
        partial: bool = False,
        wait_seconds: float = 0,
        idempotency_key: str | None = None,
    ) -> ReserveAnswer:
        """Reserve patterns, all or none; reserving again renews.

        Args:
            patterns: What to hold, relative to the repository root.
            reason: Why, for the others.
            ttl_minutes: How long; default: `[reservations] ttl_minutes`.
            exclusive: Nobody else may hold an overlapping lease.
            no_force: Never to be taken by escalation.
            partial: Grant what is free in place of all or none.
            wait_seconds: How long to wait in the line; at most `[reservations] max_wait_seconds`, which the answer
                then says. The place in the line is kept.
            idempotency_key: The same key gives the first answer again.
        """
        answer = calls.reserve(
            self.runtime, self.caller, patterns, reason=reason, ttl_minutes=ttl_minutes, exclusive=exclusive,
            no_force=no_force, partial=partial, wait_seconds=wait_seconds, idempotency_key=idempotency_key,
        )  # fmt: skip
        return cast("ReserveAnswer", {**answer, **shortened_wait(self.runtime, wait_seconds)})

    def release_files(self, reservation_ids: Sequence[str]) -> ReleaseAnswer:
        """Release leases by id; those of others are refused."""
        return calls.release(self.runtime, self.caller, reservation_ids, tell=True)

    def release_all(self) -> ReleaseAllAnswer:
        """Release everything, and leave the line."""
        return calls.release_all(self.runtime, self.caller, tell=True)

    def check_conflicts(self, patterns: Sequence[str]) -> ConflictsAnswer:
        """Say what stands in the way of patterns, and reserve nothing."""
        return calls.check(self.runtime, self.caller, patterns)

    def my_reservations(self) -> MineAnswer:
        """Return the active leases of this agent."""
        return calls.mine(self.runtime, self.caller)

    def send_message(
        self, to: str, body: str, topic: str | None = None, idempotency_key: str | None = None
    ) -> SentAnswer:
        """Send a message to one agent that exists."""
        return sending.send(self.runtime, self.caller, to, body, topic=topic, idempotency_key=idempotency_key)

    def fetch_inbox(
        self, cursor: int | None = None, *, unread_only: bool = True, limit: int | None = None
    ) -> InboxAnswer:
        """Return messages to this agent and mark them as read; look after its own negotiations that timed out."""
        return sending.fetch(self.runtime, self.caller, cursor, unread_only=unread_only, limit=limit)

    def list_agents(self) -> AgentsAnswer:
        """Return the agents that were seen lately, with their leases counted."""
        return status.list_agents(self.runtime, self.caller)

    def request_release(self, agent_name: str, pattern: str, reason: str) -> RequestAnswer:
        """Ask an agent to release a pattern, without urgency and time limit; deprecated."""
        return negotiation.request(self.runtime, self.caller, agent_name, pattern, reason)

    def negotiate_release(
        self, file: str, reason: str, urgency: str = "normal", agent_name: str | None = None, wait_seconds: float = 0
    ) -> NegotiateAnswer:
        """Ask the holder of a file to release it, and wait for the answer if wanted."""
        answer = negotiation.negotiate(
            self.runtime, self.caller, file, reason, urgency=urgency, agent_name=agent_name, wait_seconds=wait_seconds
        )
        return cast("NegotiateAnswer", {**answer, **shortened_wait(self.runtime, wait_seconds)})

    def respond_to_release(
        self,
        thread_id: str,
        action: str,
        file: str | None = None,
        eta_minutes: float | None = None,
        reason: str | None = None,
        requester: str | None = None,
    ) -> RespondAnswer:
        """Answer a request: release now, or defer with an ETA. A `requester` must be who asked."""
        return negotiation.respond(
            self.runtime, self.caller, thread_id, action, file=file, eta_minutes=eta_minutes, reason=reason,
            requester=requester, tell=True,
        )  # fmt: skip

    def standing(self, since_minutes: float = 60) -> StandingAnswer:
        """Return leases, waiters, and the negotiations of the last minutes."""
        return status.standing(self.runtime, self.caller, since_minutes)

    def join(self) -> dict[str, Any]:
        """Register this agent and bind its process to it; returns its name and what concerns it now."""
        return status.join(self.runtime, self.caller)

    def leave(self) -> dict[str, Any]:
        """Release everything of this agent and unbind its process; the agent and its messages stay."""
        return status.leave(self.runtime, self.caller)
