"""Messages between agents: sending one, and the inbox."""

import json
from collections.abc import Sequence
from typing import Final, TypeVar, cast

from interlock.core.text import nearest
from interlock.reservations.answers import InboxAnswer, Refusal, SentAnswer
from interlock.reservations.leases import arguments, calls
from interlock.reservations.leases.refusals import other_arguments
from interlock.reservations.leases.runtime import Caller, Context
from interlock.reservations.messages import bodies, escalation, mailbox
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import key_of, replace
from interlock.reservations.store.sqlite_rows import Transaction

MAX_INBOX_BYTES: Final = 4096
"""An answer of `fetch_inbox` is at most this long as JSON, on one line or on many."""

MAX_NAME_BYTES: Final = 400
MAX_TOPIC_BYTES: Final = 100
MAX_PAGE: Final = 100
PAGE: Final = 20
TIMEOUT_BYTES: Final = 850
"""How much of an answer is kept for negotiations that timed out; they get what the messages leave free besides."""


def send(ctx: Context, to: object, body: object, topic: object = None, idempotency_key: object = None) -> SentAnswer:
    """Send a message to one agent that exists; a typed body must be whole, and moves nothing.

    Args:
        to: The name of an agent; the sender's own is allowed, as a note for later.
        body: Text of at most `MAX_BODY_BYTES`.
        topic: A short subject. Where it or the field `type` of the body names a type, the body is checked.
        idempotency_key: The same key gives the first answer again, and sends nothing.
    """
    refusal = _bad_text("to", to, MAX_NAME_BYTES) or _bad_text("body", body, mailbox.MAX_BODY_BYTES)
    refusal = refusal or _bad_topic(topic)
    if refusal is not None:
        return _unsent(refusal)
    recipient, text, subject = str(to), str(body), "" if topic is None else str(topic)
    typed = bodies.read(text)
    kind = bodies.type_of(subject) or ("" if typed is None else str(typed["type"]))
    refusal = _bad_body(ctx.caller, kind, subject, text) or next(iter(arguments.bad_key(idempotency_key)), None)
    if refusal is not None:
        return _unsent(refusal)
    key = "" if idempotency_key is None else str(idempotency_key)
    digest = arguments.digest_of("send_message", recipient, text, subject) if key else ""
    with calls.entered(ctx) as entry:
        known = entry.tx.remembered(entry.agent.name, key) if key else None
        if known is not None:
            return cast("SentAnswer", json.loads(known[1])) if known[0] == digest else _unsent(other_arguments(key))
        reader = entry.tx.agent(recipient)
        if reader is None:
            return _unsent(unknown_agent(entry.tx, recipient, "to"))
        message = entry.post(reader.name, kind or subject, text)
        ids = {"message_id": message.message_id, "thread_id": message.thread_id}
        answer = cast("SentAnswer", {"sent": True, **ids, "errors": []})
        if key:
            entry.tx.remember(entry.agent.name, key, digest, json.dumps(answer), entry.now)
        return answer


def fetch(ctx: Context, cursor: object = None, *, unread_only: object = True, limit: object = None) -> InboxAnswer:
    """Return messages to the caller, mark them as read, and escalate its own negotiations that timed out.

    The answer holds at most `MAX_INBOX_BYTES`, and at most `limit` messages, 1 to `MAX_PAGE`; the `next_cursor` of the
    one before says where it begins, and is null when nothing is left (Negotiation PRD F1, F5). `unread_only` leaves out
    what an answer has returned before.
    """
    errors = _bad_page(cursor, unread_only, limit)
    if errors:
        return {"messages": [], "next_cursor": None, "negotiation_timeouts": [], "errors": errors}
    after, most = int(cast("float", cursor or 0)), int(cast("float", limit or PAGE))
    with calls.entered(ctx) as entry:
        timeouts = escalation.run(entry)
        rows = entry.tx.inbox(entry.agent.name, after=after, unread_only=bool(unread_only), limit=most + 1)
        answer: InboxAnswer = {"messages": [], "next_cursor": 10**12, "negotiation_timeouts": [], "errors": []}
        later = _fill(answer["negotiation_timeouts"], timeouts, answer, TIMEOUT_BYTES)
        read = [mailbox.shown(entry, row) for row in rows[:most]]
        left = _fill(answer["messages"], [row.info for row in read], answer, MAX_INBOX_BYTES)
        _fill(answer["negotiation_timeouts"], later, answer, MAX_INBOX_BYTES)
        for row in rows[: len(answer["messages"])]:
            if row.read_at is None:
                entry.tx.put_message(replace(row, read_at=entry.now))
        whole = not left and len(rows) <= most
        answer["next_cursor"] = None if whole else answer["messages"][-1]["message_id"]
        if whole and (waiting := mailbox.open_requests(entry, answer["messages"])):
            answer["open_requests"] = []
            _fill(answer["open_requests"], waiting, answer, MAX_INBOX_BYTES)
    mailbox.add_unsaved(ctx, read[: len(answer["messages"])])
    return answer


