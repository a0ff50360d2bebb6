"""The holder's answer to a request: release now, or defer with an ETA."""

from typing import Literal, cast

from interlock.reservations.answers import Refusal, RespondAnswer
from interlock.reservations.leases import calls, granting, handover
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.messages import bodies
from interlock.reservations.messages.escalation import acknowledge, resolve
from interlock.reservations.messages.request import read_answer
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import Lease, Negotiation, iso, key_of, replace


def respond(
    ctx: Context,
    thread_id: str,
    action: Literal["release", "defer"],
    eta_minutes: float | None = None,
    reason: str = "",
    *,
    report_unsaved: bool = True,
) -> RespondAnswer:
    """Answer a request on its thread (Negotiation PRD F1).

    `release` ends the reservation that was asked for and every other one of the holder that overlaps the file, so that
    the file is free, and sends a release-ack. `defer` keeps it, sends a release-defer and moves the time limit; it may
    be sent again with a new ETA. What was resolved before is said to be so, and nothing is sent.

    Args:
        eta_minutes: Of a deferral: whole minutes from 1 to 1440.
        report_unsaved: Ask git which of the released patterns have uncommitted changes, and report them.
    """
    errors = read_answer(action, eta_minutes, reason)
    if errors:
        return _refused(thread_id, *errors)
    given_up: list[str] = []
    with calls.entered(ctx) as entry:
        asked = entry.tx.negotiation(thread_id) if thread_id.isascii() else None
        if asked is None or key_of(entry.agent.name) != key_of(asked.holder):
            return _refused(thread_id, _not_asked(entry, thread_id, asked))
        if asked.resolved_at is not None:
            return {
                "thread_id": thread_id,
                "status": "released" if asked.state == "released" else "free",
                "released": [],
                "resolved_at": iso(asked.resolved_at),
                "errors": [],
            }
        if action == "defer":
            return _defer(entry, asked, int(eta_minutes or 0), reason)
        held = granting.on_file(entry, asked)
        answer = _release(entry, asked, held, reason)
        if report_unsaved:
            given_up = handover.given_up(entry, held)
    return cast("RespondAnswer", {**answer, **handover.given(ctx, given_up)})


def _release(entry: Entry, asked: Negotiation, held: list[Lease], why: str) -> RespondAnswer:
    released = [lease.reservation_id for lease in held]
    resolve(entry, asked, "released", why)
    body = bodies.ack(asked.file, asked.holder, why)
    entry.post(asked.requester, bodies.RELEASE_ACK, body, thread_id=asked.thread_id)
    facts = {"thread_id": asked.thread_id, "requester": asked.requester, "holder": asked.holder}
    entry.event("release_answered", **facts, released=released)
    calls.end(entry, held, "released")
    return {"thread_id": asked.thread_id, "status": "released", "released": released, "errors": []}


def _defer(entry: Entry, asked: Negotiation, eta_minutes: int, why: str) -> RespondAnswer:
    deadline = None if asked.deadline is None else entry.now + eta_minutes * 60
    entry.tx.put_negotiation(replace(asked, state="deferred", eta_minutes=eta_minutes, note=why, deadline=deadline))
    acknowledge(entry, asked.thread_id)
    body = bodies.defer(asked.file, eta_minutes, why)
    entry.post(asked.requester, bodies.RELEASE_DEFER, body, thread_id=asked.thread_id)
    facts = {"thread_id": asked.thread_id, "requester": asked.requester, "holder": asked.holder}
    entry.event("release_deferred", **facts, eta_minutes=eta_minutes)
    return {
        "thread_id": asked.thread_id,
        "status": "deferred",
        "released": [],
        "eta_minutes": eta_minutes,
        "errors": [],
    }


def _refused(thread_id: str, *errors: Refusal) -> RespondAnswer:
    return {"thread_id": shown(thread_id), "status": "refused", "released": [], "errors": [*errors]}


def _not_asked(entry: Entry, thread_id: str, asked: Negotiation | None) -> Refusal:
    message = "There is no negotiation with this thread id."
    if asked is not None:
        message = f"This request was sent to {asked.holder}, who alone can answer it; you are {entry.agent.name}."
    return refuse(
        "RSV305",
        message,
        place="thread_id",
        found=thread_id,
        expected="the thread_id of a release-request in your inbox",
        fix="Take it from fetch_inbox, without changing it.",
        next={"tool": "fetch_inbox", "arguments": {"unread_only": False}},
    )
