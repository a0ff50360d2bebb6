"""What is granted: one look at the rows finds what is in the way, and one step puts the leases."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from interlock.core import patterns
from interlock.core.patterns import Pattern
from interlock.core.record import Record
from interlock.reservations import place
from interlock.reservations.errors import StoreError
from interlock.reservations.leases import liveness, marks, subagents
from interlock.reservations.leases.runtime import Entry, new_id
from interlock.reservations.store.records import Lease, Negotiation, Waiter, key_of, replace

Blocker: TypeAlias = Lease | Waiter
"""A lease of somebody else, or somebody who waits in front."""


class Wanted(Record):
    """What a call or a place in the queue asks for: patterns in canonical form, sorted, each once."""

    patterns: tuple[Pattern, ...]
    exclusive: bool
    no_force: bool
    reason: str
    ttl_seconds: float

    @property
    def texts(self) -> tuple[str, ...]:
        """The patterns as text, in order."""
        return tuple(pattern.text for pattern in self.patterns)


class Look(Record):
    """What is in the way of one pattern.

    Args:
        serving: The own lease that serves already, so that nothing can be in the way; None without one.
        blockers: Foreign leases and waiters in front that overlap it.
    """

    pattern: Pattern
    serving: Lease | None
    blockers: tuple[Blocker, ...]

    def is_free(self, entry: Entry) -> bool:
        """Return whether it can be granted, if need be by a takeover.

        That takes leases of the dead, and nobody in front of them in the queue who is not dead too.
        """
        held = [each for each in self.blockers if isinstance(each, Lease)]
        waiting = [each for each in self.blockers if isinstance(each, Waiter)]
        if not held:
            return not waiting
        return all(liveness.state(entry, waiter.agent) != "alive" for waiter in waiting) and all(
            liveness.is_takeable(entry, lease) for lease in held
        )


def pattern_of(text: str) -> Pattern:
    """Return the pattern of a stored text."""
    found = patterns.canonical(text)
    if isinstance(found, Pattern):
        return found
    raise StoreError(
        f"the store holds the pattern {text!r}, which cannot be read: {found.message}",
        "Upgrade interlock if a newer version wrote it; else remove the lease with `interlock release --all`.",
    )


def wanted_by(waiter: Waiter) -> Wanted:
    """Return what a place in the queue asks for."""
    asked = tuple(pattern_of(text) for text in waiter.patterns)
    return Wanted(asked, waiter.exclusive, waiter.no_force, waiter.reason, waiter.ttl_seconds)


def near(entry: Entry, pattern: Pattern) -> list[Lease]:
    """Return the leases whose literal beginnings allow an overlap with a pattern."""
    return entry.tx.near(patterns.ancestors(pattern.prefix), pattern.prefix)


def overlapping(entry: Entry, pattern: Pattern) -> list[Lease]:
    """Return the leases that overlap a pattern, the oldest first."""
    return [lease for lease in near(entry, pattern) if overlaps(pattern, lease)]


def on_file(entry: Entry, asked: Negotiation) -> list[Lease]:
    """Return what a holder has on the file that it is asked for, which a release ends; that of the request first."""
    holder = key_of(asked.holder)
    held = [lease for lease in overlapping(entry, pattern_of(asked.file)) if key_of(lease.agent) == holder]
    return sorted(held, key=lambda lease: lease.reservation_id != asked.reservation_id)


def collides(pattern: Pattern, held: str, *, exclusive: bool) -> bool:
    """Return whether a pattern meets another one; two that only share never collide."""
    if not exclusive or pattern.text == held:
        return exclusive
    # Most leases are plain paths, and a call meets thousands of them: those are not read.
    return patterns.matches(pattern, held) if patterns.SPECIAL.isdisjoint(held) else patterns.overlaps(pattern, held)


def look(entry: Entry, agent: str, wanted: Wanted, ahead: Sequence[Waiter]) -> list[Look]:
    """Return for each pattern what is in the way of an agent.

    `ahead` are the waiters in front, the agent's own places left out.
    """
    return list(_looks(entry, agent, wanted, ahead))


def is_free(entry: Entry, agent: str, wanted: Wanted, ahead: Sequence[Waiter]) -> bool:
    """Return whether nothing at all is in the way of an agent; the first thing that does ends the look."""
    return not any(found.blockers for found in _looks(entry, agent, wanted, ahead))


def _looks(entry: Entry, agent: str, wanted: Wanted, ahead: Sequence[Waiter]) -> Iterator[Look]:
    near_leases: dict[str, list[Lease]] = {}
    session = subagents.session_of(entry.tx, agent)
    for pattern in wanted.patterns:
        if pattern.prefix not in near_leases:
            near_leases[pattern.prefix] = near(entry, pattern)
        yield _look(agent, wanted, pattern, near_leases[pattern.prefix], ahead, session)


def _look(
    agent: str, wanted: Wanted, pattern: Pattern, found: Sequence[Lease], ahead: Sequence[Waiter], session: str
) -> Look:
    me = key_of(agent)
    own = [lease for lease in found if key_of(lease.agent) == me]
    serving = next((lease for lease in own if serves(lease, pattern, wanted)), None)
    if serving is not None:
        return Look(pattern, serving, blockers=())
    held = tuple(
        lease
        for lease in found
        if key_of(lease.agent) not in (me, session)
        and (wanted.exclusive or lease.exclusive)
        and overlaps(pattern, lease)
    )
    # A waiter for what the agent itself shares cannot go on before it: raising the right must not queue behind.
    shares = any(lease.pattern == pattern.text for lease in own)
    waiting = () if shares else tuple(waiter for waiter in ahead if meets(pattern, wanted, waiter))
    return Look(pattern, None, blockers=(*held, *waiting))


def overlaps(pattern: Pattern, lease: Lease) -> bool:
    """Return whether a pattern overlaps that of a lease."""
    # No need to read 10,000 patterns to refuse `src/**`: everything that begins below a whole folder is in it.
    is_below = pattern.text == f"{pattern.prefix}**" and lease.prefix.startswith(pattern.prefix)
    return is_below or collides(pattern, lease.pattern, exclusive=True)


def meets(pattern: Pattern, wanted: Wanted, waiter: Waiter) -> str:
    """Return the first pattern of a waiter that collides with a wanted one; empty for none."""
    exclusive = wanted.exclusive or waiter.exclusive
    return next((text for text in waiter.patterns if collides(pattern, text, exclusive=exclusive)), "")


def held_pattern(pattern: Pattern, wanted: Wanted, held: Blocker) -> str:
    """Return the pattern of what is in the way; of a place in the queue, the one that collides."""
    return meets(pattern, wanted, held) if isinstance(held, Waiter) else held.pattern


def serves(lease: Lease, pattern: Pattern, wanted: Wanted) -> bool:
    """Return whether an own lease gives at least what is wanted, once it is renewed."""
    if wanted.exclusive and not lease.exclusive:
        return False
    if lease.pattern == pattern.text:
        return True
    return (lease.no_force or not wanted.no_force) and patterns.covers(pattern_of(lease.pattern), pattern)


def is_served(entry: Entry, agent: str, wanted: Wanted) -> bool:
    """Return whether own leases of an agent serve all that it wants."""
    me = key_of(agent)
    return all(
        any(key_of(lease.agent) == me and serves(lease, pattern, wanted) for lease in near(entry, pattern))
        for pattern in wanted.patterns
    )


def grant(entry: Entry, agent: str, wanted: Wanted, *, claim: bool = False) -> list[Lease]:
    """Give an agent what it wants; nothing is in the way any more. Return the leases that serve, each once.

    A lease that serves is renewed: same id, same token, never a shorter life; one that only shares the same pattern is
    raised in place with a new token; what is new gets a lease with a new token, and own leases that it covers with at
    least their right fall into it.
    """
    ids = [_grant(entry, agent, wanted, pattern, claim=claim) for pattern in wanted.patterns]
    found = (entry.tx.lease(reservation_id) for reservation_id in dict.fromkeys(ids))
    return [lease for lease in found if lease is not None]


def _grant(entry: Entry, agent: str, wanted: Wanted, pattern: Pattern, *, claim: bool) -> str:
    me = key_of(agent)
    own = [lease for lease in near(entry, pattern) if key_of(lease.agent) == me]
    serving = next((lease for lease in own if serves(lease, pattern, wanted)), None)
    if serving is None:
        lease = _put(entry, agent, wanted, pattern, own, claim=claim)
    elif claim:
        # A place in the queue makes no promise about what its agent holds already: the call renews it.
        return serving.reservation_id
    else:
        lease = _renew(entry, serving, pattern, wanted)
    if serving is None or lease.no_force != serving.no_force:
        for other in own:
            if other.reservation_id != lease.reservation_id and _falls_into(entry, other, lease, pattern):
                _merge(entry, other, lease)
    return lease.reservation_id


def _put(entry: Entry, agent: str, wanted: Wanted, pattern: Pattern, own: Sequence[Lease], *, claim: bool) -> Lease:
    """Put a new lease, or raise the one of the same pattern in place; either has a new token."""
    same = next((lease for lease in own if lease.pattern == pattern.text), None)
    minutes = entry.runtime.settings.claim_minutes
    life = min(wanted.ttl_seconds, minutes * 60) if claim else wanted.ttl_seconds
    # Who only waited may work in another checkout than the one that releases.
    root = "" if claim else entry.caller.root
    lease = Lease(
        reservation_id=same.reservation_id if same else new_id("rsv"),
        agent=agent,
        pattern=pattern.text,
        prefix=pattern.prefix,
        exclusive=wanted.exclusive,
        no_force=wanted.no_force or (same is not None and same.no_force),
        claim=claim and same is None,
        reason=wanted.reason or (same.reason if same else ""),
        token=entry.tx.next_number("token"),
        granted_at=entry.now,
        renewed_at=entry.now,
        expires_at=max(entry.now + life, same.expires_at if same else 0.0),
        root=root,
        branch=place.head(root) if root else "",
    )
    entry.tx.put_lease(lease)
    if not claim:
        marks.granted(entry, lease)
    entry.event("lease_granted", **facts(lease), exclusive=lease.exclusive, claim=lease.claim)
    return lease


def _renew(entry: Entry, lease: Lease, pattern: Pattern, wanted: Wanted) -> Lease:
    """Let a lease live longer, and give it what else was asked for under its own pattern."""
    same = lease.pattern == pattern.text
    renewed = replace(
        lease,
        claim=False,
        no_force=lease.no_force or (same and wanted.no_force),
        reason=(same and wanted.reason) or lease.reason,
        renewed_at=entry.now,
        expires_at=max(lease.expires_at, entry.now + wanted.ttl_seconds),
        root=entry.caller.root,
        branch=lease.branch or place.head(entry.caller.root),
    )
    entry.tx.put_lease(renewed)
    if lease.claim:
        marks.granted(entry, renewed)
    entry.event("lease_renewed", **facts(renewed))
    return renewed


def _falls_into(entry: Entry, other: Lease, lease: Lease, pattern: Pattern) -> bool:
    """Return whether one lease makes another needless; one that is asked for stays, for a request is about it alone."""
    right = (lease.exclusive or not other.exclusive) and (lease.no_force or not other.no_force)
    covered = right and patterns.covers(pattern, pattern_of(other.pattern))
    return covered and not entry.tx.open_negotiations(reservation_id=other.reservation_id)


def _merge(entry: Entry, other: Lease, lease: Lease) -> None:
    if other.expires_at > lease.expires_at or other.held_until > lease.held_until:
        current = entry.tx.lease(lease.reservation_id) or lease
        ends = max(current.expires_at, other.expires_at)
        held_until = max(current.held_until, other.held_until)
        entry.tx.put_lease(replace(current, expires_at=ends, held_until=held_until))
    entry.tx.drop_lease(other.reservation_id)
    entry.event("lease_released", **facts(other), into=lease.reservation_id)


def inherit(entry: Entry) -> None:
    """Give what a subagent that has ended holds to the agent of its session."""
    parent = entry.agent.name.rpartition("/")[0]
    of_parent = {lease.pattern: lease for lease in entry.tx.leases_of(parent)}
    for lease in entry.tx.leases_of(entry.agent.name):
        if lease.pattern in of_parent:
            _merge(entry, lease, of_parent[lease.pattern])
        else:
            move(entry, lease, parent)


def move(entry: Entry, lease: Lease, to: str, expires_at: float = 0.0) -> None:
    """Give a lease another holder, with a new token and what was asked of the old one."""
    moved = replace(
        lease,
        agent=to,
        claim=False,
        token=entry.tx.next_number("token"),
        granted_at=entry.now,
        renewed_at=entry.now,
        expires_at=max(lease.expires_at, expires_at),
    )
    entry.tx.put_lease(moved)
    marks.granted(entry, moved)
    for asked in entry.tx.open_negotiations(reservation_id=lease.reservation_id):
        entry.tx.put_negotiation(replace(asked, holder=to))
    entry.event("lease_granted", **facts(moved), exclusive=moved.exclusive, claim=False)


def facts(lease: Lease) -> dict[str, object]:
    """Return what every event about a lease says."""
    named = ("agent", "reservation_id", "pattern", "reason", "no_force", "token", "expires_at")
    return {name: getattr(lease, name) for name in named}
