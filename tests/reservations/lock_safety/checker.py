"""The checker: what must be true of every history of leases, one function a promise.

Two witnesses are heard. The workers' own logs say between which moments an agent could be sure of a lease; the store's
events say in which order the transactions came. A log counts conservatively: a lease is certain from the answer on
until its shortest life, counted from before the call, is over, until its release is called, until its holder is killed
or was silent for so long that it may be taken over.
"""

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple

from tests.reservations.lock_safety.history import History, Row, overlap

SEEN_SECONDS: Final = 1.0
"""A sign of life may be so much older than the call that gave it: `liveness.TOUCH_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that was broken, and where."""

    promise: str
    text: str


class Certain(NamedTuple):
    """Between which moments an agent could be sure of a lease."""

    start: float
    end: float
    agent: str
    pattern: str
    exclusive: bool
    reservation_id: str


def check(history: History) -> list[Violation]:
    """Return every broken promise."""
    return [Violation(promise, text) for promise, rule in PROMISES.items() for text in rule(history)]


# -- what the agents saw -------------------------------------------------------------------------------------------


def certain(history: History) -> list[Certain]:
    """Return when each agent could be sure of which lease."""
    return [row for agent, log in history.logs.items() for row in _certain(history, agent, log)]


def _certain(history: History, agent: str, log: list[Row]) -> Iterator[Certain]:
    gives_up: dict[str, list[float]] = defaultdict(list)
    for row in log:
        for each in row["ids"] if row.get("call") == "release" else row.get("merged", ()):
            gives_up[each].append(row.get("start", row["at"]))
    killed = history.killed.get(agent, float("inf"))
    silent = _silences(log, history.dead_after)
    for row in log:
        for lease in row.get("rows", ()):
            ends = [at for at in gives_up[lease["reservation_id"]] if at > row["start"]]
            place = bisect.bisect_left(silent, row["start"])
            ends += silent[place : place + 1]
            end = min([row["until"], killed, *ends])
            if end > row["at"]:
                yield Certain(row["at"], end, agent, lease["pattern"], lease["exclusive"], lease["reservation_id"])


def _silences(log: list[Row], dead_after: float) -> list[float]:
    """Return from when on an agent may have counted as silent: after each gap between two signs of life."""
    signs = [row for row in log if "start" in row]
    limit = dead_after - SEEN_SECONDS
    found = [row["start"] + limit for row, later in pairwise(signs) if later["at"] - row["start"] > limit]
    return sorted(found + [row["start"] + limit for row in signs[-1:]])


def one_holder(history: History) -> Iterator[str]:
    """No two agents are sure of overlapping leases at one time, unless both are shared."""
    active: list[Certain] = []
    for row in sorted(certain(history)):
        active = [other for other in active if other.end > row.start]
        for other in active:
            apart = other.agent == row.agent or not (other.exclusive or row.exclusive)
            if not apart and overlap(row.pattern, other.pattern):
                yield f"{row} and {other}"
        active.append(row)


def uses_alone(history: History) -> Iterator[str]:
    """A write under the guard is not made while another agent is sure of an exclusive lease of the path."""
    sure = sorted((row for row in certain(history) if row.exclusive), reverse=True)
    active: list[Certain] = []
    for used in sorted(history.rows("used"), key=itemgetter("start")):
        while sure and sure[-1].start <= used["start"]:
            active.append(sure.pop())
        active = [row for row in active if row.end > used["start"]]
        for row in active:
            if row.agent != used["agent"] and used["at"] < row.end and overlap(row.pattern, used["path"]):
                yield f"{used} while {row}"


def fencing(history: History) -> Iterator[str]:
    """What was written under one token is never written over by another agent under an older one."""
    for row in history.rows("used"):
        if row["writer"] != row["agent"] and row["before"] > row["token"]:
            yield f"{row}"


def gone(history: History) -> Iterator[str]:
    """Once a release is acknowledged, its lease is never renewed, and its token never counts again."""
    released = {each: row["at"] for row in history.rows("released") for each in row["ids"]}
    for row in history.rows("granted", "checked", "used"):
        if row["kind"] == "checked" and not row["valid"]:
            continue
        ids = [each["reservation_id"] for each in row["rows"]] if row["kind"] == "granted" else [row["reservation_id"]]
        for each in ids:
            if row["start"] > released.get(each, float("inf")):
                yield f"{row}, released at {released[each]}"


def tokens_rise(history: History) -> Iterator[str]:
    """A token that is granted after another grant was answered is higher; no two grants have the same."""
    seen: dict[int, str] = {}
    known: dict[str, int] = {}
    grants: list[tuple[float, float, int]] = []
    for row in history.rows("granted"):
        for lease in row["rows"]:
            token, reservation_id = lease["token"], lease["reservation_id"]
            if seen.setdefault(token, reservation_id) != reservation_id:
                yield f"token {token} of {seen[token]} and of {reservation_id}"
            if known.get(reservation_id) != token:
                known[reservation_id] = token
                grants.append((row["start"], row["at"], token))
    answered = sorted((at, token) for _, at, token in grants)
    highest, place = 0, 0
    for start, _, token in sorted(grants):
        while place < len(answered) and answered[place][0] < start:
            highest, place = max(highest, answered[place][1]), place + 1
        # A claim was granted by another agent's call: its token may be older than the call that found it.
        if token < highest and not _claimed(history, token):
            yield f"token {token} after {highest}"


