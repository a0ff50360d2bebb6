"""Typed bodies: what a message of the negotiation says that a program reads; the topic of such a message is its type.

The source spells two of them with an underscore (Negotiation PRD F1) and with a hyphen (Reservation Tools); here it is
the hyphen. Only the tools of the negotiation send them: one that was written by hand could be taken for what the store
has done.
"""

from typing import Final

from interlock.core.json import compact

RELEASE_REQUEST: Final = "release-request"
RELEASE_ACK: Final = "release-ack"
RELEASE_DEFER: Final = "release-defer"
TYPES: Final = (RELEASE_REQUEST, RELEASE_ACK, RELEASE_DEFER)

THREAD: Final = "neg"
"""The kind of thread that a negotiation is; no message of an agent's own making gets onto one."""

URGENCIES: Final = ("low", "normal", "urgent")
MAX_ETA_MINUTES: Final = 1440


def request(
    file: str, reason: str, requester: str, urgency: str, thread_id: str, reservation_id: str, *, legacy: bool = False
) -> str:
    """Return the body of a release-request (Negotiation PRD F1, F3); a legacy one has the field `pattern`."""
    named = {"pattern" if legacy else "file": file}
    rest = {"requester": requester, "urgency": urgency, "thread_id": thread_id, "reservation_id": reservation_id}
    return compact({"type": RELEASE_REQUEST, **named, "reason": reason, **rest})


def ack(file: str, released_by: str, reason: str = "") -> str:
    """Return the body of a release-ack (Negotiation PRD F1); `reason` is `timeout` when it was taken."""
    why = {"reason": reason} if reason else {}
    return compact({"type": RELEASE_ACK, "file": file, "released": True, "released_by": released_by, **why})


def defer(file: str, eta_minutes: int, reason: str) -> str:
    """Return the body of a release-defer (Negotiation PRD F1)."""
    fields = {"file": file, "released": False, "eta_minutes": eta_minutes, "reason": reason}
    return compact({"type": RELEASE_DEFER, **fields})
