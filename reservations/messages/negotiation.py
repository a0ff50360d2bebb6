"""Asking a holder for a file: one request for one reservation, its answer, and its status meanwhile."""

from typing import Any, Final, Literal, NamedTuple, cast

from interlock.core import patterns
from interlock.reservations.answers import NegotiateAnswer, Refusal, RequestAnswer
from interlock.reservations.leases import calls, granting, liveness, views, wait_queue
from interlock.reservations.leases.runtime import Context, Entry, new_id
from interlock.reservations.leases.views import conflict_info, lease_info
from interlock.reservations.messages import bodies, escalation
from interlock.reservations.messages.request import Ask, read_ask
from interlock.reservations.messages.sending import unknown_agent
from interlock.reservations.rules import refuse
from interlock.reservations.settings import NORMAL_TIMEOUT_MINUTES, Settings
from interlock.reservations.store.records import Lease, Negotiation, Urgency, key_of, replace

DEPRECATED: Final = "request_release is deprecated and never times out: use negotiate_release."

STATUS: Final[dict[str, Literal["pending", "release", "defer", "free"]]] = {
    "pending": "pending",
    "deferred": "defer",
    "released": "release",
    "forced": "release",
    "free": "free",
    "withdrawn": "free",
}
"""State of a negotiation to the status that its requester gets."""


def negotiate(
    ctx: Context,
    file: str,
    reason: str,
    urgency: Urgency = "normal",
    agent_name: str | None = None,
    wait_seconds: float = 0,
) -> NegotiateAnswer:
    """Ask the holder of a file to release it (Negotiation PRD F3); with nobody in the way it is free at once.

    The same request again gives its thread and its status, and may raise its urgency. The caller queues behind
    the holder, so that a release hands the file over. Its requests that timed out are escalated first.

    Args:
        urgency: `low`, `normal` or `urgent`: sets importance and time limit; `urgent` asks for an acknowledgement.
        agent_name: Of whom it is asked; default: the first holder.
        wait_seconds: How long to wait for a release or a new deferral.
    """
    ask = read_ask(ctx, file, reason, urgency=urgency, agent_name=agent_name, wait_seconds=wait_seconds)
    if isinstance(ask, list):
        return {"thread_id": None, "status": "refused", "errors": ask}
    end = ctx.runtime.monotonic() + ask.wait_seconds
    stamp = ctx.runtime.store.stamp()
    seen = _look(ctx, ask, None)
    while seen.waits and (left := end - ctx.runtime.monotonic()) > 0:
        wait_queue.until_changed(ctx.runtime, stamp, min(left, seen.due, wait_queue.LOOK_SECONDS))
        stamp = ctx.runtime.store.stamp()
        seen = _look(ctx, ask, seen)
    answer = seen.answer
    if ask.wait_seconds and answer["status"] == "pending" and "deadlock" not in answer:
        answer["status"] = "timeout"
    if "holder" in answer:
        calls.ask_dirty(ctx, [answer["holder"]])
    return answer


def request(ctx: Context, agent_name: str, pattern: str, reason: str) -> RequestAnswer:
    """Ask an agent to release a pattern, without urgency, time limit and place in the queue; deprecated."""
    ask = read_ask(ctx, pattern, reason, agent_name=agent_name, legacy=True)
    if isinstance(ask, list):
        return {"sent": False, "thread_id": None, "deprecated": DEPRECATED, "errors": ask}
    answer = _look(ctx, ask, None).answer
    is_open = answer["status"] in {"pending", "defer", "timeout"}
    errors = answer["errors"] or ([] if is_open else [_nobody(ask)])
    thread_id = answer["thread_id"] if is_open else None
    return {"sent": is_open, "thread_id": thread_id, "deprecated": DEPRECATED, "errors": errors}


