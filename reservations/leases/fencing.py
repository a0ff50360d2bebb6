"""Acting under one's leases: they are checked, and nobody can take them while the action runs."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from interlock.core import patterns
from interlock.core.errors import Exit, InterlockError
from interlock.core.patterns import Pattern
from interlock.reservations.answers import Conflict, Refusal
from interlock.reservations.leases import calls as leases
from interlock.reservations.leases import granting
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.leases.views import conflict_info
from interlock.reservations.rules import refuse, refused, shown
from interlock.reservations.store.records import Lease, key_of, replace

GRAIN_SECONDS: Final = 0.001
"""Each guard protects at least this much longer than the one before."""


class NotCoveredError(InterlockError):
    """The caller may not act: RSV206 for each path that no own lease covers, or the pattern code of a bad path.

    Each error says who holds the path now, if anybody does.
    """

    exit_code = Exit.CONFLICT

    def __init__(self, errors: Sequence[Refusal]) -> None:
        text = "; ".join(f"{row['code']} {row['place']}: {row['message']}" for row in errors)
        super().__init__(text, errors[0]["fix"], errors[0]["code"])
        self.errors = list(errors)


class Guard(NamedTuple):
    """What an action works under: by path, the lease that covers it, as it was checked."""

    ctx: Context
    leases: dict[str, Lease]

    @property
    def tokens(self) -> dict[str, int]:
        """The fencing token for each path."""
        return {path: lease.token for path, lease in self.leases.items()}

    def confirm(self) -> None:
        """Check all leases once more, for an action that was held up: just before it takes effect.

        Only under `hold_seconds`; without, the store is the caller's own until the action has ended.
        """
        with leases.entered(self.ctx) as entry:
            # The id of an exclusive lease has one token for as long as the lease lives.
            ended = [(path, row) for path, row in self.leases.items() if entry.tx.lease(row.reservation_id) is None]
            refusals = _noted(entry, [_uncovered(entry, path, lease) for path, lease in ended])
        if refusals:
            raise NotCoveredError(refusals)


@contextmanager
def guarded(ctx: Context, paths: Iterable[str], *, hold_seconds: float | None = None) -> Generator[Guard, None, None]:
    """Let the body act on paths that own exclusive leases cover, and keep everybody else away from them meanwhile.

    Without `hold_seconds` the body runs inside the transaction: whatever happens to this process, no lease changes
    hands before the body has ended. That is for short actions, such as replacing one file: all other calls wait, and
    no other call may be made in it. With `hold_seconds` the body runs outside: the leases live at least that long
    from now on and cannot be taken by force or from a silent holder. A body that may be stopped for longer calls
    `Guard.confirm` before it takes effect. The protection ends with the body, or with its seconds when the body was
    killed; of several guards at once on one lease, each protects until it has ended. The longer life stays.

    Args:
        paths: Paths as the file system has them, relative to the checkout.
        hold_seconds: How long the body may need; None: it is short.

    Raises:
        NotCoveredError: A path is not covered; nothing was done.
        ReservationError: The store cannot be used.
    """
    wanted = list(dict.fromkeys(paths))
    if hold_seconds is None:
        with leases.entered(ctx) as entry:
            held, refusals = _covering(entry, wanted)
            if not refusals:
                yield Guard(ctx, held)
        if refusals:
            raise NotCoveredError(refusals)
        return
    with leases.entered(ctx) as entry:
        held, refusals = _covering(entry, wanted)
        protected = {} if refusals else _hold(entry, held.values(), hold_seconds)
    if refusals:
        raise NotCoveredError(refusals)
    try:
        yield Guard(ctx, held)
    finally:
        if protected:
            _let_go(ctx, protected)


def _covering(entry: Entry, paths: Sequence[str]) -> tuple[dict[str, Lease], list[Refusal]]:
    """Return the own exclusive lease of each path, and a refusal of each path that has none."""
    own = [lease for lease in entry.tx.leases_of(entry.agent.name) if lease.exclusive]
    known = [(granting.pattern_of(lease.pattern), lease) for lease in own]
    held: dict[str, Lease] = {}
    refusals: list[Refusal] = []
    for path in paths:
        lease = next((lease for pattern, lease in known if patterns.matches(pattern, path)), None)
        if lease is None:
            refusals.append(_uncovered(entry, path))
        else:
            held[path] = lease
    return held, _noted(entry, refusals)


def _noted(entry: Entry, refusals: list[Refusal]) -> list[Refusal]:
    if refusals:
        paths = [row["place"] for row in refusals[:10]]
        entry.event("guard_refused", agent=entry.agent.name, code=refusals[0]["code"], paths=paths)
    return refusals


def _uncovered(entry: Entry, path: str, lost: Lease | None = None) -> Refusal:
    """Return the refusal of a path that no own lease covers, with who holds it now."""
    pattern = patterns.canonical(patterns.quote(path))
    name = shown(path)
    if not isinstance(pattern, Pattern):
        return refused(pattern, name)
    holder = _holder(entry, pattern, path)
    if lost is not None:
        message = f"Your lease {lost.reservation_id} with token {lost.token} has ended."
    elif holder is not None:
        message = f"`{name}` is held by {holder['holder']}."
    else:
        message = f"You hold no exclusive lease that covers `{name}`."
    found = "no lease" if holder is None else f"a lease of {holder['holder']}, {holder['holder_state']}"
    fix = "Reserve it, read the file again, and repeat the action."
    if holder is not None:
        fix = f"Leave it alone; ask {holder['holder']} with negotiate_release, or wait in the queue for it."
    wait = {} if holder is None else {"wait_seconds": entry.runtime.settings.max_wait_seconds}
    return refuse(
        "RSV206",
        message,
        place=name,
        found=found,
        expected="an own exclusive lease that has not ended",
        fix=fix,
        conflict=holder,
        next={"tool": "reserve_files", "arguments": {"patterns": [pattern.text], **wait}},
    )


def _holder(entry: Entry, pattern: Pattern, path: str) -> Conflict | None:
    me = key_of(entry.agent.name)
    for lease in granting.near(entry, pattern):
        if key_of(lease.agent) != me and patterns.matches(granting.pattern_of(lease.pattern), path):
            return conflict_info(entry, shown(path), lease, lease.pattern)
    return None


def _hold(entry: Entry, held: Iterable[Lease], seconds: float) -> dict[str, tuple[float, float]]:
    """Let leases live on and protect them; return by id until when, and until when they were protected before.

    Every guard moves the end on by something, so that the one who moved it last knows its own. A claim whose life
    that lengthens is an ordinary lease from then on: its holder is there.
    """
    moved: dict[str, tuple[float, float]] = {}
    for lease in {lease.reservation_id: lease for lease in held}.values():
        until = max(entry.now + seconds, lease.held_until + GRAIN_SECONDS)
        moved[lease.reservation_id] = until, lease.held_until
        longer = replace(lease, held_until=until)
        if until > lease.expires_at:
            longer = replace(longer, expires_at=until, claim=False)
            entry.event("lease_renewed", **granting.facts(longer), held=True)
        entry.tx.put_lease(longer)
    return moved


def _let_go(ctx: Context, protected: Mapping[str, tuple[float, float]]) -> None:
    """End the protection that a guard gave, unless another one has moved its end on."""
    with leases.entered(ctx) as entry:
        for reservation_id, (until, before) in protected.items():
            lease = entry.tx.lease(reservation_id)
            if lease is not None and lease.held_until == until:
                entry.tx.put_lease(replace(lease, held_until=before))