def _claimed(history: History, token: int) -> bool:
    return any(row["type"] == "lease_granted" and row["token"] == token and row["claim"] for row in history.events)


# -- what the store saw --------------------------------------------------------------------------------------------


class Replay:
    """The leases and the queue, event by event."""

    def __init__(self) -> None:
        self.leases: dict[str, Row] = {}
        self.queue: dict[int, Row] = {}
        self.token = 0
        self.broken: list[tuple[str, str]] = []

    def take(self, row: Row) -> None:
        """Take one event."""
        kind: str = row["type"]
        steps: dict[str, Callable[[Row], None]] = {
            "lease_granted": self._granted,
            "lease_renewed": self._renewed,
            "lease_refused": self._refused,
            "waiter_joined": lambda row: self.queue.__setitem__(row["waiter_id"], row),
            "waiter_granted": lambda row: self._drop(row["waiter_id"]),
            "waiter_left": lambda row: self._drop(row["waiter_id"]),
        }
        if kind in steps:
            steps[kind](row)
        elif kind.startswith("lease_") and self.leases.pop(row["reservation_id"], None) is None:
            self._broke("ends once", row)

    def _granted(self, row: Row) -> None:
        if row["token"] <= self.token:
            self._broke("tokens rise in the store", row)
        self.token = max(self.token, row["token"])
        if self._against(row):
            self._broke("one holder in the store", row)
        raised = row["reservation_id"] in self.leases
        if not raised:
            self._in_turn(row)
        self.leases[row["reservation_id"]] = row

    def _renewed(self, row: Row) -> None:
        held = self.leases.get(row["reservation_id"])
        if held is None or held["token"] != row["token"]:
            self._broke("renews a current lease", row)

    def _in_turn(self, row: Row) -> None:
        """First come, first served: nobody else waits in front for what overlaps."""
        agent, pattern = row["agent"], row["pattern"]
        own = [key for key, each in self.queue.items() if each["agent"] == agent and pattern in each["patterns"]]
        place = min(own, default=None)
        for key, waiter in self.queue.items():
            in_front = waiter["agent"] != row["agent"] and (place is None or key < place)
            if in_front and any(overlap(row["pattern"], text) for text in waiter["patterns"]):
                self._broke("first come, first served", {**row, "passed": waiter})

    def _refused(self, row: Row) -> None:
        """A refusal for a conflict has one: a lease of another agent, or somebody who waits."""
        if row["code"] != "RSV201":
            return
        others = [each["pattern"] for each in self.leases.values() if each["agent"] != row["agent"]]
        others += [text for each in self.queue.values() if each["agent"] != row["agent"] for text in each["patterns"]]
        if not any(overlap(text, other) for text in row["patterns"] for other in others):
            self._broke("refuses for a reason", row)

    def _against(self, row: Row) -> bool:
        others = [held for held in self.leases.values() if held["agent"] != row["agent"]]
        rivals = [held for held in others if held["exclusive"] or row["exclusive"]]
        return any(overlap(held["pattern"], row["pattern"]) for held in rivals)

    def _drop(self, waiter_id: int) -> None:
        self.queue.pop(waiter_id, None)

    def _broke(self, promise: str, row: dict[str, Any]) -> None:
        self.broken.append((promise, str(row)))


def replayed(history: History) -> Iterator[str]:
    """In the order of the transactions every promise holds too, and what is left is what the store holds."""
    replay = Replay()
    for row in history.events:
        replay.take(row)
    for promise, text in replay.broken:
        yield f"{promise}: {text}"
    left = {key: row["token"] for key, row in replay.leases.items()}
    stored = {lease.reservation_id: lease.token for lease in history.leases}
    if left != stored:
        yield f"the events leave {left}, the store holds {stored}"


def takeovers(history: History) -> Iterator[str]:
    """A lease is taken over from the dead alone: from who was killed, or was silent for long enough."""
    signs = {agent: [(row["start"], row["at"]) for row in log if "start" in row] for agent, log in history.logs.items()}
    for row in history.events:
        if row["type"] != "lease_taken_over" or history.killed.get(row["agent"], float("inf")) <= row["at"]:
            continue
        last = max((start for start, at in signs[row["agent"]] if at <= row["at"]), default=0.0)
        if row["at"] - last < history.dead_after - SEEN_SECONDS:
            yield f"{row}; its holder called {row['at'] - last:.2f} s before"


PROMISES: Final[dict[str, Callable[[History], Iterator[str]]]] = {
    "one holder": one_holder,
    "uses alone": uses_alone,
    "fencing": fencing,
    "gone": gone,
    "tokens rise": tokens_rise,
    "replay": replayed,
    "takeovers": takeovers,
}
