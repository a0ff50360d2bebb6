"""What an inbox says besides the messages: what became of a request, what it is about, and which wait for an answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from interlock.reservations.answers import MessageInfo
from interlock.reservations.leases.entry import Entry
from interlock.reservations.leases.runtime import Context
from interlock.reservations.leases.views import span
from interlock.reservations.messages import bodies
from interlock.reservations.messages.mailbox import MAX_MESSAGE_BYTES, as_read, cut, size
from interlock.reservations.store.records import HOUSE, Message

MAX_NAMED_BYTES: Final = 200
"""So much of a pattern is shown; the thread says which request is meant."""
MAX_REQUESTS: Final = 3
"""So many requests that were read before are named again."""

_ENDS: Final = {
    "released": "you released it",
    "forced": "its time ran out, and it was taken",
    "free": "your reservation has ended",
    "withdrawn": "nobody asks for it any more",
}
"""What became of a request, to its holder."""

_UNSAVED: Final = "It had uncommitted changes when you got it: look at `git status -vv` before you edit or commit."


class Shown(NamedTuple):
    """A message as its reader gets it.

    Args:
        patterns: What git is to be asked about.
    """

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
    if message.topic == "granted" and message.sender == HOUSE:
        own = entry.tx.leases_of(message.recipient)
        claims = tuple(lease.pattern for lease in own if lease.claim and lease.granted_at == message.sent_at)
        if claims:
            full = _with(info, note=_UNSAVED)
            return Shown(full, claims if "note" in full else ())
    return Shown(info)


def look_after(ctx: Context, rows: Sequence[Shown]) -> None:
    """Ask git, outside the transaction, and write into messages what it says."""
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


def open_requests(entry: Entry, told: Sequence[MessageInfo]) -> list[dict[str, Any]]:
    """Return the requests to the caller that are open and not among some messages: those that were read before."""
    threads = {info["thread_id"] for info in told}
    rows = [row for row in entry.tx.open_negotiations(holder=entry.agent.name) if row.thread_id not in threads]
    return [
        {"thread_id": row.thread_id, "requester": row.requester, "file": cut(row.file, MAX_NAMED_BYTES)}
        for row in rows[:MAX_REQUESTS]
    ]


def _with(info: MessageInfo, **more: object) -> MessageInfo:
    """Return a message with more fields, or as it is where it would be too long for an answer."""
    full = cast("MessageInfo", {**info, **more})
    return full if size({"messages": [full]}) <= MAX_MESSAGE_BYTES else info
