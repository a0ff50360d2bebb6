"""Typed bodies: what a message says that a program reads. One row per type; the topic of such a message is its type.

The source spells two of them with an underscore (Negotiation PRD F1) and with a hyphen (Reservation Tools); written
is the hyphen, read are both.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

from interlock.core.json import compact
from interlock.reservations.answers import Refusal
from interlock.reservations.rules import refuse

RELEASE_REQUEST: Final = "release-request"
RELEASE_ACK: Final = "release-ack"
RELEASE_DEFER: Final = "release-defer"

URGENCIES: Final = ("low", "normal", "urgent")
MAX_ETA_MINUTES: Final = 1440
MAX_REASON_BYTES: Final = 500
"""Of a request or an answer: a typed body always fits into a message."""


class Field(NamedTuple):
    """One field of a typed body.

    Args:
        kind: A key of `_FITS`.
        required: It must be there; of several rows with the same `either`, one must.
        either: The group of fields of which one is enough.
    """

    name: str
    expected: str
    kind: str
    required: bool = True
    either: str = ""


def is_whole(value: object, low: int, high: int) -> bool:
    """Return whether a value is a whole number in bounds; true and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return low <= value <= high and value == int(value)


_FITS: Final[Mapping[str, Callable[[object], bool]]] = {
    "name": lambda value: isinstance(value, str) and bool(value.strip()),
    "text": lambda value: isinstance(value, str),
    "urgency": lambda value: value in URGENCIES,
    "true": lambda value: value is True,
    "false": lambda value: value is False,
    "minutes": lambda value: is_whole(value, 1, MAX_ETA_MINUTES),
}
"""Kind of a field to the check of its values."""
TYPES: Final[Mapping[str, tuple[Field, ...]]] = {
    RELEASE_REQUEST: (
        Field("file", "a path or pattern", "name", either="file"),
        Field("pattern", "a path or pattern", "name", either="file"),
        Field("reason", "a text", "text"),
        Field("requester", "the name of an agent", "name"),
        Field("urgency", "low, normal or urgent", "urgency", required=False),
        Field("thread_id", "a thread id", "name", required=False),
        Field("reservation_id", "a reservation id", "name", required=False),
    ),
    RELEASE_ACK: (
        Field("file", "a path or pattern", "name"),
        Field("released", "true", "true"),
        Field("released_by", "the name of an agent", "name"),
        Field("reason", "a text", "text", required=False),
    ),
    RELEASE_DEFER: (
        Field("file", "a path or pattern", "name"),
        Field("released", "false", "false"),
        Field("eta_minutes", f"a whole number from 1 to {MAX_ETA_MINUTES}", "minutes"),
        Field("reason", "a text", "text"),
    ),
}  # fmt: skip
"""Type to the fields of its body."""

CLAIMS: Final = frozenset({"released", "released_by", "eta_minutes", "requester"})
"""A JSON object with one of these reads like a typed body: Negotiation PRD F1 gives those no field `type`."""

SPEAKERS: Final = {RELEASE_REQUEST: "requester", RELEASE_ACK: "released_by"}
"""The field of a type that names who speaks: the sender, and nobody else."""


ANSWERS: Final = {
    RELEASE_REQUEST: "negotiate_release", RELEASE_ACK: "respond_to_release", RELEASE_DEFER: "respond_to_release",
}  # fmt: skip
"""The tool that sends a body of a type."""


def type_of(name: object) -> str:
    """Return the type that a topic or the field `type` names, in any case and spelling; empty when it names none."""
    spelled = name.strip().casefold().replace("_", "-") if isinstance(name, str) else ""
    return spelled if spelled in TYPES else ""


def read(body: str) -> dict[str, Any] | None:
    """Return a typed body with its `type` written with hyphens; None when the body is not a typed one, whole or not."""
    fields = _fields(body)
    kind = type_of(None if fields is None else fields.get("type"))
    return fields | {"type": kind} if fields is not None and kind else None


def reads_like_one(body: str) -> bool:
    """Return whether a reader may take a body for a typed one, though nothing names its type."""
    return any(name.strip().casefold() in CLAIMS for name in _fields(body) or ())


def _fields(body: str) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def problem(kind: str, body: str, speaker: str) -> Refusal | None:
    """Return the first thing that is wrong with a body of a type; nobody speaks for another than the speaker."""
    fix = f"Fix the field, or use {ANSWERS[kind]}: a {kind} sent by hand moves nothing."

    def wrong(place: str, message: str, found: object, expected: str) -> Refusal:
        return refuse("RSV302", message, place=place, found=found, expected=expected, fix=fix)

    fields = _fields(body)
    if fields is None:
        return wrong("body", f"A {kind} has a JSON object as its body.", body, "a JSON object")
    if "type" in fields and type_of(fields["type"]) != kind:
        return wrong("body.type", f"The topic says {kind}, the body another type.", fields["type"], kind)
    for row in TYPES[kind]:
        if row.name in fields and not _FITS[row.kind](fields[row.name]):
            text = f"`{row.name}` of a {kind} has the wrong value."
            return wrong(f"body.{row.name}", text, fields[row.name], row.expected)
        # Another field of the same group replaces a missing one.
        group = [row] if not row.either else [other for other in TYPES[kind] if other.either == row.either]
        if row.required and not any(other.name in fields for other in group):
            return wrong(f"body.{row.name}", f"`{row.name}` of a {kind} is missing.", "nothing", row.expected)
    named = fields.get(SPEAKERS.get(kind, ""), speaker)
    if str(named).casefold() != speaker.casefold():
        return wrong(f"body.{SPEAKERS[kind]}", "The body speaks for another agent.", named, speaker)
    return None


def request(file: str, reason: str, requester: str, urgency: str, thread_id: str, reservation_id: str, *,
            legacy: bool = False) -> str:  # fmt: skip
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
