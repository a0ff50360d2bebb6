"""A world for the rules: a clock that moves when a test says so, processes that end so, a store of its own."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from interlock.reservations.answers import InboxAnswer, MessageInfo
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import AgentKind, Event, Lease, Message
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.truncation import MAX_ANSWER_BYTES, size
from tests.conformance.rows import Store

START = 1_800_000_000.0
ROOT = "/checkout"
HOST = "here"
FILE = "src/app.py"


def new_store() -> Store:
    """Return an empty store: in memory, where `each_store` has put nothing else in place of this."""
    return SqliteStore(":memory:")


@dataclass
class World:
    """Everything outside the rules, in the hands of a test.

    Args:
        store: Where the rows are.
        settings: `[reservations]`.
        now: The time.
        waited: How long calls have waited in all; the clock that nobody sets.
        ended: Processes that have ended.
        unsaved: Patterns that cover uncommitted changes.
        dirty: What git says of a pattern, where it is not as `unsaved` has it.
        pauses: What happens while a call waits, one function a pause; then only time passes.
        meanwhile: What else happens while a call waits, and when.
        pids: The processes of agents by their names in lower case.
    """

    store: Store = field(default_factory=lambda: new_store())  # noqa: PLW0108 - tests replace it
    settings: Settings = field(default_factory=Settings)
    now: float = START
    waited: float = 0.0
    ended: set[int] = field(default_factory=set[int])
    pauses: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    meanwhile: list[tuple[float, Callable[[], object]]] = field(
        default_factory=list[tuple[float, Callable[[], object]]]
    )
    unsaved: set[str] = field(default_factory=set[str])
    dirty: dict[str, bool | None] = field(default_factory=dict[str, bool | None])
    pids: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def runtime(self) -> Runtime:
        return Runtime(
            self.store,
            self.settings,
            clock=lambda: self.now,
            monotonic=lambda: self.waited,
            is_running=self._is_running,
            dirty=self._is_dirty,
            changed_here=self._is_dirty,
            pause=self._pause,
        )

    def caller(self, name: str, kind: AgentKind = "agent") -> Caller:
        pid = self.pids.setdefault(name.casefold(), 100 + len(self.pids))
        return Caller(name, kind, ROOT, "mcp", HOST, pid, "once")

    def agent(self, name: str, kind: AgentKind = "agent") -> Reservations:
        return Reservations(self.runtime, self.caller(name, kind))

    def join(self, name: str, pid: int | None = None) -> Reservations:
        """Return the calls of an agent that has called once, without a process unless one is given."""
        if pid is not None:
            self.pids[name.casefold()] = pid
        calls = Reservations(self.runtime, Caller(name, "agent", ROOT, "mcp", HOST, pid, "once"))
        calls.my_reservations()
        return calls

    def minutes(self, count: float, *alive: Reservations) -> None:
        """Let time pass, in which some agents keep giving signs of life."""
        for _ in range(int(count)):
            self.now += 60
            for agent in alive:
                agent.my_reservations()
        self.now += (count - int(count)) * 60

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something while another call waits."""
        self.meanwhile.append((self.now + seconds, action))

    def end_process(self, name: str) -> None:
        self.ended.add(self.pids[name.casefold()])

    def leases(self) -> list[Lease]:
        """Return the rows of leases, as they are stored."""
        with self.store.transaction() as tx:
            return tx.leases()

    def waiters(self) -> list[str]:
        """Return who waits, in order."""
        with self.store.transaction() as tx:
            return [waiter.agent for waiter in tx.waiters()]

    def messages(self, name: str, topic: str = "") -> list[Message]:
        with self.store.transaction() as tx:
            rows = tx.inbox(name, after=0, unread_only=False, limit=1000)
        return [row for row in rows if topic in {"", row.topic}]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the queued events of a kind."""
        return [json.loads(event.data) for event in self.queue() if event.type == kind]

    def queue(self) -> list[Event]:
        with self.store.transaction() as tx:
            return tx.events(ROOT, 100_000)

    def look(self, name: str = "observer") -> None:
        """Let somebody call who wants nothing: what is over ends, and the queue moves."""
        calls.mine(self.agent(name))

    def _is_running(self, host: str, pid: int, started: str) -> bool | None:
        return None if host != HOST else pid not in self.ended

    def _is_dirty(self, _root: str, patterns: tuple[str, ...]) -> dict[str, bool | None]:
        return {pattern: self.dirty.get(pattern, pattern in self.unsaved) for pattern in patterns}

    def _pause(self, seconds: float) -> None:
        if self.pauses:
            self.pauses.pop(0)()
        self.waited += max(seconds, 0.001)
        self.now += max(seconds, 0.001)
        due = [action for at, action in self.meanwhile if at <= self.now]
        self.meanwhile = [row for row in self.meanwhile if row[0] > self.now]
        for action in due:
            action()


def ids(answer: Any) -> list[str]:
    """Return the reservation ids of an answer."""
    return [row["reservation_id"] for row in answer["reservations"]]


def codes(answer: Any) -> list[str]:
    """Return the codes of an answer's refusals."""
    return [row["code"] for row in answer["errors"]]


def two(**settings: Any) -> tuple[World, Reservations, Reservations]:
    """Return a world with Ada and Bob."""
    world = World(settings=Settings(**settings))
    return world, world.join("Ada"), world.join("Bob")


def three(**settings: Any) -> tuple[World, Reservations, Reservations, Reservations]:
    """Return a world with Ada, Bob and Eve."""
    return *(found := two(**settings)), found[0].join("Eve")


def holding(**settings: Any) -> tuple[World, Reservations, Reservations]:
    """Return a world in which Ada holds `FILE`, with Ada and Bob."""
    world, ada, bob = two(**settings)
    ada.reserve_files([FILE])
    return world, ada, bob


def asked(**settings: Any) -> tuple[World, Reservations, Reservations, str]:
    """Return a world in which Bob asked Ada for `FILE`, with Ada, Bob and the thread."""
    world, ada, bob = holding(**settings)
    return world, ada, bob, thread_of(bob.negotiate_release(FILE, "need it"))


def pages(calls: Reservations, **arguments: Any) -> Iterator[InboxAnswer]:
    """Yield the pages of an inbox, each at most as long as an answer may be."""
    cursor: int | None = None
    while True:
        answer = calls.fetch_inbox(cursor, **arguments)
        assert size(answer) <= MAX_ANSWER_BYTES
        yield answer
        cursor = answer["next_cursor"]
        if cursor is None:
            return
        assert answer["messages"]


def inbox(calls: Reservations, topic: str = "") -> list[MessageInfo]:
    """Return all messages to an agent, read or not, of one topic or of any."""
    found = [row for page in pages(calls, unread_only=False, limit=100) for row in page["messages"]]
    return [message for message in found if topic in ("", message["topic"])]


def body(message: MessageInfo) -> dict[str, Any]:
    """Return a typed body."""
    return json.loads(message["body"])


def thread_of(answer: Any) -> str:
    """Return the thread of an answer that has one."""
    assert isinstance(answer["thread_id"], str)
    return answer["thread_id"]
