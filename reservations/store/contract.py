"""The contract of a store: one exclusive transaction at a time, and plain rows inside it. No rule stands here.

SQLite keeps the rows today; another database only has to implement this protocol and pass
`tests/conformance/stores.py`.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from interlock.reservations.store.records import Agent, Event, Lease, Message, Negotiation, Waiter


class Transaction(Protocol):
    """Rows as of one moment. Nobody else writes until it ends; an exception undoes everything.

    Names of agents are looked up by `key_of`. What is not there is None or an empty list, never an error.
    """

    # -- counters and processes ------------------------------------------------------------------------------------

    def store_id(self) -> str:
        """Return the 16 hex digits that this store was made with."""
        ...

    def next_number(self, counter: str) -> int:
        """Return 1, 2, 3 … of a counter (`token`); a number is never given twice, a rolled back one may be."""
        ...

    def bind_process(self, host: str, pid: int, started: str, agent: str, at: float) -> None:
        """Remember which agent a client process is; the last one counts."""
        ...

    def agent_of_process(self, host: str, pid: int, started: str) -> str | None:
        """Return the agent of a client process."""
        ...

    # -- agents ----------------------------------------------------------------------------------------------------

    def agent(self, name: str) -> Agent | None:
        """Return an agent."""
        ...

    def put_agent(self, agent: Agent) -> None:
        """Add an agent, or replace the one of that name; the name as it was first given stays."""
        ...

    def agents(self) -> list[Agent]:
        """Return all agents, the one seen last first."""
        ...

    # -- leases ----------------------------------------------------------------------------------------------------

    def lease(self, reservation_id: str) -> Lease | None:
        """Return a lease that has not ended, expired or not."""
        ...

    def put_lease(self, lease: Lease) -> None:
        """Add a lease, or replace the one of that id."""
        ...

    def drop_lease(self, reservation_id: str) -> None:
        """End a lease; without one of that id, nothing happens."""
        ...

    def leases_of(self, agent: str) -> list[Lease]:
        """Return the leases of an agent, the oldest first."""
        ...

    def leases(self) -> list[Lease]:
        """Return all leases, the oldest first."""
        ...

    def others_hold(self, agent: str) -> bool:
        """Return whether any other agent has a lease; cheap however many there are."""
        ...

    def near(self, ancestors: Sequence[str], prefix: str) -> list[Lease]:
        """Return the leases that a pattern may overlap by the literal beginnings alone, the oldest first.

        Those whose prefix is one of `ancestors`, and those whose prefix begins with `prefix` (`patterns.ancestors`,
        `patterns.index_prefix`). It must use the index: its cost grows with what it returns, not with all leases.
        """
        ...

    def expired(self, now: float) -> list[Lease]:
        """Return the leases with `expires_at <= now`, by `expires_at`."""
        ...

    # -- the line --------------------------------------------------------------------------------------------------

    def add_waiter(self, waiter: Waiter) -> Waiter:
        """Put a waiter at the end of the line; `waiter_id` is given by the store."""
        ...

    def put_waiter(self, waiter: Waiter) -> None:
        """Replace the waiter of that id."""
        ...

    def drop_waiter(self, waiter_id: int) -> None:
        """Take a waiter out of the line."""
        ...

    def waiter(self, waiter_id: int) -> Waiter | None:
        """Return a waiter."""
        ...

    def waiters(self) -> list[Waiter]:
        """Return the line in its order, granted ones included until they are dropped."""
        ...

    # -- messages --------------------------------------------------------------------------------------------------

    def add_message(self, message: Message) -> Message:
        """Keep a message; `message_id` is given by the store."""
        ...

    def put_message(self, message: Message) -> None:
        """Replace the message of that id."""
        ...

    def inbox(self, agent: str, *, after: int, unread_only: bool, limit: int) -> list[Message]:
        """Return the messages to an agent with an id above `after`, in order, at most `limit`."""
        ...

    def unread_count(self, agent: str) -> int:
        """Return how many messages to an agent have not been read."""
        ...

    def thread(self, thread_id: str) -> list[Message]:
        """Return the messages of a thread, in order."""
        ...

    # -- negotiations ----------------------------------------------------------------------------------------------

    def negotiation(self, thread_id: str) -> Negotiation | None:
        """Return a negotiation."""
        ...

    def put_negotiation(self, negotiation: Negotiation) -> None:
        """Add a negotiation, or replace the one of that thread."""
        ...

    def open_negotiations(self, *, reservation_id: str | None = None, requester: str | None = None,
                          holder: str | None = None) -> list[Negotiation]:  # fmt: skip
        """Return the pending and deferred negotiations that fit every given filter, the oldest first."""
        ...

    def negotiations_since(self, at: float) -> list[Negotiation]:
        """Return the negotiations that are open, or were created or resolved at or after a time, the oldest first."""
        ...

    # -- repetition and the journal --------------------------------------------------------------------------------

    def remembered(self, agent: str, key: str) -> tuple[str, str] | None:
        """Return the digest of the arguments and the JSON answer that were remembered for an idempotency key."""
        ...

    def remember(self, agent: str, key: str, digest: str, answer: str, at: float) -> None:
        """Remember the answer to a call with an idempotency key."""
        ...

    def add_event(self, root: str, type: str, data: str, at: float) -> None:  # noqa: A002
        """Queue an event for the journal of a checkout."""
        ...

    def events(self, root: str, limit: int) -> list[Event]:
        """Return the first queued events of a checkout."""
        ...

    def drop_events(self, event_ids: Iterable[int]) -> None:
        """Take events out of the queue that are in the journal."""
        ...

    def forget(self, before: float) -> None:
        """Remove what nobody asks for: remembered answers, read messages, resolved negotiations older than a time."""
        ...


class Store(Protocol):
    """Where leases and messages are kept. What a transaction wrote is on the disk when it has ended."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open the one transaction that may read and write now; of several callers each waits for its turn.

        Raises:
            StoreBusyError: The turn did not come within the store's patience.
            StoreDamagedError: What is stored cannot be read.
            StoreUnwrittenError: It cannot be written: disk full, no permission.
        """
        ...

    def stamp(self) -> object:
        """Return a value that changes when another transaction has written; cheap enough to ask every 20 ms."""
        ...

    def close(self) -> None:
        """Give back connections; the next use opens them again."""
        ...