class _Seen(NamedTuple):
    """The state of a request after one look at the store, and the asker's place in the queue.

    In `due` seconds something happens by the clock alone; `waits`: waiting may bring another answer.
    """

    answer: NegotiateAnswer
    asked: Negotiation | None = None
    due: float = 0.0
    place: int = 0
    waits: bool = False


def _look(ctx: Context, ask: Ask, before: _Seen | None) -> _Seen:
    with calls.entered(ctx) as entry:
        if before is not None:
            return _again(entry, ask, before)
        if not ask.legacy:
            escalation.run(entry)
        return _ask(entry, ask)


def _ask(entry: Entry, ask: Ask) -> _Seen:
    """Find who holds what is asked for, and the open request or a new one."""
    named = entry.tx.agent(ask.agent_name) if ask.agent_name else None
    if ask.agent_name and named is None:
        return _Seen(_refused(unknown_agent(entry.tx, ask.agent_name, "agent_name")))
    me = key_of(entry.agent.name)
    held = granting.overlapping(entry, ask.pattern)
    foreign = [lease for lease in held if key_of(lease.agent) != me]
    in_way = [lease for lease in foreign if not liveness.is_takeable(entry, lease)]
    if not in_way:
        own = [lease for lease in held if key_of(lease.agent) == me and _covers(lease, ask)]
        return _Seen(_free(entry, ask, own, foreign))
    asked_of = [lease for lease in in_way if not ask.agent_name or key_of(lease.agent) == key_of(ask.agent_name)]
    if not asked_of:
        return _Seen(_refused(_other_holder(ask, in_way)))
    lease = asked_of[0]
    by_id = {each.reservation_id: each for each in asked_of}
    known = [
        asked
        for asked in entry.tx.open_negotiations(requester=entry.agent.name, holder=lease.agent)
        if asked.file == ask.pattern.text and asked.reservation_id in by_id
    ]
    asked = _raise(entry, known[0], ask) if known else _open(entry, ask, lease)
    return _stand(entry, ask, asked, by_id[asked.reservation_id])


def _again(entry: Entry, ask: Ask, before: _Seen) -> _Seen:
    assert before.asked is not None
    asked = entry.tx.negotiation(before.asked.thread_id)
    assert asked is not None, before.asked.thread_id
    if asked.resolved_at is not None:
        # This answer brings the news of the grant itself.
        wait_queue.confirm(entry, before.place)
        return _Seen(_released(entry, ask, asked)) if STATUS[asked.state] == "release" else _ask(entry, ask)
    lease = entry.tx.lease(asked.reservation_id)
    assert lease is not None, asked.thread_id
    if liveness.is_takeable(entry, lease):
        return _ask(entry, ask)
    seen = _stand(entry, ask, asked, lease)
    is_new = asked.state == "deferred" and asked != before.asked
    return replace(seen, waits=seen.waits and not is_new, asked=before.asked)


def _stand(entry: Entry, ask: Ask, asked: Negotiation, lease: Lease) -> _Seen:
    """Return how an open request stands, with the call that goes on from here."""
    over = escalation.is_over(asked, entry.now)
    wanted = [] if ask.legacy else wait_queue.wanted_by_holder(entry, lease.agent)
    wait = {"patterns": [ask.pattern.text], "wait_seconds": entry.runtime.settings.max_wait_seconds}
    next_call: dict[str, Any] = {"tool": "fetch_inbox", "arguments": {}}
    if over:
        next_call = {"tool": "reserve_files", "arguments": wait}
    if wanted:
        next_call = views.release_call(wanted)
    answer: dict[str, Any] = {
        "thread_id": asked.thread_id,
        "status": "timeout" if over else STATUS[asked.state],
        "holder": conflict_info(entry, ask.pattern.text, lease, lease.pattern),
        **({} if asked.eta_minutes is None else {"eta_minutes": asked.eta_minutes, "reason": asked.note}),
        **({"deadlock": [entry.agent.name, lease.agent]} if wanted else {}),
        "next": next_call,
        "errors": [],
    }
    place = wait_queue.place_of(entry, _wanted(entry, ask))
    number = 0 if place is None else place.waiter_id
    due, waits = lease.expires_at - entry.now, not wanted and not over
    return _Seen(cast("NegotiateAnswer", answer), asked, due, number, waits)


