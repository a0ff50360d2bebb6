"""The holder's answer to a request: release now, or defer with an ETA."""

import json
from typing import cast

from interlock.reservations import patterns
from interlock.reservations.answers import Refusal, RespondAnswer, iso
from interlock.reservations.leases import calls, granting, handover
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.messages import bodies
from interlock.reservations.messages.escalation import acknowledge, resolve
from interlock.reservations.messages.request import read_answer, read_pattern, read_thread, unknown_thread
from interlock.reservations.patterns import Pattern
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import Lease, Negotiation, key_of, replace


def respond(
    ctx: Context,
    thread_id: object,
    action: object,
    file: object = None,
    eta_minutes: object = None,
    reason: object = None,
    requester: object = None,
    *,
    report_unsaved: bool = True,
) -> RespondAnswer:
    """Answer a request on its thread (Negotiation PRD F1).

    `release` ends the reservation that was asked for and every other one of the holder that overlaps the file, so that
    the file is free, and sends a release-ack; sent again, it gives the same ids and when it was. `defer` keeps it,
    sends a release-defer and moves the time limit; it may be sent again with a new ETA. A reservation that has ended
    meanwhile is `free`, and nothing is sent.

    Args:
        file: What is meant, if given: it must overlap what was asked for.
        eta_minutes: Of a deferral: whole minutes from 1 to 1440.
        requester: Who asked, if given: compared, and never trusted.
        report_unsaved: Ask git which of the released patterns have uncommitted changes, and report them.
    """
    wrong = read_thread(thread_id)
    errors = [*([wrong] if wrong else []), *read_answer(action, eta_minutes, reason)]
    named = None if file is None else read_pattern(ctx, file, "file")
    if named is not None and not isinstance(named, Pattern):
        errors.append(named)
    if errors:
        return _refused(thread_id, *errors)
    assert isinstance(thread_id, str)
    patterns_given: list[str] = []
    with calls.entered(ctx) as entry:
        asked = entry.tx.negotiation(thread_id)
        if asked is None:
            return _refused(thread_id, unknown_thread(thread_id))
        refusal = (
            _not_yours(entry, asked)
            or _other_file(asked, cast("Pattern | None", named))
            or _other_requester(asked, requester)
        )
        if refusal is not None:
            return _refused(thread_id, refusal)
        why = str(reason or "")
        if action != "release":
            return _defer(entry, asked, int(cast("float", eta_minutes)), why)
        held = granting.on_file(entry, asked)
        answer = _release(entry, asked, held, why)
        if report_unsaved and answer["status"] == "released" and "resolved_at" not in answer:
            patterns_given = handover.given_up(entry, held)
    return cast("RespondAnswer", {**answer, **handover.given(ctx, patterns_given)})


def _release(entry: Entry, asked: Negotiation, held: list[Lease], why: str) -> RespondAnswer:
    # No idempotency key has a control character, so this is nobody else's.
    key = f"\x1freleased {asked.thread_id}"
    known = entry.tx.remembered(asked.holder, key)
    if known is not None:
        answer = _settled(asked)
        answer["status"], answer["released"] = "released", json.loads(known[1])
        return answer
    if asked.resolved_at is not None:
        return _settled(asked)
    released = [lease.reservation_id for lease in held]
    resolve(entry, asked, "released", why)
    entry.post(asked.requester, bodies.RELEASE_ACK, bodies.ack(asked.file, asked.holder, why),
        thread_id=asked.thread_id,
    )  # fmt: skip
    facts = {"thread_id": asked.thread_id, "requester": asked.requester, "holder": asked.holder}
    entry.event("release_answered", **facts, released=released)
    entry.tx.remember(asked.holder, key, "", json.dumps(released), entry.now)
    calls.end(entry, held, "released")
    return {"thread_id": asked.thread_id, "status": "released", "released": released, "errors": []}


def _defer(entry: Entry, asked: Negotiation, eta_minutes: int, why: str) -> RespondAnswer:
    if asked.state in {"released", "forced"}:
        refusal = refuse(
            "RSV305", "The request is closed: the file was released.", place="thread_id", found=asked.state,
            expected="an open request",
            fix="Reserve the file again if you still need it; you queue behind whoever has it now.",
            next={"tool": "reserve_files", "arguments": {"patterns": [asked.file]}},
        )  # fmt: skip
        return _refused(asked.thread_id, refusal)
    if asked.resolved_at is not None:
        return _settled(asked)
    deadline = None if asked.deadline is None else entry.now + eta_minutes * 60
    entry.tx.put_negotiation(replace(asked, state="deferred", eta_minutes=eta_minutes, note=why, deadline=deadline))
    acknowledge(entry, asked.thread_id)
    body = bodies.defer(asked.file, eta_minutes, why)
    entry.post(asked.requester, bodies.RELEASE_DEFER, body, thread_id=asked.thread_id)
    facts = {"thread_id": asked.thread_id, "requester": asked.requester, "holder": asked.holder}
    entry.event("release_deferred", **facts, eta_minutes=eta_minutes)
    answer: RespondAnswer = {"thread_id": asked.thread_id, "status": "deferred", "released": [], "errors": []}
    answer["eta_minutes"] = eta_minutes
    return answer


def _other_requester(asked: Negotiation, requester: object) -> Refusal | None:
    if requester is None or (isinstance(requester, str) and key_of(requester) == key_of(asked.requester)):
        return None
    return refuse(
        "RSV304", "Somebody else asked on this thread.", place="requester", found=requester,
        expected=asked.requester, fix=f"Send requester={shown(asked.requester)!a}, or leave it out.",
    )  # fmt: skip


def _settled(asked: Negotiation) -> RespondAnswer:
    answer: RespondAnswer = {"thread_id": asked.thread_id, "status": "free", "released": [], "errors": []}
    if asked.resolved_at is not None:
        answer["resolved_at"] = iso(asked.resolved_at)
    return answer


def _refused(thread_id: object, *errors: Refusal) -> RespondAnswer:
    return {"thread_id": shown(thread_id), "status": "refused", "released": [], "errors": [*errors]}


def _not_yours(entry: Entry, asked: Negotiation) -> Refusal | None:
    if key_of(entry.agent.name) == key_of(asked.holder):
        return None
    return refuse(
        "RSV305", f"This request was sent to {asked.holder}, who alone can answer it.", place="thread_id",
        found=f"you are {entry.agent.name}", expected=asked.holder, fix="Answer the requests in your own inbox.",
        next={"tool": "fetch_inbox", "arguments": {}},
    )  # fmt: skip


def _other_file(asked: Negotiation, named: Pattern | None) -> Refusal | None:
    if named is None or patterns.overlaps(named, granting.pattern_of(asked.file)):
        return None
    return refuse(
        "RSV105", "The request is about another file.", place="file", found=named.text, expected=asked.file,
        fix="Leave `file` out: the thread says what is meant.",
    )  # fmt: skip
