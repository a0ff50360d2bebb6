"""The records that the store keeps: agents, leases, waiters, messages, negotiations, events.

Times are seconds since the epoch (UTC). Names of agents are compared by `key_of`; records hold the name as it was
first given.

They are tuples with names, whose classes are made in an instant: see `core.record`.
"""

import time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from interlock.core.record import Record

if TYPE_CHECKING:
    from typing import Protocol

    class _Record(Protocol):
        def _replace(self, **changes: Any) -> Any: ...


AgentKind: TypeAlias = Literal["agent", "person"]
Urgency: TypeAlias = Literal["low", "normal", "urgent"]
Importance: TypeAlias = Literal["low", "normal", "high", "urgent"]
NegotiationState: TypeAlias = Literal["pending", "deferred", "released", "forced", "free", "withdrawn"]
"""`pending` and `deferred` are open; the others are resolved. `forced`: taken after its time ran out; `free`: the
reservation ended otherwise, by expiry or takeover; `withdrawn`: its requester no longer asks."""

SYSTEM: Final = "interlock"
"""The sender of notices that the store itself writes; no agent may have this name."""

MAX_NAME_CHARS: Final = 100
"""How long the name of an agent may be."""


def key_of(name: str) -> str:
    """Return what a name is compared by: those that differ in case, or in their Unicode form alone, are one agent."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize  # noqa: PLC0415 - most names are ASCII

    return normalize("NFC", normalize("NFC", name).casefold())


def iso(at: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


RecordT = TypeVar("RecordT", bound="_Record")


def replace(record: RecordT, /, **changes: Any) -> RecordT:
    """Return a record with some fields changed."""
    return record._replace(**changes)  # pyright: ignore[reportPrivateUsage] - for records and `Runtime`


class Agent(Record):
    """Who may hold leases.

    Args:
        kind: `person` for `user@host`: silence alone does not make a person dead.
        pid: Its process: the client (Claude Code, a shell, …), not one of our short-lived programs; None when unknown.
        started: When it started, which distinguishes it from a later one of the same number; empty when unknown.
        client: What it came through first: `mcp`, `http`, `hook`, `cli`, `git`, `run`.
        cursor: The last message that its edit hook has shown to it.
    """

    name: str
    kind: AgentKind
    host: str
    pid: int | None
    started: str
    client: str
    joined_at: float
    last_seen: float
    cursor: int = 0


class Lease(Record):
    """One pattern held by one agent.

    Args:
        reservation_id: `rsv_` and 16 hex digits.
        prefix: The literal beginning of the pattern that the index uses; see `Pattern.prefix`.
        exclusive: Nobody else may hold an overlapping lease; shared leases overlap each other.
        no_force: Never taken by escalation.
        claim: Granted to somebody who waited and may be gone: short, until its holder reserves again.
        token: The fencing token: rises with every grant in the store.
        expires_at: From then on it is void.
        held_until: Until then its holder acts under it (`fencing.guarded`), and it is taken from nobody but the gone.
        root: The checkout that its holder works in: of several worktrees the one whose files are meant; empty: unknown.
        branch: What HEAD there was when it was granted: the full name of a branch, or a commit; empty: unknown.
    """

    reservation_id: str
    agent: str
    pattern: str
    prefix: str
    exclusive: bool
    no_force: bool
    claim: bool
    reason: str
    token: int
    granted_at: float
    renewed_at: float
    expires_at: float
    held_until: float = 0.0
    root: str = ""
    branch: str = ""


class Waiter(Record):
    """One place in the queue, first come, first served: all its patterns are granted together.

    Args:
        waiter_id: Rises; the order of the queue.
        patterns: In canonical form, sorted.
        until: When its place is given up; asking again moves it on.
    """

    waiter_id: int
    agent: str
    patterns: tuple[str, ...]
    exclusive: bool
    no_force: bool
    reason: str
    ttl_seconds: float
    since: float
    until: float


class Message(Record):
    """One message to one agent.

    Args:
        message_id: Rises; the cursor of an inbox.
        sender: Who wrote it; `interlock` for notices of the store itself.
        topic: A short subject; `release-request` and the like for typed bodies.
        ack_required: An answer is expected.
        acked_at: When it was answered; None before.
        body: Text; of a typed message, a JSON object.
        read_at: When `fetch_inbox` returned it; None before.
    """

    message_id: int
    thread_id: str
    sender: str
    recipient: str
    topic: str
    importance: Importance
    ack_required: bool
    acked_at: float | None
    body: str
    sent_at: float
    read_at: float | None


class Negotiation(Record):
    """One request for the release of one reservation; it is pinned to that reservation's id.

    Args:
        thread_id: `neg_` and 16 hex digits.
        file: What is asked for: a path or a pattern that overlaps `pattern`.
        urgency: Sets the time limit.
        legacy: Made by `request_release`: never times out.
        note: The reason of the answer.
        deadline: When it times out; None for never. A deferral moves it to its ETA.
    """

    thread_id: str
    reservation_id: str
    pattern: str
    holder: str
    requester: str
    file: str
    reason: str
    urgency: Urgency
    legacy: bool
    state: NegotiationState
    eta_minutes: int | None
    note: str
    created_at: float
    deadline: float | None
    resolved_at: float | None


class Event(Record):
    """Something that happened, on its way into the journal of a checkout.

    Args:
        event_id: Rises; with the store's id it makes the key of the journal line.
        type: The kind: `lease_granted`, `lease_released`, …
        data: JSON of the event's data.
    """

    event_id: int
    root: str
    type: str
    data: str
    at: float
