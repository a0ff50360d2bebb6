"""How a lease ends, whatever the reason: what is asked about it is settled, and who waits for it gets it."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from interlock.reservations.leases import grant_log, granting, wait_queue
from interlock.reservations.leases.entry import Entry
from interlock.reservations.settings import NORMAL_TIMEOUT_MINUTES
from interlock.reservations.store.records import Lease, Negotiation, NegotiationState, replace

Ending: TypeAlias = Literal["released", "expired", "taken_over", "forced"]


def end(entry: Entry, ended: Lease | Iterable[Lease], how: Ending) -> None:
    """End leases, in the only way a lease ends; then whoever waits for them gets them.

    Args:
        ended: The leases; one that has ended already is passed over.
    """
    for lease in [ended] if isinstance(ended, Lease) else ended:
        drop(entry, lease, how)
    wait_queue.settle(entry)


def drop(entry: Entry, lease: Lease, how: Ending) -> None:
    """End one lease and leave the line as it is: for `end`, and for a takeover, which has a taker already."""
    if entry.tx.lease(lease.reservation_id) is None:
        return
    entry.tx.drop_lease(lease.reservation_id)
    if how == "expired":
        grant_log.ran_out(entry, lease)
    open_ones = entry.tx.open_negotiations(reservation_id=lease.reservation_id)
    states = {asked.thread_id: _without(entry, asked) for asked in open_ones}
    threads = {"negotiations": states} if states else {}
    entry.event(f"lease_{how}", **granting.facts(lease), by=entry.agent.name, **threads)


def _without(entry: Entry, asked: Negotiation) -> NegotiationState:
    """Say what becomes of a request whose reservation has ended: it is free, or about what stood beside that one.

    What its holder has reserved on the file since is another reservation, of which nothing was asked. A place that may
    be wider than what is held from now on ends after a time limit more.
    """
    stood = (lease for lease in granting.on_file(entry, asked) if lease.granted_at < asked.created_at)
    heir = next(stood, None)
    if heir is None:
        left = replace(asked, state="free", resolved_at=entry.now)
    else:
        left = replace(asked, reservation_id=heir.reservation_id, pattern=heir.pattern)
    entry.tx.put_negotiation(left)
    wait_queue.shorten(entry, asked.requester, asked.file, entry.now + NORMAL_TIMEOUT_MINUTES * 60)
    return left.state