def _open(entry: Entry, ask: Ask, lease: Lease) -> Negotiation:
    limit = None if ask.legacy else time_limit_seconds(entry.runtime.settings, ask.urgency)
    asked = Negotiation(
        thread_id=new_id(bodies.THREAD),
        reservation_id=lease.reservation_id,
        pattern=lease.pattern,
        holder=lease.agent,
        requester=entry.agent.name,
        file=ask.pattern.text,
        reason=ask.reason,
        urgency=ask.urgency,
        legacy=ask.legacy,
        state="pending",
        eta_minutes=None,
        note="",
        created_at=entry.now,
        deadline=None if limit is None else entry.now + limit,
        resolved_at=None,
    )
    entry.tx.put_negotiation(asked)
    _send(entry, asked)
    if not ask.legacy:
        _queue(entry, ask, asked)
    facts = {"thread_id": asked.thread_id, "reservation_id": asked.reservation_id, "urgency": asked.urgency}
    entry.event("release_requested", **facts, requester=asked.requester, holder=asked.holder, file=asked.file)
    return asked


def _raise(entry: Entry, asked: Negotiation, ask: Ask) -> Negotiation:
    """Return an open request; asked again with more urgency, importance and time limit follow."""
    rank = bodies.URGENCIES.index
    if ask.legacy:
        return asked
    _queue(entry, ask, asked)
    if not asked.legacy and rank(ask.urgency) <= rank(asked.urgency):
        return asked
    limit = time_limit_seconds(entry.runtime.settings, ask.urgency)
    ends = [] if limit is None else [entry.now + limit]
    deferred = asked.state == "deferred" and asked.deadline is not None
    # A holder that said when it will be ready keeps that time.
    deadline = asked.deadline if deferred else min([*ends, *([asked.deadline] if asked.deadline else [])], default=None)
    raised = replace(asked, urgency=ask.urgency, reason=ask.reason, legacy=False, deadline=deadline)
    entry.tx.put_negotiation(raised)
    _send(entry, raised)
    return raised


def _send(entry: Entry, asked: Negotiation) -> None:
    """Put the request into the holder's inbox; one that is there unread counts as read."""
    body = bodies.request(
        asked.file,
        asked.reason,
        asked.requester,
        asked.urgency,
        asked.thread_id,
        asked.reservation_id,
        legacy=asked.legacy,
    )
    importance, ack_required = asked.urgency, asked.urgency == "urgent"  # urgency sets importance (PRD F3)
    for message in entry.tx.thread(asked.thread_id):
        if message.topic == bodies.RELEASE_REQUEST and message.read_at is None:
            entry.tx.put_message(replace(message, read_at=entry.now))
    entry.post(
        asked.holder,
        bodies.RELEASE_REQUEST,
        body,
        thread_id=asked.thread_id,
        importance=importance,
        ack_required=ack_required,
    )


def _queue(entry: Entry, ask: Ask, asked: Negotiation) -> None:
    """Give the asker its place in the queue.

    Within what is held anyway the place keeps nobody out, and lasts for as long as a lease may. A wider one keeps
    others from files that nobody holds: it ends soon after the time limit that the request began with, whatever
    becomes of that. An agent that waits in the queue by then keeps it.
    """
    settings = entry.runtime.settings
    until = entry.now + settings.max_ttl_minutes * 60
    if not patterns.covers(granting.pattern_of(asked.pattern), ask.pattern):
        limit = time_limit_seconds(settings, asked.urgency) or NORMAL_TIMEOUT_MINUTES * 60
        until = asked.created_at + limit + settings.linger_seconds
    if until > entry.now:
        wait_queue.join(entry, _wanted(entry, ask), until)


