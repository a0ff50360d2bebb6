"""The wait queue: each waiter has a place, and what becomes free goes to the first whose patterns are all free."""

from typing import Final

from interlock.reservations.leases import granting, liveness
from interlock.reservations.leases.granting import Wanted
from interlock.reservations.leases.runtime import Entry, Runtime
from interlock.reservations.settings import NEGOTIATION_POLL_SECONDS, SHARED_POLL_SECONDS
from interlock.reservations.store.records import Lease, Waiter, iso, key_of, replace

LOOK_SECONDS: Final = 1.0
"""A waiting call looks at least this often: the death of a process writes nothing into the store."""

NAMED: Final = 5
"""At most this many patterns are named in the message about a grant."""

GRAIN_SECONDS: Final = 1.0
"""A place is moved on by at least this much: clocks drift apart, and each write wakes everybody who waits."""


def thread_of(waiter_id: int) -> str:
    """Return the thread of the one message to a waiter about the end of its place."""
    return f"wait_{waiter_id}"


def place_of(entry: Entry, wanted: Wanted) -> Waiter | None:
    """Return the caller's place for the same patterns and the same right."""
    own = places_of(entry, entry.agent.name)
    return next((w for w in own if w.patterns == wanted.texts and w.exclusive == wanted.exclusive), None)


def places_of(entry: Entry, agent: str) -> list[Waiter]:
    """Return the places of an agent, the oldest first."""
    me = key_of(agent)
    return [waiter for waiter in entry.tx.waiters() if key_of(waiter.agent) == me]


def ahead(entry: Entry, agent: str, place: Waiter | None) -> list[Waiter]:
    """Return who waits in front of an agent, its own places left out; without a place, all others are in front.

    An agent that is not there keeps nobody waiting: see `settle`.
    """
    me = key_of(agent)
    others = (waiter for waiter in entry.tx.waiters() if key_of(waiter.agent) != me)
    front = [waiter for waiter in others if place is None or waiter.waiter_id < place.waiter_id]
    return [waiter for waiter in front if liveness.is_there(entry, waiter.agent)]


def join(entry: Entry, wanted: Wanted, until: float) -> Waiter:
    """Put the caller at the end of the queue; asking again for the same keeps the place, and moves its end on."""
    known = place_of(entry, wanted)
    if known is not None:
        if until >= known.until + GRAIN_SECONDS:
            known = _moved(known, wanted, until)
            entry.tx.put_waiter(known)
        return known
    new = Waiter(
        0,
        entry.agent.name,
        wanted.texts,
        wanted.exclusive,
        wanted.no_force,
        wanted.reason,
        wanted.ttl_seconds,
        since=entry.now,
        until=until,
    )
    waiter = entry.tx.add_waiter(new)
    entry.event("waiter_joined", waiter_id=waiter.waiter_id, agent=waiter.agent, patterns=list(waiter.patterns[:NAMED]))
    return waiter


def linger(entry: Entry, wanted: Wanted) -> Waiter | None:
    """Keep a place of the caller, if it has one, for `linger_seconds` from now, or as long as it had already.

    A request that is negotiated gave it a long place, which a call that asks for the same does not shorten.
    """
    known = place_of(entry, wanted)
    if known is not None:
        known = _moved(known, wanted, max(known.until, entry.now + entry.runtime.settings.linger_seconds))
        entry.tx.put_waiter(known)
    return known


def shorten(entry: Entry, agent: str, text: str, until: float) -> None:
    """End every place of an agent for one pattern alone by then at the latest."""
    for waiter in places_of(entry, agent):
        if waiter.patterns == (text,) and waiter.until > until:
            entry.tx.put_waiter(replace(waiter, until=until))


def leave(entry: Entry, waiter: Waiter, why: str) -> None:
    """Take a place out of the queue."""
    entry.tx.drop_waiter(waiter.waiter_id)
    entry.event("waiter_left", waiter_id=waiter.waiter_id, agent=waiter.agent, reason=why)


