"""What the calls answer: JSON dictionaries, the same at every entry point. Times are ISO 8601 in UTC.

`rest` is there when an answer was too long for an agent: see `truncation.bounded`.
"""

from typing import Any, Literal, NotRequired, TypedDict

from interlock.core.finding import FindingJson


class LeaseInfo(TypedDict):
    """A lease as its holder and others see it."""

    reservation_id: str
    pattern: str
    exclusive: bool
    no_force: bool
    claim: bool
    holder: str
    reason: str
    token: int
    granted_at: str
    expires_at: str
    expires_in_seconds: int


class Conflict(TypedDict):
    """Why a pattern is not free, and whether its holder still works.

    `holder_state` is `alive`, `silent` (for longer than `dead_after_minutes`) or `gone` (its process has ended);
    `dirty`: whether files under the held pattern have uncommitted changes; null when that is not known.
    """

    pattern: str
    holder: str
    reservation_id: str
    held_pattern: str
    exclusive: bool
    reason: str
    holder_state: Literal["alive", "silent", "gone"]
    last_seen: str
    last_seen_seconds: int
    lease_age_seconds: int
    expires_at: str
    expires_in_seconds: int
    dirty: bool | None
    waiting: NotRequired[bool]


class Refusal(FindingJson):
    """One thing that was refused: the rule, the place, what was found, what was expected, and the fix."""

    place: str
    conflict: NotRequired[Conflict]
    next: NotRequired[dict[str, Any]]


class ReserveAnswer(TypedDict):
    """The answer of reserve_files. `errors` is empty exactly when every pattern was granted.

    `unsaved` is there when what you got had uncommitted changes before: `patterns`, how many `more`, a `note` in words,
    and `next` with the command that shows them.
    """

    reservations: list[LeaseInfo]
    errors: list[Refusal]
    taken_over: NotRequired[list[dict[str, Any]]]
    waiting: NotRequired[dict[str, Any]]
    release_requests: NotRequired[int]
    unsaved: NotRequired[dict[str, Any]]
    rest: NotRequired[dict[str, int]]


class ReleaseAnswer(TypedDict):
    """The answer of release_files: the ids that were released.

    `unsaved` is there when you gave up uncommitted changes: `patterns`, how many `more`, a `note` in words, and `next`
    with the call that takes them back.
    """

    released: list[str]
    errors: list[Refusal]
    unsaved: NotRequired[dict[str, Any]]
    rest: NotRequired[dict[str, int]]


class ReleaseAllAnswer(TypedDict):
    """The answer of release_all; `unsaved`: see release_files."""

    released_count: int
    unsaved: NotRequired[dict[str, Any]]


class ConflictsAnswer(TypedDict):
    """The answer of check_conflicts: what is in the way, and the given patterns that are clear."""

    conflicts: list[Conflict]
    clear: list[str]
    errors: list[Refusal]
    rest: NotRequired[dict[str, int]]


class MineAnswer(TypedDict):
    """The answer of my_reservations: active leases only."""

    reservations: list[LeaseInfo]
    rest: NotRequired[dict[str, int]]


class SentAnswer(TypedDict):
    """The answer of send_message."""

    sent: bool
    message_id: NotRequired[int]
    thread_id: NotRequired[str]
    errors: list[Refusal]


MessageInfo = TypedDict(
    "MessageInfo",
    {
        "message_id": int,
        "from": str,
        "thread_id": str,
        "topic": str,
        "importance": str,
        "ack_required": bool,
        "acked_at": NotRequired[str],
        "body": str,
        "sent_at": str,
        "settled": NotRequired[str],
    },
)
"""A message as its reader gets it; `acked_at` is when a request was answered. `body` is text, of a typed message a
JSON object as text. `settled` says what became of a request."""


class InboxAnswer(TypedDict):
    """The answer of fetch_inbox: `next_cursor` is null when nothing is left."""

    messages: list[MessageInfo]
    next_cursor: int | None
    negotiation_timeouts: list[dict[str, Any]]
    errors: list[Refusal]


class AgentsAnswer(TypedDict):
    """The answer of list_agents; each has name, kind, state, last_seen, last_seen_seconds, leases."""

    agents: list[dict[str, Any]]
    rest: NotRequired[dict[str, int]]


class RequestAnswer(TypedDict):
    """The answer of request_release, which is deprecated."""

    sent: bool
    thread_id: str | None
    deprecated: str
    errors: list[Refusal]


class NegotiateAnswer(TypedDict):
    """The answer of negotiate_release; `thread_id` is null when the file is free or the call was refused."""

    thread_id: str | None
    status: Literal["pending", "release", "defer", "timeout", "free", "refused"]
    holder: NotRequired[Conflict]
    eta_minutes: NotRequired[int]
    reason: NotRequired[str]
    reservations: NotRequired[list[LeaseInfo]]
    deadlock: NotRequired[list[str]]
    next: NotRequired[dict[str, Any]]
    errors: list[Refusal]


class RespondAnswer(TypedDict):
    """The answer of respond_to_release; `resolved_at` is there when the request was settled before this call.

    `unsaved`: see release_files.
    """

    thread_id: str
    status: Literal["released", "deferred", "free", "refused"]
    released: list[str]
    eta_minutes: NotRequired[int]
    resolved_at: NotRequired[str]
    unsaved: NotRequired[dict[str, Any]]
    errors: list[Refusal]
    rest: NotRequired[dict[str, int]]


class StatusAnswer(TypedDict):
    """What `interlock status` shows of the reservations.

    `disturbed` is there when others changed held files: what was put back (`why` is `undone`) or kept twice (`both`),
    in words `what`, by `version`, `path`, `root`, `holders`, `others` and `at`.
    `settings` has what is wrong with `[reservations]` of the configuration.
    """

    leases: list[dict[str, Any]]
    waiters: list[dict[str, Any]]
    negotiations: list[dict[str, Any]]
    disturbed: NotRequired[list[dict[str, Any]]]
    rest: NotRequired[dict[str, int]]
    settings: NotRequired[list[dict[str, Any]]]
