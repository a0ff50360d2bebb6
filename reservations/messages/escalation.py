"""Requests whose time ran out, looked at when their requester next calls (Negotiation PRD F5)."""

from typing import Any

from interlock.reservations.leases import calls, granting, liveness, marks
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.messages import bodies
from interlock.reservations.rules import shown, some
from interlock.reservations.store.records import SYSTEM, Lease, Negotiation, NegotiationState, iso, replace


def run(entry: Entry) -> list[dict[str, Any]]:
    """Escalate the caller's own requests that timed out; return what to report, what was taken first.

    With `escalation = "force"` the holder loses what it had on the file when it was asked, and is notified; the thread
    gets a release-ack with the reason `timeout`. A lease with `no_force` is reported with RSV307 and never taken. With
    `"advisory"` all are reported.
    """
    rows: list[dict[str, Any]] = []
    for row in entry.tx.open_negotiations(requester=entry.agent.name):
        # What was taken for the request before may have been that of this one.
        asked = entry.tx.negotiation(row.thread_id)
        if asked is not None and is_over(asked, entry.now):
            rows.append(_escalate(entry, asked))
    return sorted(rows, key=lambda row: row["state"] != "forced")


def is_over(asked: Negotiation, now: float) -> bool:
    """Return whether a request has timed out: it is open, it has a time limit, and that has passed."""
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


def acknowledgement(entry: Entry, thread_id: str) -> dict[str, Any]:
    """Return whether a request asked for an acknowledgement, and when it got one: any answer is one."""
    asked = [message for message in entry.tx.thread(thread_id) if message.topic == bodies.RELEASE_REQUEST]
    times = [message.acked_at for message in asked if message.acked_at is not None]
    required = any(message.ack_required for message in asked)
    return {"ack_required": required, "acked_at": iso(max(times)) if times else None}


def _escalate(entry: Entry, asked: Negotiation) -> dict[str, Any]:
    assert asked.deadline is not None
    row: dict[str, Any] = {
        "thread_id": asked.thread_id,
        "file": asked.file,
        "holder": asked.holder,
        "reservation_id": asked.reservation_id,
        "urgency": asked.urgency,
        "state": "expired",
        "minutes_over": int((entry.now - asked.deadline) // 60),
    }
    lease = entry.tx.lease(asked.reservation_id)
    assert lease is not None, asked.thread_id
    _record_once(entry, asked)
    if entry.runtime.settings.escalation == "force" and not liveness.is_protected(entry, lease):
        left = _force(entry, asked)
        row["state"] = "forced"
        if left:
            text = "It was taken, and its holder has more on the file: ask again with negotiate_release."
            return row | {"still_held": left[0].pattern, "suggestion": text}
        return row | {"suggestion": "It was taken from its holder: call reserve_files, with wait_seconds if need be."}
    if lease.no_force:
        row["code"] = "RSV307"
    return row | {"suggestion": "It was not taken: wait with reserve_files, or write to its holder, or to a person."}


def _force(entry: Entry, asked: Negotiation) -> list[Lease]:
    """Take from a holder what it had on a file when it was asked for it, and notify both (Negotiation PRD F5).

    What the holder has besides, protected or reserved since, is returned. If there is any, the requester learns that in
    place of a release-ack, which would say that the file is free.
    """
    held = granting.on_file(entry, asked)
    # What the request was about: the lease that it names, or one that was there too by then.
    meant = [row for row in held if row.reservation_id == asked.reservation_id or row.granted_at < asked.created_at]
    taken = [lease for lease in meant if not liveness.is_protected(entry, lease)]
    resolve(entry, asked, "forced", "timeout")
    calls.end(entry, taken, "forced")
    left = [lease for lease in held if lease not in taken]
    if left:
        text = (
            f"{asked.file}: taken from {asked.holder}, who has {shown(left[0].pattern)} on it besides. Ask again with "
            "negotiate_release."
        )
        entry.notify(asked.requester, "forced", text, thread_id=asked.thread_id)
    else:
        body = bodies.ack(asked.file, SYSTEM, "timeout")
        entry.post(asked.requester, bodies.RELEASE_ACK, body, thread_id=asked.thread_id, sender=SYSTEM)
    rows = (f"{lease.reservation_id} of {lease.pattern}" for lease in taken)
    names = some(rows)
    text = (
        f"Your reservation {names} was taken: {asked.requester} asked for {asked.file} ({asked.urgency}) and had no "
        "answer in time. Reserve it again before you write there."
    )
    entry.notify(asked.holder, "forced", text, thread_id=asked.thread_id, importance="urgent")
    return left


def _record_once(entry: Entry, asked: Negotiation) -> None:
    """Queue the event of a request that timed out, at its first report; a new deadline is a new time-out."""
    if marks.once(entry, f"timeout {asked.thread_id} {asked.deadline}"):
        facts = {"thread_id": asked.thread_id, "reservation_id": asked.reservation_id, "urgency": asked.urgency}
        entry.event("release_timed_out", **facts, requester=asked.requester, holder=asked.holder)
