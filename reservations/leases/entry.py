"""What the rules of one call work with while its transaction is open."""

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from interlock.reservations.leases.runtime import Context
from interlock.reservations.store.records import HOUSE, Agent, Importance, Message

if TYPE_CHECKING:
    from interlock.reservations.store.sqlite_rows import Transaction


class Entry(Context):
    """One call inside the one transaction; made by `leases.entered`.

    Args:
        tx: The rows; what is put here stands or falls with the call.
        now: The time of the whole call, seconds since the epoch.
        agent: The caller as it is registered, seen at `now` or up to a second before.
        unsaved: Whether there is unsaved work under a lease, by reservation id, as far as git was asked.

    Attributes:
        states: What `liveness` found out in this call, so that each process is asked about once.
    """

    __slots__ = ("agent", "now", "states", "tx", "unsaved")

    def __init__(
        self,
        ctx: Context,
        tx: "Transaction",
        now: float,
        agent: Agent,
        unsaved: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        super().__init__(ctx.runtime, ctx.caller)
        self.tx = tx
        self.now = now
        self.agent = agent
        self.unsaved = unsaved
        self.states: dict[str, Any] = {}

    def event(self, kind: str, /, **data: Any) -> None:
        """Queue an event for the journal of the caller's checkout; the values are JSON."""
        self.tx.add_event(self.caller.root, kind, json.dumps(data, sort_keys=True), self.now)

    def post(
        self,
        recipient: str,
        topic: str,
        body: str,
        *,
        thread_id: str = "",
        sender: str = "",
        importance: Importance = "normal",
        ack_required: bool = False,
    ) -> Message:
        """Put a message into an inbox, with its event; `tell` is for notices of the store.

        Args:
            recipient: An agent that is registered.
            topic: Its subject, or the type of its body.
            body: Text of at most `mailbox.MAX_BODY_BYTES`.
            thread_id: The conversation; a new one without.
            sender: Who writes; default: the caller.
        """
        draft = Message(
            0, thread_id or new_id("thr"), sender or self.agent.name, recipient, topic, importance,
            ack_required=ack_required, acked_at=None, body=body, sent_at=self.now, read_at=None,
        )  # fmt: skip
        message = self.tx.add_message(draft)
        named = {"message_id": message.message_id, "thread_id": message.thread_id, "sender": message.sender}
        self.event("message_sent", **named, recipient=recipient, topic=topic, importance=importance)
        return message

    def tell(
        self, recipient: str, topic: str, body: str, *, thread_id: str = "", importance: Importance = "high"
    ) -> Message:
        """Leave a notice of the store: `granted`, `passed-over`, `taken-over`, `ran-out`, `deadlock`, `forced`."""
        return self.post(recipient, topic, body, thread_id=thread_id, sender=HOUSE, importance=importance)


def new_id(kind: str) -> str:
    """Return `kind_` and 16 random hex digits."""
    return f"{kind}_{os.urandom(8).hex()}"
