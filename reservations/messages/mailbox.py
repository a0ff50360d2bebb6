"""One message: into the store, and out of it as its reader gets it."""

import json
from typing import Final

from interlock.reservations.answers import MessageInfo, iso
from interlock.reservations.leases.entry import new_id
from interlock.reservations.messages.bodies import reads_like_one, type_of
from interlock.reservations.store.records import Message, replace

NEGOTIATION: Final = "neg"
"""The kind of thread that a negotiation is; no message of an agent's own making gets onto one."""

MAX_BODY_BYTES: Final = 2000
"""A body is at most so long."""

MAX_MESSAGE_BYTES: Final = 3200
"""A whole message is at most so long as JSON, so that an answer of 4 KiB always holds at least one."""

BY_HAND: Final = "Written by hand with send_message: it has neither asked for, released nor deferred anything."


def as_read(message: Message) -> MessageInfo:
    """Return a message as its reader gets it.

    A typed body that `send_message` carried is marked by `note`. What is too long for an answer is cut: a notice of
    the store may be, what `send_message` and the negotiation let pass never is.
    """
    for limit in (MAX_BODY_BYTES, 1000, 300):
        info = _info(replace(message, body=cut(message.body, limit)))
        if size({"messages": [info]}) <= MAX_MESSAGE_BYTES:
            return info
    return _info(replace(message, body=""))


def size_of_message(sender: str, topic: str, body: str, thread_id: str = "") -> int:
    """Return how many bytes a message will have in the answer to its reader."""
    thread_id = thread_id or new_id("thr")
    blank = Message(
        10**12, thread_id, sender, "", topic, "urgent",
        ack_required=False, acked_at=None, body=body, sent_at=0.0, read_at=None,
    )  # fmt: skip
    return size({"messages": [_info(blank)]})


def size(value: object) -> int:
    """Return how many bytes a value has as JSON in UTF-8, spread over lines: compact, it is smaller."""
    return len(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace"))


def byte_length(text: str) -> int | None:
    """Return how many bytes a text has in UTF-8; None when it has half of a surrogate pair or a NUL, as no text has."""
    try:
        return None if "\0" in text else len(text.encode())
    except UnicodeEncodeError:
        return None


def cut(text: str, limit: int) -> str:
    """Return a text of at most so many bytes of UTF-8; what was cut is marked by `…`."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[: limit - 3].decode(errors="ignore") + "…"


def _info(message: Message) -> MessageInfo:
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
    by_protocol = message.thread_id.startswith(f"{NEGOTIATION}_")
    if not by_protocol and (type_of(message.topic) or reads_like_one(message.body)):
        info["note"] = BY_HAND
    return info