def _wanted(entry: Entry, ask: Ask) -> granting.Wanted:
    ttl_seconds = entry.runtime.settings.ttl_minutes * 60
    return granting.Wanted((ask.pattern,), exclusive=True, no_force=False, reason=ask.reason, ttl_seconds=ttl_seconds)


def time_limit_seconds(settings: Settings, urgency: Urgency) -> float | None:
    """Return how long the holder has to answer; None for ever (Negotiation PRD F5)."""
    minutes: float | None = getattr(settings, f"{urgency}_timeout_minutes")
    return None if minutes is None else minutes * 60


def _free(entry: Entry, ask: Ask, own: list[Lease], dead: list[Lease]) -> NegotiateAnswer:
    """Answer that nobody alive is in the way: it is free, the caller's claim, or the caller's own."""
    if own and not any(lease.claim for lease in own):
        return _refused(
            refuse(
                "RSV303",
                "You hold it yourself.",
                place="file",
                found=own[0].pattern,
                expected="a file that another agent holds",
                fix="Edit it; release_files gives it back.",
            )
        )
    claims = [lease for lease in own if lease.claim]
    brought = [
        asked
        for asked in (entry.tx.negotiations_since(claims[0].granted_at) if claims else [])
        if key_of(asked.requester) == key_of(entry.agent.name)
        and asked.file == ask.pattern.text
        and asked.state in {"released", "forced"}
        and (asked.resolved_at or 0) >= claims[0].granted_at
    ]
    if brought:
        return _released(entry, ask, brought[-1])
    answer: NegotiateAnswer = {"thread_id": None, "status": "free", "next": _reserve(ask), "errors": []}
    if claims:
        answer["reservations"] = [lease_info(lease, entry.now) for lease in claims]
    if dead:
        answer["holder"] = conflict_info(entry, ask.pattern.text, dead[0], dead[0].pattern)
    return answer


def _released(entry: Entry, ask: Ask, asked: Negotiation) -> NegotiateAnswer:
    """Answer that a holder released it, with what the caller got by that."""
    own = [lease for lease in entry.tx.leases_of(entry.agent.name) if _covers(lease, ask)]
    answer: NegotiateAnswer = {"thread_id": asked.thread_id, "status": "release", "next": _reserve(ask), "errors": []}
    if asked.note:
        answer["reason"] = asked.note
    if own:
        answer["reservations"] = [lease_info(lease, entry.now) for lease in own]
    return answer


def _covers(lease: Lease, ask: Ask) -> bool:
    return lease.exclusive and patterns.covers(granting.pattern_of(lease.pattern), ask.pattern)


def _reserve(ask: Ask) -> dict[str, Any]:
    return {"tool": "reserve_files", "arguments": {"patterns": [ask.pattern.text], "reason": ask.reason}}


def _refused(refusal: Refusal) -> NegotiateAnswer:
    return {"thread_id": None, "status": "refused", "errors": [refusal]}


def _other_holder(ask: Ask, in_way: list[Lease]) -> Refusal:
    names = list({key_of(lease.agent): lease.agent for lease in in_way}.values())
    call = {"file": ask.pattern.text, "reason": ask.reason, "urgency": ask.urgency, "agent_name": names[0]}
    return refuse(
        "RSV303",
        f"{ask.agent_name} does not hold what is asked for.",
        place="agent_name",
        found=ask.agent_name,
        expected=", ".join(names),
        fix=f"Ask {names[0]}, or leave agent_name out.",
        next={"tool": "negotiate_release", "arguments": call},
    )


def _nobody(ask: Ask) -> Refusal:
    return refuse(
        "RSV303",
        "Nobody holds it: it is free.",
        place="pattern",
        found=ask.pattern.text,
        expected="a pattern that another agent holds",
        fix="Reserve it.",
        next=_reserve(ask),
    )
