"""What the journal records of leases: who held what when, and who made which commit."""

import calendar
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from interlock.reservations.errors import StoreError
from interlock.reservations.store.outbox import JOURNAL_RUN
from interlock.reservations.store.records import Event

if TYPE_CHECKING:
    from interlock.journal import Entry

ENDINGS: Final = {
    "lease_released": "released",
    "lease_expired": "expired",
    "lease_taken_over": "taken over",
    "lease_forced": "forced",
}
"""The events that end a lease, and the words for it."""


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event of a store."""

    store: str
    number: int
    type: str
    data: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class Held:
    """One lease from a grant to its end; a lease that was raised in place is one before and one after that.

    Args:
        exclusive: None when the journal does not say, because it begins behind the grant.
        since: When it was granted, or the first that is known of it.
        expires_at: Until when it was to live, as far as known.
        ending: How: a word of `ENDINGS`, or `raised`.
        granted: The number of the event that granted it.
        ended: The number of the event that ended it.
    """

    store: str
    reservation_id: str
    agent: str
    pattern: str
    exclusive: bool | None
    claim: bool
    token: int
    since: float
    expires_at: float
    ended_at: float | None = None
    ending: str = ""
    granted: int = 0
    ended: int | None = None

    @property
    def until(self) -> float:
        """The end of its life: an expired lease is void from its expiry on, not from when that was noticed."""
        return self.expires_at if self.ended_at is None else min(self.ended_at, self.expires_at)

    def held_during(self, second: int) -> bool:
        """Return whether it was held during the whole of a second; one that began or ended in it does not count."""
        return self.since < second and second + 1 <= self.until

    def held_at(self, made: "RecordedCommit") -> bool:
        """Return whether it was held when a commit of the same store was recorded, and a second before."""
        in_order = self.granted < made.number and (self.ended is None or self.ended > made.number)
        return self.store == made.store and in_order and self.since < made.at < self.expires_at


@dataclass(frozen=True, slots=True)
class RecordedCommit:
    """A commit that `interlock commit` made, with the number of that event, and when it happened, to the second."""

    agent: str
    store: str
    number: int
    at: float


@dataclass(frozen=True, slots=True)
class History:
    """Everything that some journals record of leases.

    Args:
        leases: All that there ever were, in the order of their grants.
        made: The commits that `interlock commit` made, by their ids.
        missing: Store to the numbers of events that are in none of the journals: first and last of each gap.
        last_at: When the last event happened; None without events.
        blind: From when to when those events happened; without a bound where nothing before or after is known.
    """

    leases: tuple[Held, ...]
    made: Mapping[str, RecordedCommit]
    missing: Mapping[str, tuple[tuple[int, int], ...]]
    last_at: float | None
    blind: tuple[tuple[float, float], ...] = ()


def from_journal(entries: Iterable["Entry"]) -> Iterator[RecordedEvent]:
    """Yield the events of this package among the lines of a journal."""
    for entry in entries:
        if entry.run == JOURNAL_RUN:
            store, _, number = entry.key.partition("/")
            try:
                yield RecordedEvent(store, int(number), entry.type, entry.data, seconds(str(entry.data["at"])))
            except (KeyError, ValueError):
                raise StoreError(
                    f"line {entry.seq} of the run `{JOURNAL_RUN}` has the key {entry.key[:80]!a}, or no time in it",
                    "Upgrade interlock if a newer version wrote it; else restore the journal from a copy.",
                ) from None


def from_queue(store: str, events: Iterable[Event]) -> Iterator[RecordedEvent]:
    """Yield events that wait in a store for the journal."""
    import json  # noqa: PLC0415 - with what only this needs

    for event in events:
        yield RecordedEvent(store, event.event_id, event.type, json.loads(event.data), float(int(event.at)))


def seconds(text: str) -> float:
    """Return the seconds since the epoch of a time as `answers.iso` writes it."""
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))


def history_of(events: Iterable[RecordedEvent], counts: Mapping[str, int] = MappingProxyType({})) -> History:
    """Return the history that the events of any number of stores give; one that comes twice counts once.

    `counts` is how many events each store ever had, as far as that is known.

    Raises:
        StoreError: An event lacks what this package writes into it.
    """
    each = {(event.store, event.number): event for event in events}
    built = _Rebuilt()
    for key in sorted(each):
        try:
            built.take(each[key])
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"the event {key[0]}/{key[1]} ({each[key].type}) cannot be read: {error!r}",
                "Upgrade interlock if a newer version wrote it; else restore the journal from a copy.",
            ) from None
    last = max((event.at for event in each.values()), default=None)
    missing, blind = _gaps(each.values(), counts)
    return History(tuple(built.leases), built.made, missing, last, blind)


@dataclass
class _Rebuilt:
    leases: list[Held] = field(default_factory=list[Held])
    made: dict[str, RecordedCommit] = field(default_factory=dict[str, RecordedCommit])
    _open: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def take(self, event: RecordedEvent) -> None:
        if event.type == "lease_granted":
            self._end(event, "raised")
            self._begin(event)
        elif event.type == "lease_renewed":
            if self._known(event) is None:
                self._begin(event)
            self._change(event, expires_at=float(event.data["expires_at"]), claim=False)
        elif event.type in ENDINGS:
            self._end(event, ENDINGS[event.type])
            into = self._known(event, event.data.get("into"))
            if into is not None:
                # What falls into a wider lease leaves it the longer life.
                longest = max(self.leases[into].expires_at, float(event.data["expires_at"]))
                self.leases[into] = replace(self.leases[into], expires_at=longest)
        elif event.type == "committed":
            self.made[str(event.data["commit"])] = RecordedCommit(
                str(event.data["agent"]), event.store, event.number, event.at
            )

    def _known(self, event: RecordedEvent, reservation_id: object = None) -> int | None:
        return self._open.get((event.store, str(reservation_id or event.data["reservation_id"])))

    def _begin(self, event: RecordedEvent) -> None:
        data = event.data
        exclusive = data.get("exclusive")
        self._open[event.store, data["reservation_id"]] = len(self.leases)
        self.leases.append(
            Held(
                store=event.store,
                reservation_id=str(data["reservation_id"]),
                agent=str(data["agent"]),
                pattern=str(data["pattern"]),
                exclusive=None if exclusive is None else bool(exclusive),
                claim=bool(data.get("claim", False)),
                token=int(data["token"]),
                since=event.at,
                expires_at=float(data["expires_at"]),
                granted=event.number,
            )
        )

    def _change(self, event: RecordedEvent, **values: Any) -> None:
        place = self._known(event)
        if place is not None:
            self.leases[place] = replace(self.leases[place], **values)

    def _end(self, event: RecordedEvent, ending: str) -> None:
        if ending != "raised":
            # A guarded action lets a lease live longer without an event; its end says so.
            self._change(event, expires_at=float(event.data["expires_at"]))
        self._change(event, ended_at=event.at, ending=ending, ended=event.number)
        self._open.pop((event.store, str(event.data["reservation_id"])), None)


def _gaps(
    events: Iterable[RecordedEvent], counts: Mapping[str, int]
) -> tuple[dict[str, tuple[tuple[int, int], ...]], tuple[tuple[float, float], ...]]:
    """Return which numbers are missing of each store, and from when to when; they begin at 1 and none is left out."""
    times: dict[str, dict[int, float]] = {store: {} for store in counts}
    for event in events:
        times.setdefault(event.store, {})[event.number] = event.at
    missing: dict[str, tuple[tuple[int, int], ...]] = {}
    blind: list[tuple[float, float]] = []
    for store, known in times.items():
        end = max(counts.get(store, 0), *known, 0) + 1
        gaps = [(low, high) for low, high in pairwise(sorted({0, *known, end})) if high > low + 1]
        missing |= {store: tuple((low + 1, high - 1) for low, high in gaps)} if gaps else {}
        blind += [(known.get(low, -inf), known.get(high, inf)) for low, high in gaps]
    return missing, tuple(blind)
