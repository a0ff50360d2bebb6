"""Several agents at one runtime, in memory, with a clock that moves when it is told to."""

import json
from collections.abc import Callable
from typing import Any

from interlock.reservations.answers import MessageInfo
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.sqlite import SqliteStore

ROOT = "/repo"
FILE = "src/app.py"
START = 1_771_149_600.0


class Team:
    """Agents by name, all alive unless said otherwise; a wait moves the clock on, and lets the others act in between.

    Args:
        settings: `[reservations]`.
    """

    def __init__(self, **settings: Any) -> None:
        self.now = START
        self.waited = 0.0
        self.ended: set[int] = set()
        self.dirty: dict[str, bool | None] = {}
        self.meanwhile: list[tuple[float, Callable[[], object]]] = []
        self.store = SqliteStore(":memory:")
        self.runtime = Runtime(
            self.store,
            Settings(**settings),
            clock=lambda: self.now,
            monotonic=lambda: self.waited,
            is_running=lambda _host, pid, _started: pid not in self.ended,
            dirty=lambda _root, patterns: {pattern: self.dirty.get(pattern) for pattern in patterns},
            changed_here=lambda _root, patterns: {pattern: self.dirty.get(pattern) for pattern in patterns},
            pause=self._pause,
        )

    def agent(self, name: str, pid: int | None = None, *, joined: bool = True) -> Reservations:
        """Return the calls of an agent that has called once."""
        calls = Reservations(self.runtime, Caller(name, "agent", ROOT, "mcp", "host", pid, "then"))
        if joined:
            calls.my_reservations()
        return calls

    def minutes(self, count: float, *alive: Reservations) -> None:
        """Let time pass, in which some agents keep giving signs of life."""
        for _ in range(int(count)):
            self.now += 60
            for calls in alive:
                calls.my_reservations()
        self.now += (count - int(count)) * 60

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something while another call waits."""
        self.meanwhile.append((self.now + seconds, action))

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return what was queued for the journal."""
        with self.store.transaction() as tx:
            return [(event.type, json.loads(event.data)) for event in tx.events(ROOT, 10_000)]

    def _pause(self, seconds: float) -> None:
        self.waited += seconds
        self.now += seconds
        due = [row for row in self.meanwhile if row[0] <= self.now]
        self.meanwhile = [row for row in self.meanwhile if row[0] > self.now]
        for _, action in due:
            action()


def two(**settings: Any) -> tuple[Team, Reservations, Reservations]:
    """Return a team with Ada and Bob."""
    team = Team(**settings)
    return team, team.agent("Ada"), team.agent("Bob")


def three(**settings: Any) -> tuple[Team, Reservations, Reservations, Reservations]:
    """Return a team with Ada, Bob and Eve."""
    return *(found := two(**settings)), found[0].agent("Eve")


def holding(**settings: Any) -> tuple[Team, Reservations, Reservations]:
    """Return a team in which Ada holds `FILE`, with Ada and Bob."""
    team, ada, bob = two(**settings)
    ada.reserve_files([FILE])
    return team, ada, bob


def asked(**settings: Any) -> tuple[Team, Reservations, Reservations, str]:
    """Return a team in which Bob asked Ada for `FILE`, with Ada, Bob and the thread."""
    team, ada, bob = holding(**settings)
    return team, ada, bob, thread_of(bob.negotiate_release(FILE, "need it"))


def inbox(calls: Reservations, topic: str = "") -> list[MessageInfo]:
    """Return all messages to an agent, read or not, of one topic or of any."""
    answer = calls.fetch_inbox(unread_only=False, limit=100)
    found = list(answer["messages"])
    while answer["next_cursor"] is not None:
        answer = calls.fetch_inbox(answer["next_cursor"], unread_only=False, limit=100)
        found += answer["messages"]
    return [message for message in found if topic in ("", message["topic"])]


def body(message: MessageInfo) -> dict[str, Any]:
    """Return a typed body."""
    return json.loads(message["body"])


def codes(answer: Any) -> list[str]:
    """Return the codes of the refusals of an answer."""
    return [error["code"] for error in answer["errors"]]


def thread_of(answer: Any) -> str:
    """Return the thread of an answer that has one."""
    assert isinstance(answer["thread_id"], str)
    return answer["thread_id"]
