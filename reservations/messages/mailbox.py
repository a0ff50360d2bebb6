"""Messages as their reader gets them, and what an inbox says besides: what became of a request, and which are open."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from interlock.reservations.answers import MessageInfo, iso
from interlock.reservations.leases.runtime import Context, Entry, new_id
from interlock.reservations.leases.views import span
from interlock.reservations.messages import bodies
from interlock.reservations.messages.bodies import reads_like_one, type_of
from interlock.reservations.store.records import SYSTEM, Message, replace

NEGOTIATION: Final = "neg"
"""The kind of thread that a negotiation is; no message of an agent's own making gets onto one."""

MAX_BODY_BYTES: Final = 2000
"""A body is at most this long."""

MAX_MESSAGE_BYTES: Final = 3200
"""A whole message is at most this long as JSON, so that an answer of 4 KiB always holds at least one."""

BY_HAND: Final = "Written by hand with send_message: it has neither asked for, released nor deferred anything."

MAX_NAMED_BYTES: Final = 200
"""At most this much of a pattern is shown; the thread says which request is meant."""
MAX_REQUESTS: Final = 3
"""At most this many requests that were read before are named again."""

_ENDS: Final = {
    "released": "you released it",
    "forced": "its time ran out, and it was taken",
    "free": "your reservation has ended",
    "withdrawn": "nobody asks for it any more",
}
"""What became of a request, to its holder."""

_UNSAVED: Final = "It had uncommitted changes when you got it: look at `git status -vv` before you edit or commit."


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
    """Return a text of at most that many bytes of UTF-8; what was cut is marked by `…`."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[: limit - 3].decode(errors="ignore") + "…"


def _info(message: Message) -> MessageInfo:
    info: MessageInfo = {
        "message_id": message.message_id, "from": message.sender, "thread_id": message.thread_id,
        "topic": message.topic, "importance": message.importance, "ack_required": message.ack_required,
        "body": message.body, "sent_at": iso(message.sent_at),
    }  # fmt: skip
    if message.acked_at is not None:
        info["acked_at"] = iso(message.acked_at)
    by_protocol = message.thread_id.startswith(f"{NEGOTIATION}_")
    if not by_protocol and (type_of(message.topic) or reads_like_one(message.body)):
        info["note"] = BY_HAND
    return info


class Shown(NamedTuple):
    """A message as its reader gets it, with the patterns that git is to be asked about."""

    info: MessageInfo
    patterns: tuple[str, ...] = ()


def shown(entry: Entry, message: Message) -> Shown:
    """Return a message with what is known of its matter, as far as that fits."""
    info = as_read(message)
    asked = entry.tx.negotiation(message.thread_id) if message.topic == bodies.RELEASE_REQUEST else None
    if asked is not None and asked.resolved_at is not None:
        return Shown(_with(info, settled=f"{_ENDS[asked.state]}, {span(entry.now - asked.resolved_at)} ago"))
    if asked is not None:
        full = _with(info, yours=cut(asked.pattern, MAX_NAMED_BYTES), unsaved=False)
        return Shown(full, (asked.pattern,) if "yours" in full else ())
    if message.topic == "granted" and message.sender == SYSTEM:
        own = entry.tx.leases_of(message.recipient)
        claims = tuple(lease.pattern for lease in own if lease.claim and lease.granted_at == message.sent_at)
        if claims:
            full = _with(info, note=_UNSAVED)
            return Shown(full, claims if "note" in full else ())
    return Shown(info)


def add_unsaved(ctx: Context, rows: Sequence[Shown]) -> None:
    """Ask git, outside the transaction, and write into the messages what is unsaved."""
    asked = tuple(dict.fromkeys(pattern for row in rows for pattern in row.patterns))
    known: Mapping[str, bool | None] = ctx.runtime.changed_here(ctx.caller.root, asked) if asked else {}
    for row in rows:
        found = [known.get(pattern) for pattern in row.patterns]
        if "yours" in row.info and found == [None]:
            row.info.pop("unsaved")
        elif "yours" in row.info:
            row.info["unsaved"] = any(found)
        elif found and not any(found):
            row.info.pop("note")


def open_requests(entry: Entry, listed: Sequence[MessageInfo]) -> list[dict[str, Any]]:
    """Return the requests to the caller that are open and not among the listed messages, but were read before."""
    threads = {info["thread_id"] for info in listed}
    rows = [row for row in entry.tx.open_negotiations(holder=entry.agent.name) if row.thread_id not in threads]
    return [
        {"thread_id": row.thread_id, "requester": row.requester, "file": cut(row.file, MAX_NAMED_BYTES)}
        for row in rows[:MAX_REQUESTS]
    ]


def _with(info: MessageInfo, **more: object) -> MessageInfo:
    """Return a message with more fields, or as it is where it would be too long for an answer."""
    full = cast("MessageInfo", {**info, **more})
    return full if size({"messages": [full]}) <= MAX_MESSAGE_BYTES else info
