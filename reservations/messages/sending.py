"""Messages between agents: sending one, and the inbox."""

from typing import Final

from interlock.core.text import nearest
from interlock.reservations.answers import InboxAnswer, MessageInfo, Refusal, SentAnswer
from interlock.reservations.leases import calls
from interlock.reservations.leases.arguments import MAX_REASON_CHARS, bad_text, wrong
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.leases.views import span
from interlock.reservations.messages import bodies, escalation
from interlock.reservations.rules import refuse, shown
from interlock.reservations.store.records import Message, iso, key_of, replace
from interlock.reservations.store.sqlite_rows import Transaction
from interlock.reservations.truncation import MAX_ANSWER_BYTES, size

MAX_BODY_CHARS: Final = 2000
MAX_PAGE: Final = 100
PAGE: Final = 20

_ENDS: Final = {
    "released": "you released it",
    "forced": "its time ran out, and it was taken",
    "free": "your reservation has ended",
    "withdrawn": "nobody asks for it any more",
}
"""What became of a request, to its holder."""


def send(ctx: Context, to: str, body: str, topic: str | None = None) -> SentAnswer:
    """Send a message to one agent that exists; those of the negotiation are sent by its own tools alone.

    Args:
        to: The name of an agent; the sender's own is allowed, as a note for later.
        body: Text of at most `MAX_BODY_CHARS`.
        topic: A short subject.
    """
    subject = topic or ""
    errors = bad_text("body", body, MAX_BODY_CHARS, "RSV302", least=1)
    errors += bad_text("topic", subject, MAX_REASON_CHARS, "RSV302")
    if subject.strip().casefold().replace("_", "-") in bodies.TYPES:
        fix = "Call negotiate_release or respond_to_release, which send it."
        errors.append(wrong("topic", subject, "a topic of your own", fix, "RSV302"))
    if errors:
        return {"sent": False, "errors": errors}
    with calls.entered(ctx) as entry:
        reader = entry.tx.agent(to)
        if reader is None:
            return {"sent": False, "errors": [unknown_agent(entry.tx, to, "to")]}
        message = entry.post(reader.name, subject, body)
        return {"sent": True, "message_id": message.message_id, "thread_id": message.thread_id, "errors": []}


def fetch(
    ctx: Context, cursor: int | None = None, *, unread_only: bool = True, limit: int | None = None
) -> InboxAnswer:
    """Return messages to the caller, mark them as read, and escalate its own negotiations that timed out.

    The answer holds as many messages as fit into `MAX_ANSWER_BYTES`, at least one and at most `limit`, 1 to `MAX_PAGE`;
    the `next_cursor` of the one before says where it begins, and is null when nothing is left (Negotiation PRD F1, F5).
    `unread_only` leaves out what an answer has returned before.
    """
    most = min(max(1, limit or PAGE), MAX_PAGE)
    with calls.entered(ctx) as entry:
        timeouts = escalation.run(entry)[:PAGE]  # the next call reports the others
        messages = entry.tx.inbox(entry.agent.name, after=cursor or 0, unread_only=unread_only, limit=most + 1)
        answer: InboxAnswer = {"messages": [], "next_cursor": None, "negotiation_timeouts": timeouts, "errors": []}
        space = MAX_ANSWER_BYTES - size(answer)
        for message in messages[:most]:
            info = _as_read(entry, message)
            space -= size(info) + 1
            if space < 0 and answer["messages"]:
                break
            answer["messages"].append(info)
            if message.read_at is None:
                entry.tx.put_message(replace(message, read_at=entry.now))
        if len(answer["messages"]) < len(messages):
            answer["next_cursor"] = answer["messages"][-1]["message_id"]
    return answer


def _as_read(entry: Entry, message: Message) -> MessageInfo:
    """Return a message as its reader gets it; of a request also what became of it."""
    info: MessageInfo = {
        "message_id": message.message_id,
        "from": message.sender,
        "thread_id": message.thread_id,
        "topic": message.topic,
        "importance": message.importance,
        "ack_required": message.ack_required,
        "body": message.body,
        "sent_at": iso(message.sent_at),
    }
    if message.acked_at is not None:
        info["acked_at"] = iso(message.acked_at)
    asked = entry.tx.negotiation(message.thread_id) if message.topic == bodies.RELEASE_REQUEST else None
    if asked is not None and asked.resolved_at is not None:
        info["settled"] = f"{_ENDS[asked.state]}, {span(entry.now - asked.resolved_at)} ago"
    return info


def unknown_agent(tx: Transaction, name: str, place: str) -> Refusal:
    """Return the refusal of a name that no agent has, with the names that are near."""
    names = {key_of(agent.name): agent.name for agent in tx.agents()}
    near = [names[key] for key in nearest(key_of(name), names, 3, 0.5)]
    return refuse(
        "RSV301",
        f"There is no agent {shown(name)!a} here.",
        place=place,
        found=name,
        expected=f"one of {', '.join(near)}" if near else "the name of an agent that has called here",
        fix=f"Did you mean {near[0]}?" if near else "Ask list_agents who is here.",
        next={"tool": "list_agents", "arguments": {}},
    )
