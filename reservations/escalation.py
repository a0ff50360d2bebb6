"""Requests whose time ran out, looked at when their requester next calls (Negotiation PRD F5)."""

from typing import Any, Final

from interlock.reservations import bodies, leases, liveness
from interlock.reservations.entry import HOUSE, Entry
from interlock.reservations.post import cut, post
from interlock.reservations.records import Lease, Negotiation, NegotiationState, replace

MAX_SHOWN_BYTES: Final = 200
"""So much of a file's name is reported; the thread says which request is meant."""


def run(entry: Entry) -> list[dict[str, Any]]:
    """Look after the caller's own requests that timed out; return what to report, what was taken first.

    With `escalation = "force"` the lease is ended, its holder told, and the thread gets a release-ack with the reason
    `timeout`; a lease with `no_force` is reported with RSV307 and never taken. With `"advisory"` all are reported.
    """
    rows = [
        _escalate(entry, asked)
        for asked in entry.tx.open_negotiations(requester=entry.agent.name)
        if is_over(asked, entry.now)
    ]
    return sorted(rows, key=lambda row: row["state"] != "forced")


def is_over(asked: Negotiation, now: float) -> bool:
    """Say whether a request has timed out: it is open, it has a time limit, and that has passed."""
    return asked.resolved_at is None and asked.deadline is not None and asked.deadline <= now


def resolve(entry: Entry, asked: Negotiation, state: NegotiationState, note: str = "") -> Negotiation:
    """Close a negotiation; its request counts as answered."""
    closed = replace(asked, state=state, note=note or asked.note, resolved_at=entry.now)
    entry.tx.put_negotiation(closed)
    acknowledge(entry, asked.thread_id)
    return closed


def acknowledge(entry: Entry, thread_id: str) -> None:
    """Mark the requests of a thread as answered."""
    for message in entry.tx.thread(thread_id):
        if message.topic == bodies.RELEASE_REQUEST and message.acked_at is None:
            entry.tx.put_message(replace(message, acked_at=entry.now))


def _escalate(entry: Entry, asked: Negotiation) -> dict[str, Any]:
    assert asked.deadline is not None
    row: dict[str, Any] = {
        "thread_id": asked.thread_id,
        "file": cut(asked.file, MAX_SHOWN_BYTES),
        "holder": asked.holder,
        "reservation_id": asked.reservation_id,
        "urgency": asked.urgency,
        "state": "expired",
        "minutes_over": int((entry.now - asked.deadline) // 60),
    }
    lease = entry.tx.lease(asked.reservation_id)
    assert lease is not None, asked.thread_id
    _record_once(entry, asked)
    if entry.desk.settings.escalation == "force" and not liveness.is_protected(entry, lease):
        _force(entry, asked, lease)
        return row | {"state": "forced", "suggestion": "It was taken from its holder: call reserve_files."}
    if liveness.is_takeable(entry, lease):
        return row | {"suggestion": "Its holder is dead: reserve_files takes it over."}
    if lease.no_force:
        return row | {
            "code": "RSV307",
            "suggestion": "It is never taken by force: write to its holder, or to a person.",
        }
    if liveness.is_protected(entry, lease):
        return row | {"suggestion": "Its holder acts under it at this moment: ask again in a minute."}
    return row | {"suggestion": "Nothing is taken by force here: wait with reserve_files, or write to its holder."}


def _force(entry: Entry, asked: Negotiation, lease: Lease) -> None:
    """Take a lease from its holder, and tell both (Negotiation PRD F5)."""
    resolve(entry, asked, "forced", "timeout")
    leases.end(entry, lease, "forced")
    body = bodies.ack(asked.file, HOUSE, "timeout")
    post(entry, asked.requester, bodies.RELEASE_ACK, body, thread_id=asked.thread_id, sender=HOUSE)
    text = (
        f"Your reservation {lease.reservation_id} of {lease.pattern} was taken: {asked.requester} asked for "
        f"{asked.file} ({asked.urgency}) and had no answer in time. Reserve it again before you write there."
    )
    entry.tell(lease.agent, "forced", text, thread_id=asked.thread_id, importance="urgent")


def _record_once(entry: Entry, asked: Negotiation) -> None:
    """Queue the event of a request that timed out, at its first report; a new deadline is a new time-out."""
    # No idempotency key has a control character, so this is nobody else's.
    key = f"\x1ftimeout {asked.thread_id} {asked.deadline}"
    if entry.tx.remembered(asked.requester, key) is None:
        entry.tx.remember(asked.requester, key, "", "", entry.now)
        facts = {"thread_id": asked.thread_id, "reservation_id": asked.reservation_id, "urgency": asked.urgency}
        entry.event("release_timed_out", **facts, requester=asked.requester, holder=asked.holder)