def unknown_agent(tx: Transaction, name: str, place: str) -> Refusal:
    """Return the refusal of a name that no agent has, with the names that are near."""
    names = {key_of(agent.name): agent.name for agent in tx.agents()}
    near = [names[key] for key in nearest(key_of(name), names, 3, 0.5)]
    return refuse(
        "RSV301", f"There is no agent {shown(name)!a} here.", place=place, found=name,
        expected=f"one of {', '.join(near)}" if near else "the name of an agent that has called here",
        fix=f"Did you mean {near[0]}?" if near else "Ask list_agents who is here.",
        next={"tool": "list_agents", "arguments": {}},
    )  # fmt: skip


T = TypeVar("T")


def _fill(into: list[T], rows: Sequence[T], answer: InboxAnswer, limit: int) -> Sequence[T]:
    """Move the first rows into a part of an answer, as long as all of it fits into a limit; return the others."""
    for index, row in enumerate(rows):
        into.append(row)
        if mailbox.size(answer) > limit:
            into.pop()
            return rows[index:]
    return ()


def _bad_text(place: str, value: object, most: int) -> Refusal | None:
    code = "RSV301" if place == "to" else "RSV302"
    expected = "the name of one agent" if place == "to" else f"a text of 1 to {most} bytes"
    if not isinstance(value, str) or not value.strip():
        what = "is empty" if isinstance(value, str) else "is not a text"
        fix = _FIXES[place] if place == "to" else f"Say in `{place}` what the agent is to know."
        return refuse(code, f"`{place}` {what}.", place=place, found=value, expected=expected, fix=fix)
    length = mailbox.byte_length(value)
    if length is None or length > most:
        message = f"`{place}` is not a text that can be written." if length is None else f"`{place}` is too long."
        found = value if length is None else f"{length} bytes"
        return refuse(code, message, place=place, found=found, expected=expected, fix=_FIXES[place])
    return None


def _bad_topic(topic: object) -> Refusal | None:
    if topic is None:
        return None
    length = mailbox.byte_length(topic) if isinstance(topic, str) else None
    if length is not None and length <= MAX_TOPIC_BYTES and cast("str", topic).isprintable():
        return None
    return refuse(
        "RSV302", "The topic is not a short subject.", place="topic", found=topic,
        expected=f"one line of at most {MAX_TOPIC_BYTES} bytes", fix="Shorten it, and put the rest into the body.",
    )  # fmt: skip


def _bad_body(caller: Caller, kind: str, topic: str, body: str) -> Refusal | None:
    """Return what is wrong with a body of a type, or with one that is long in JSON."""
    if kind and (wrong := bodies.problem(kind, body, caller.name)) is not None:
        return wrong
    length = mailbox.size_of_message(caller.name, topic, body)
    if length <= mailbox.MAX_MESSAGE_BYTES:
        return None
    return refuse(
        "RSV302", "The message is too long as JSON, where quotes, line ends and backslashes count twice or more.",
        place="body", found=f"{length} bytes as JSON",
        expected=f"at most {mailbox.MAX_MESSAGE_BYTES} bytes as JSON", fix=_FIXES["body"],
    )  # fmt: skip


def _unsent(refusal: Refusal) -> SentAnswer:
    return {"sent": False, "errors": [refusal]}


def _bad_page(cursor: object, unread_only: object, limit: object) -> list[Refusal]:
    rows = (
        ("cursor", cursor, cursor is None or bodies.is_whole(cursor, 0, 2**53), "a whole number, or none"),
        ("unread_only", unread_only, isinstance(unread_only, bool), "true or false"),
        ("limit", limit, limit is None or bodies.is_whole(limit, 1, MAX_PAGE), f"a whole number from 1 to {MAX_PAGE}"),
    )
    fix = "Take next_cursor of the answer before, or leave the argument out."
    return [arguments.wrong(place, value, expected, fix) for place, value, good, expected in rows if not good]


_FIXES: Final = {
    "to": "Name one agent; list_agents says who is here.",
    "body": "Shorten it, or write it to a file and send the path.",
}
