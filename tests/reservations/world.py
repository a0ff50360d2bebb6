"""A world for the rules: a clock that stands still, processes that end when a test says so, a store in memory."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import AgentKind, Event, Lease, Message
from interlock.reservations.store.sqlite import SqliteStore

START = 1_800_000_000.0
ROOT = "/checkout"
HOST = "here"


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
        pauses: What happens while a call waits, one function a pause; then only time passes.
    """

    store: SqliteStore = field(default_factory=lambda: SqliteStore(":memory:"))
    settings: Settings = field(default_factory=Settings)
    now: float = START
    waited: float = 0.0
    ended: set[int] = field(default_factory=set[int])
    pauses: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    unsaved: set[str] = field(default_factory=set[str])
    pids: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def runtime(self) -> Runtime:
        return Runtime(
            self.store,
            self.settings,
            clock=lambda: self.now,
            monotonic=lambda: self.waited,
            is_running=self._is_running,
            dirty=lambda _root, patterns: {pattern: pattern in self.unsaved for pattern in patterns},
            changed_here=lambda _root, patterns: {pattern: pattern in self.unsaved for pattern in patterns},
            pause=self._pause,
        )

    def caller(self, name: str, kind: AgentKind = "agent") -> Caller:
        pid = self.pids.setdefault(name.casefold(), 100 + len(self.pids))
        return Caller(name, kind, ROOT, "mcp", HOST, pid, "once")

    def agent(self, name: str, kind: AgentKind = "agent") -> Reservations:
        return Reservations(self.runtime, self.caller(name, kind))

    def end_process(self, name: str) -> None:
        self.ended.add(self.pids[name.casefold()])

    def leases(self) -> list[Lease]:
        """Return the rows of leases, as they are stored."""
        with self.store.transaction() as tx:
            return tx.leases()

    def line(self) -> list[str]:
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
        """Let somebody call who wants nothing: what is over ends, and the line moves."""
        calls.mine(self.agent(name))

    def _is_running(self, host: str, pid: int, started: str) -> bool | None:
        return None if host != HOST else pid not in self.ended

    def _pause(self, seconds: float) -> None:
        if self.pauses:
            self.pauses.pop(0)()
        self.waited += max(seconds, 0.001)
        self.now += max(seconds, 0.001)


def ids(answer: Any) -> list[str]:
    """Return the reservation ids of an answer."""
    return [row["reservation_id"] for row in answer["reservations"]]


def codes(answer: Any) -> list[str]:
    """Return the codes of an answer's refusals."""
    return [row["code"] for row in answer["errors"]]
