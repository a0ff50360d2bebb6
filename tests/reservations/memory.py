"""A store in memory, for tests of the rules: the same promises as SQLite, without a file."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from threading import Lock, get_ident

from interlock.reservations.errors import StoreBusyError
from interlock.reservations.store.records import Agent, Event, Lease, Message, Negotiation, Waiter, key_of, replace

OPEN = ("pending", "deferred")


@dataclass
class Tables:
    """Everything that is stored; insertion order is the order of arrival."""

    counters: dict[str, int] = field(default_factory=dict[str, int])
    processes: dict[tuple[str, int, str], str] = field(default_factory=dict[tuple[str, int, str], str])
    agents: dict[str, Agent] = field(default_factory=dict[str, Agent])
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])
    waiters: dict[int, Waiter] = field(default_factory=dict[int, Waiter])
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    negotiations: dict[str, Negotiation] = field(default_factory=dict[str, Negotiation])
    answers: dict[tuple[str, str], tuple[str, str, float]] = field(
        default_factory=dict[tuple[str, str], tuple[str, str, float]]
    )
    events: dict[int, Event] = field(default_factory=dict[int, Event])

    def copy(self) -> "Tables":
        """Return tables of their own; the rows are immutable and shared."""
        return Tables(**{each.name: dict(getattr(self, each.name)) for each in fields(self)})


class MemoryTransaction:
    """One transaction on a copy of the tables."""

    def __init__(self, store_id: str, tables: Tables) -> None:
        self._store_id = store_id
        self._tables: Tables | None = tables
        self.wrote = False

    def end(self) -> None:
        """Make every further use an error."""
        self._tables = None

    @property
    def _rows(self) -> Tables:
        if self._tables is None:
            raise RuntimeError("this transaction has ended")
        return self._tables

    @property
    def _writing(self) -> Tables:
        self.wrote = True
        return self._rows

    def store_id(self) -> str:
        assert self._rows
        return self._store_id

    def next_number(self, counter: str) -> int:
        counters = self._writing.counters
        counters[counter] = counters.get(counter, 0) + 1
        return counters[counter]

    def bind_process(self, host: str, pid: int, started: str, agent: str, at: float) -> None:
        self._writing.processes[host, pid, started] = agent

    def agent_of_process(self, host: str, pid: int, started: str) -> str | None:
        return self._rows.processes.get((host, pid, started))

    def agent(self, name: str) -> Agent | None:
        return self._rows.agents.get(key_of(name))

    def put_agent(self, agent: Agent) -> None:
        first = self.agent(agent.name)
        self._writing.agents[key_of(agent.name)] = replace(agent, name=first.name) if first else agent

    def agents(self) -> list[Agent]:
        return sorted(self._rows.agents.values(), key=lambda agent: (-agent.last_seen, key_of(agent.name)))

    def lease(self, reservation_id: str) -> Lease | None:
        return self._rows.leases.get(reservation_id)

    def put_lease(self, lease: Lease) -> None:
        self._writing.leases[lease.reservation_id] = lease

    def drop_lease(self, reservation_id: str) -> None:
        self._writing.leases.pop(reservation_id, None)

    def leases_of(self, agent: str) -> list[Lease]:
        return [lease for lease in self.leases() if key_of(lease.agent) == key_of(agent)]

    def leases(self) -> list[Lease]:
        return sorted(self._rows.leases.values(), key=lambda lease: (lease.granted_at, lease.token))

    def others_hold(self, agent: str) -> bool:
        return any(key_of(lease.agent) != key_of(agent) for lease in self._rows.leases.values())

    def near(self, ancestors: Sequence[str], prefix: str) -> list[Lease]:
        return [each for each in self.leases() if each.prefix in ancestors or each.prefix.startswith(prefix)]

    def expired(self, now: float) -> list[Lease]:
        return sorted(
            (lease for lease in self._rows.leases.values() if lease.expires_at <= now),
            key=lambda lease: (lease.expires_at, lease.token),
        )

    def add_waiter(self, waiter: Waiter) -> Waiter:
        kept = replace(waiter, waiter_id=self.next_number("\0waiter"))
        self._writing.waiters[kept.waiter_id] = kept
        return kept

    def put_waiter(self, waiter: Waiter) -> None:
        if waiter.waiter_id in self._writing.waiters:
            self._rows.waiters[waiter.waiter_id] = waiter

    def drop_waiter(self, waiter_id: int) -> None:
        self._writing.waiters.pop(waiter_id, None)

    def waiter(self, waiter_id: int) -> Waiter | None:
        return self._rows.waiters.get(waiter_id)

    def waiters(self) -> list[Waiter]:
        return list(self._rows.waiters.values())

    def add_message(self, message: Message) -> Message:
        kept = replace(message, message_id=self.next_number("\0message"))
        self._writing.messages[kept.message_id] = kept
        return kept

    def put_message(self, message: Message) -> None:
        if message.message_id in self._writing.messages:
            self._rows.messages[message.message_id] = message

    def inbox(self, agent: str, *, after: int, unread_only: bool, limit: int) -> list[Message]:
        return [
            message
            for message in self._rows.messages.values()
            if key_of(message.recipient) == key_of(agent)
            and message.message_id > after
            and not (unread_only and message.read_at is not None)
        ][:limit]

    def unread_count(self, agent: str) -> int:
        messages = self._rows.messages.values()
        return sum(key_of(message.recipient) == key_of(agent) and message.read_at is None for message in messages)

    def thread(self, thread_id: str) -> list[Message]:
        return [message for message in self._rows.messages.values() if message.thread_id == thread_id]

    def negotiation(self, thread_id: str) -> Negotiation | None:
        return self._rows.negotiations.get(thread_id)

    def put_negotiation(self, negotiation: Negotiation) -> None:
        self._writing.negotiations[negotiation.thread_id] = negotiation

    def open_negotiations(self, *, reservation_id: str | None = None, requester: str | None = None,
                          holder: str | None = None) -> list[Negotiation]:  # fmt: skip
        return [
            each
            for each in sorted(self._rows.negotiations.values(), key=lambda each: each.created_at)
            if each.state in OPEN
            and reservation_id in (None, each.reservation_id)
            and (requester is None or key_of(requester) == key_of(each.requester))
            and (holder is None or key_of(holder) == key_of(each.holder))
        ]

    def negotiations_since(self, at: float) -> list[Negotiation]:
        return [
            each
            for each in sorted(self._rows.negotiations.values(), key=lambda each: each.created_at)
            if each.state in OPEN or each.created_at >= at or (each.resolved_at is not None and each.resolved_at >= at)
        ]

    def remembered(self, agent: str, key: str) -> tuple[str, str] | None:
        found = self._rows.answers.get((key_of(agent), key))
        return found and found[:2]

    def remember(self, agent: str, key: str, digest: str, answer: str, at: float) -> None:
        self._writing.answers[key_of(agent), key] = (digest, answer, at)

    def add_event(self, root: str, type: str, data: str, at: float) -> None:  # noqa: A002
        number = self.next_number("\0event")
        self._writing.events[number] = Event(number, root, type, data, at)

    def events(self, root: str, limit: int) -> list[Event]:
        return [event for event in self._rows.events.values() if event.root == root][:limit]

    def drop_events(self, event_ids: Iterable[int]) -> None:
        for event_id in event_ids:
            self._writing.events.pop(event_id, None)

    def forget(self, before: float) -> None:
        rows = self._writing
        rows.answers = {key: row for key, row in rows.answers.items() if row[2] >= before}
        rows.messages = {key: row for key, row in rows.messages.items() if row.read_at is None or row.read_at >= before}
        rows.negotiations = {
            key: row
            for key, row in rows.negotiations.items()
            if row.state in OPEN or row.resolved_at is None or row.resolved_at >= before
        }


class MemoryStore:
    """Keeps the rows in this process.

    Args:
        patience_seconds: How long a thread waits for its turn.
        store_id: What `store_id` returns.
    """

    def __init__(self, patience_seconds: float = 15, store_id: str = "0123456789abcdef") -> None:
        self.patience_seconds = patience_seconds
        self._store_id = store_id
        self._lock = Lock()
        self._owner: int | None = None
        self._tables = Tables()
        self._written = 0

    @contextmanager
    def transaction(self) -> Generator[MemoryTransaction]:
        if self._owner == get_ident():
            raise RuntimeError("a transaction is open in this thread")
        if not self._lock.acquire(timeout=self.patience_seconds):
            raise StoreBusyError("the store in memory is held by another thread", "end that transaction")
        self._owner = get_ident()
        copy = self._tables.copy()
        transaction = MemoryTransaction(self._store_id, copy)
        try:
            yield transaction
            self._tables = copy
            self._written += transaction.wrote
        finally:
            transaction.end()
            self._owner = None
            self._lock.release()

    def stamp(self) -> object:
        return self._written

    def close(self) -> None:
        """Have nothing to give back."""