def leave_all(entry: Entry, why: str) -> None:
    """Take all places of the caller out of the queue."""
    for waiter in places_of(entry, entry.agent.name):
        leave(entry, waiter, why)


def settle(entry: Entry) -> None:
    """Grant to the first in the queue what is free of leases and of waiters in front; give up places that are over.

    An agent that is silent and not known to run is passed over, and keeps its place for when it calls again.
    One that holds the files by now leaves the queue. What is granted is a claim of `claim_minutes`, and its agent gets
    one message (topic `granted`); a call that is waiting at that moment makes it an ordinary lease and marks the
    message as read, see `confirm`.
    """
    front: list[Waiter] = []
    for waiter in entry.tx.waiters():
        if waiter.until <= entry.now:
            leave(entry, waiter, "its time is over")
        elif liveness.state(entry, waiter.agent) == "gone":
            leave(entry, waiter, "its process has ended")
        elif liveness.is_there(entry, waiter.agent):
            me = key_of(waiter.agent)
            wanted = granting.wanted_by(waiter)
            in_front = [other for other in front if key_of(other.agent) != me]
            if granting.is_free(entry, waiter.agent, wanted, in_front):
                _serve(entry, waiter, wanted)
            else:
                front.append(waiter)


def wanted_by_holder(entry: Entry, holder: str) -> list[Lease]:
    """Return the caller's leases that a living agent waits for; who waits for that agent in turn waits for ever.

    Circles of more than two are not looked for: the place of one of them in the queue ends, and with it the circle.
    """
    if liveness.state(entry, holder) != "alive":
        return []
    places = places_of(entry, holder)
    return [
        lease for lease in entry.tx.leases_of(entry.agent.name) if any(_is_wanted(lease, place) for place in places)
    ]


def _is_wanted(lease: Lease, place: Waiter) -> bool:
    exclusive = lease.exclusive or place.exclusive
    held = granting.pattern_of(lease.pattern)
    return any(granting.collides(held, text, exclusive=exclusive) for text in place.patterns)


def confirm(entry: Entry, waiter_id: int) -> None:
    """Mark the message about a place as read: the answer of the waiting call says it. 0 is no place."""
    for message in entry.tx.thread(thread_of(waiter_id)) if waiter_id else ():
        if message.read_at is None:
            entry.tx.put_message(replace(message, read_at=entry.now))


def until_changed(runtime: Runtime, stamp: object, seconds: float) -> None:
    """Wait until the store has changed since its `stamp`, taken before the rows were looked at, or the time is over."""
    end = runtime.monotonic() + seconds
    pause = SHARED_POLL_SECONDS if runtime.store.is_shared else NEGOTIATION_POLL_SECONDS
    while runtime.store.stamp() == stamp and (left := end - runtime.monotonic()) > 0:
        runtime.pause(min(pause, left))


def _moved(waiter: Waiter, wanted: Wanted, until: float) -> Waiter:
    return replace(waiter, no_force=wanted.no_force, reason=wanted.reason, ttl_seconds=wanted.ttl_seconds, until=until)


def _serve(entry: Entry, waiter: Waiter, wanted: Wanted) -> None:
    """Give a waiter what is free for it, unless it has it already."""
    if granting.is_served(entry, waiter.agent, wanted):
        leave(entry, waiter, "it holds them")
        return
    leases = granting.grant(entry, waiter.agent, wanted, claim=True)
    entry.tx.drop_waiter(waiter.waiter_id)
    ids = [lease.reservation_id for lease in leases]
    entry.event("waiter_granted", waiter_id=waiter.waiter_id, agent=waiter.agent, reservation_ids=ids)
    until = min(lease.expires_at for lease in leases)
    names = ", ".join(waiter.patterns[:NAMED]) + (", …" if len(waiter.patterns) > NAMED else "")
    text = f"{names}: yours until {iso(until)}. Reserve again to keep it, or release it."
    entry.notify(waiter.agent, "granted", text, thread_id=thread_of(waiter.waiter_id))
