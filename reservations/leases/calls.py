"""The calls about leases, and the one way into the store that every call takes.

How a call works. Everything that agents share are rows of one SQLite file: agents, leases, places in the wait queue,
messages, negotiations, and the events that are on their way into the journal. A call is one transaction on it,
`entered`, and SQLite lets one transaction write at a time: so whatever a call finds is still so when it decides, and
what it decides is there as a whole or, if the process is killed, not at all.

1. `entered` registers the caller, ends the leases whose time is over, and settles the wait queue. So no call ever sees
   a lease that has ended, and nothing needs a process in the background.
2. `granting.look` finds what is in the way of each pattern: leases of others that overlap it, and places of others
   further in front. Leases of the dead are taken over (`liveness`).
3. All patterns are free: `granting.grant` puts the leases, each with a fencing token that rises with every grant. Else
   the call is refused with who is in the way and the call that helps, or it waits: it joins the queue, ends its
   transaction, and looks again when the store has changed.
4. Every lease ends in `drop`, whatever the reason: by release, by time, by takeover or by force. It leaves its event,
   tells the open negotiations, and whoever waits gets what became free in the same transaction (`wait_queue.settle`).

What git knows of uncommitted changes is added to an answer after its transaction (`reported`): nobody waits for git.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from interlock.core.record import Record
from interlock.reservations.leases import (
    arguments,
    granting,
    handover,
    liveness,
    views,
    wait_queue,
)
from interlock.reservations.leases.arguments import Asked
from interlock.reservations.leases.granting import Look, Wanted
from interlock.reservations.leases.marks import Turn, ran_out
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.leases.views import conflict_info, iso, lease_info
from interlock.reservations.settings import NORMAL_TIMEOUT_MINUTES
from interlock.reservations.store.records import Agent, Lease, Negotiation, NegotiationState, Waiter, key_of, replace

if TYPE_CHECKING:
    from interlock.reservations.answers import (
        Conflict,
        ConflictsAnswer,
        MineAnswer,
        Refusal,
        ReleaseAllAnswer,
        ReleaseAnswer,
        ReserveAnswer,
    )

Ending: TypeAlias = Literal["released", "expired", "taken_over", "forced"]

KEEP_SECONDS: Final = 7 * 24 * 3600.0
"""How long marks, read messages and resolved negotiations are kept."""

AWAY_SECONDS: Final = 3600.0
"""An agent that comes back after this time has the store tidied: seldom enough to cost nothing."""


@contextmanager
def entered(ctx: Context) -> Generator[Entry, None, None]:
    """Open the transaction of a call; every call of every entry point goes through here.

    The agent is registered (event `agent_joined`) or its `last_seen` moved, its process bound to it, what expired is
    ended, and the queue is settled. What the body puts is committed when it ends, and undone when it raises::

        with leases.entered(ctx) as entry:
            held = entry.tx.leases_of(entry.agent.name)

    Inside it: no I/O, no second `entered`, and `entry.now` for the time. To give up a lease call `end`.

    Raises:
        ReservationError: The store cannot be used; see `SqliteStore.transaction`.
    """
    with ctx.runtime.store.transaction() as tx:
        now = ctx.runtime.clock()
        agent, before = liveness.touch(ctx.runtime, tx, ctx.caller, now)
        entry = Entry(ctx, tx, now, agent)
        if before is None:
            entry.event("agent_joined", agent=agent.name, kind=agent.kind, client=agent.client)
        if before is None or now - before.last_seen > AWAY_SECONDS:
            tx.forget(now - KEEP_SECONDS)
        end(entry, tx.expired(now), "expired")
        yield entry


@contextmanager
def seen(ctx: Context) -> Generator[Entry, None, None]:
    """Open the transaction of somebody who only looks: nobody is registered, and no sign of life is left.

    What expired is ended and the queue settled all the same, so that a look never shows what is over; when nothing is
    due, nothing is written.
    """
    with ctx.runtime.store.transaction() as tx:
        now = ctx.runtime.clock()
        me = ctx.caller
        agent = Agent(me.name, me.kind, me.host, me.pid, me.started, me.client, joined_at=now, last_seen=now)
        entry = Entry(ctx, tx, now, tx.agent(me.name) or agent)
        end(entry, tx.expired(now), "expired")
        yield entry


def end(entry: Entry, ended: Lease | Iterable[Lease], how: Ending) -> None:
    """End leases, in the only way a lease ends; then whoever waits for them gets them.

    One that has ended already is passed over.
    """
    for lease in [ended] if isinstance(ended, Lease) else ended:
        drop(entry, lease, how)
    wait_queue.settle(entry)


def drop(entry: Entry, lease: Lease, how: Ending) -> None:
    """End one lease and leave the queue as it is: for `end`, and for a takeover, which has a taker already."""
    if entry.tx.lease(lease.reservation_id) is None:
        return
    entry.tx.drop_lease(lease.reservation_id)
    if how == "expired":
        ran_out(entry, lease)
    open_ones = entry.tx.open_negotiations(reservation_id=lease.reservation_id)
    states = {asked.thread_id: _without(entry, asked) for asked in open_ones}
    threads = {"negotiations": states} if states else {}
    entry.event(f"lease_{how}", **granting.facts(lease), by=entry.agent.name, **threads)


def _without(entry: Entry, asked: Negotiation) -> NegotiationState:
    """Return the new state of a request whose reservation has ended: free, or about another one that was there too.

    What its holder has reserved on the file since is another reservation, of which nothing was asked. A place that may
    be wider than what is held from now on ends after a time limit more.
    """
    older = (lease for lease in granting.on_file(entry, asked) if lease.granted_at < asked.created_at)
    heir = next(older, None)
    if heir is None:
        left = replace(asked, state="free", resolved_at=entry.now)
    else:
        left = replace(asked, reservation_id=heir.reservation_id, pattern=heir.pattern)
    entry.tx.put_negotiation(left)
    wait_queue.shorten(entry, asked.requester, asked.file, entry.now + NORMAL_TIMEOUT_MINUTES * 60)
    return left.state


class Attempt(Record):
    """One look of a call: its answer, or, while it waits, its place and in how many seconds to look again.

    `new` is what it granted and git is to be asked about.
    """

    answer: "ReserveAnswer"
    waiter_id: int = 0
    look_in: float | None = None
    new: Mapping[str, Turn] = MappingProxyType({})


def reserve(
    ctx: Context,
    patterns: Sequence[str],
    reason: str = "",
    ttl_minutes: float | None = None,
    *,
    exclusive: bool = True,
    no_force: bool = False,
    wait_seconds: float = 0,
) -> "ReserveAnswer":
    """Reserve patterns, all or none; reserving again renews, and so does asking for less than one holds.

    Args:
        patterns: What to hold, relative to the repository root.
        reason: Why, for the others.
        ttl_minutes: How long; default: `[reservations] ttl_minutes`.
        exclusive: Nobody else may hold an overlapping lease.
        no_force: Never to be taken by escalation.
        wait_seconds: How long to wait in the queue; at most `[reservations] max_wait_seconds`. The place is kept.
    """
    asked = arguments.read_reserve(
        ctx, patterns, reason, ttl_minutes, exclusive=exclusive, no_force=no_force, wait_seconds=wait_seconds
    )
    if not isinstance(asked, Asked):
        return {"reservations": [], "errors": asked}
    return reported(ctx, _wait(ctx, asked) if asked.wait_seconds else _attempt(ctx, asked, None, 0))


def reported(ctx: Context, tried: Attempt) -> "ReserveAnswer":
    """Return the answer of an attempt, with what git says of unsaved work; after the transaction, for it asks git.

    That is whether what is in the way has uncommitted changes, and which new leases had some before.
    """
    answer = tried.answer
    ask_dirty(ctx, [row["conflict"] for row in answer["errors"] if "conflict" in row])
    report = handover.received(ctx, tried.new) if tried.new else {}
    if report:
        answer = cast("ReserveAnswer", {**answer, **report})
        with entered(ctx) as entry:
            handover.notify_previous_holders(entry, tried.new, report["unsaved"])
    return answer


def _wait(ctx: Context, asked: Asked) -> Attempt:
    """Try until it is granted, refused or the time is over; an exception gives the place up."""
    end = ctx.runtime.monotonic() + asked.wait_seconds
    waiter_id = 0
    try:
        while True:
            stamp = ctx.runtime.store.stamp()
            tried = _attempt(ctx, asked, end, waiter_id)
            if tried.look_in is None:
                return tried
            waiter_id = tried.waiter_id
            wait_queue.until_changed(ctx.runtime, stamp, tried.look_in)
    except BaseException:
        with entered(ctx) as entry:
            _leave(entry, asked, "its call was ended")
            wait_queue.settle(entry)
        raise


def _attempt(ctx: Context, asked: Asked, end: float | None, waiter_id: int) -> Attempt:
    with entered(ctx) as entry:
        return attempt(entry, asked, end, waiter_id)


def attempt(entry: Entry, asked: Asked, end: float | None = None, waiter_id: int = 0) -> Attempt:
    """Grant, refuse or wait: until `end` by `Runtime.monotonic`, or not at all where it is None.

    Whoever calls it in a transaction of its own calls `reported` afterwards.
    """
    me = entry.agent.name
    place = wait_queue.place_of(entry, asked.wanted)
    looks = granting.look(entry, me, asked.wanted, wait_queue.ahead(entry, me, place))
    blocked = [found for found in looks if not found.is_free(entry)]
    if not blocked:
        new = handover.new_of(entry, looks) if asked.wanted.exclusive else {}
        return Attempt(_take(entry, asked, looks, waiter_id), new=new)
    if end is None:
        return Attempt(_give_up(entry, asked, blocked))
    for found in blocked:
        for held in found.blockers:
            wanted = wait_queue.wanted_by_holder(entry, held.agent)
            if wanted:
                _leave(entry, asked, "deadlock")
                wait_queue.settle(entry)
                return Attempt(_refused(entry, asked, [views.circle(entry, asked, found, held, wanted)]))
    left = end - entry.runtime.monotonic()
    if left <= 0:
        return Attempt(_give_up(entry, asked, blocked))
    place = wait_queue.join(entry, asked.wanted, entry.now + left + entry.runtime.settings.linger_seconds)
    ends = [row.until if isinstance(row, Waiter) else row.expires_at for found in blocked for row in found.blockers]
    again = min([left, wait_queue.LOOK_SECONDS, *(ending - entry.now for ending in ends)])
    return Attempt({"reservations": [], "errors": []}, place.waiter_id, again)


def _take(entry: Entry, asked: Asked, takes: Sequence[Look], waiter_id: int) -> "ReserveAnswer":
    """Put the leases, those of dead holders ended before; then whoever waits for what became free gets it."""
    taken: dict[str, dict[str, Any]] = {}
    for held in (held for found in takes for held in found.blockers):
        if isinstance(held, Lease) and held.reservation_id not in taken:
            taken[held.reservation_id] = _take_over(entry, held)
    leases = granting.grant(entry, entry.agent.name, asked.wanted)
    _leave(entry, asked, "granted")
    wait_queue.confirm(entry, waiter_id)
    wait_queue.settle(entry)
    answer: ReserveAnswer = {"reservations": [lease_info(lease, entry.now) for lease in leases], "errors": []}
    if taken:
        answer["taken_over"] = list(taken.values())
    requests = len(entry.tx.open_negotiations(holder=entry.agent.name))
    if requests:
        answer["release_requests"] = requests
    return answer


def _take_over(entry: Entry, lease: Lease) -> dict[str, Any]:
    state = liveness.state(entry, lease.agent)
    drop(entry, lease, "taken_over")
    why = "your process has ended" if state == "gone" else "you were silent for too long"
    body = f"{lease.pattern}: taken over by {entry.agent.name}, because {why}. Reserve it again before you edit it."
    entry.notify(lease.agent, "taken-over", body)
    return {
        "reservation_id": lease.reservation_id,
        "pattern": lease.pattern,
        "holder": lease.agent,
        "holder_state": state,
    }


def _give_up(entry: Entry, asked: Asked, blocked: Sequence[Look]) -> "ReserveAnswer":
    """Refuse; a place in the queue is kept a little longer."""
    errors = [views.blocked(entry, asked, found) for found in blocked]
    place = wait_queue.linger(entry, asked.wanted)
    if place is None:
        return _refused(entry, asked, errors)
    position = 1 + sum(waiter.waiter_id < place.waiter_id for waiter in entry.tx.waiters())
    views.keep_waiting(errors, asked, position, place.until - entry.now, entry.runtime.settings.max_wait_seconds)
    answer = _refused(entry, asked, errors)
    answer["waiting"] = {"position": position, "since": iso(place.since), "kept_until": iso(place.until)}
    return answer


def _refused(entry: Entry, asked: Asked, errors: "list[Refusal]") -> "ReserveAnswer":
    names = list(asked.wanted.texts[: wait_queue.NAMED])
    entry.event("lease_refused", agent=entry.agent.name, code=errors[0]["code"], patterns=names)
    return {"reservations": [], "errors": errors}


def _leave(entry: Entry, asked: Asked, why: str) -> None:
    place = wait_queue.place_of(entry, asked.wanted)
    if place is not None:
        wait_queue.leave(entry, place, why)


def ask_dirty(ctx: Context, conflicts: "Sequence[Conflict]") -> None:
    """Note for each conflict whether there is unsaved work under it; after the transaction, for it asks git.

    What it does not find may be on another machine, where one shares the store.
    """
    leases = [row for row in conflicts if "waiting" not in row]
    held = tuple(sorted({row["held_pattern"] for row in leases}))
    if held:
        known = ctx.runtime.dirty(ctx.caller.root, held)
        for row in leases:
            found = known.get(row["held_pattern"])
            row["dirty"] = None if found is False and ctx.runtime.store.is_shared else found


def release(ctx: Context, reservation_ids: Sequence[str], *, report_unsaved: bool = True) -> "ReleaseAnswer":
    """Release leases by id; one that is not the caller's stays, and is refused (Reservation Tools, release_files).

    With `report_unsaved`, git is asked which of them have uncommitted changes.
    """
    if not reservation_ids:
        fix = "Name at least one; my_reservations lists yours."
        return {"released": [], "errors": [arguments.wrong("reservation_ids", "none", "a list of ids", fix)]}
    errors: list[Refusal] = []
    own: dict[str, Lease] = {}
    with entered(ctx) as entry:
        for number, reservation_id in enumerate(reservation_ids):
            # An id that no store can hold is unknown like any other.
            lease = entry.tx.lease(reservation_id) if reservation_id.isascii() else None
            if lease is None or key_of(lease.agent) != key_of(entry.agent.name):
                errors.append(views.not_yours(f"reservation_ids[{number}]", reservation_id, lease))
            else:
                own[reservation_id] = lease
        end(entry, own.values(), "released")
        patterns = handover.given_up(entry, own.values()) if report_unsaved else []
    return cast("ReleaseAnswer", {"released": [*own], "errors": errors, **handover.given(ctx, patterns)})


def release_all(ctx: Context, *, report_unsaved: bool = True) -> "ReleaseAllAnswer":
    """Release everything the caller holds, and leave the queue (Reservation Tools, release_all); see `release`."""
    with entered(ctx) as entry:
        wait_queue.leave_all(entry, "released all")
        own = entry.tx.leases_of(entry.agent.name)
        end(entry, own, "released")
        patterns = handover.given_up(entry, own) if report_unsaved else []
    return cast("ReleaseAllAnswer", {"released_count": len(own), **handover.given(ctx, patterns)})


def mine(ctx: Context) -> "MineAnswer":
    """Return the active leases of the caller (Reservation Tools, my_reservations)."""
    with entered(ctx) as entry:
        own = entry.tx.leases_of(entry.agent.name)
        return {"reservations": [lease_info(lease, entry.now) for lease in own]}


def check(ctx: Context, patterns: Sequence[str]) -> "ConflictsAnswer":
    """Return what an exclusive reservation of patterns would meet, and reserve nothing.

    A pattern is clear when reserving it would be granted with nobody in the way; leases of the dead are conflicts here,
    though reserving would take them over. Wrong patterns are refused, the others are answered.
    """
    given, errors = arguments.read_patterns(ctx, patterns)
    answer: ConflictsAnswer = {"conflicts": [], "clear": [], "errors": errors}
    if not given:
        return answer
    asked = tuple(row.pattern for row in given)
    wanted = Wanted(asked, exclusive=True, no_force=False, reason="", ttl_seconds=0)
    with entered(ctx) as entry:
        front = wait_queue.ahead(entry, entry.agent.name, None)
        for row, found in zip(given, granting.look(entry, entry.agent.name, wanted, front), strict=True):
            if not found.blockers:
                answer["clear"].append(row.text)
            for held in found.blockers:
                held_pattern = granting.held_pattern(row.pattern, wanted, held)
                answer["conflicts"].append(conflict_info(entry, row.text, held, held_pattern))
    ask_dirty(ctx, answer["conflicts"])
    return answer
