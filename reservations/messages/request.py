"""The arguments of a request and of its answer: what an agent sent, read and judged before the store is asked."""

from typing import Final, NamedTuple, cast

from interlock.core.json import compact
from interlock.reservations.answers import Refusal
from interlock.reservations.leases import arguments
from interlock.reservations.leases.arguments import wrong
from interlock.reservations.leases.runtime import Caller, Context
from interlock.reservations.messages import bodies, mailbox
from interlock.reservations.patterns import Pattern
from interlock.reservations.rules import refuse, refused
from interlock.reservations.store.records import Urgency

MAX_NAME_BYTES: Final = 400
MAX_REASON_ESCAPED: Final = 700
"""Of a reason inside a typed body inside an answer: JSON in JSON, where a quote takes four bytes."""

SPARE_BYTES: Final = 50
"""What an answer may be longer than its request by, besides its reason."""


class Ask(NamedTuple):
    """What is asked of a holder, or with no `agent_name` of whoever holds it; `urgency` sets the time limit."""

    pattern: Pattern
    reason: str
    urgency: Urgency
    agent_name: str
    wait_seconds: float
    legacy: bool = False


def read_ask(
    ctx: Context, file: object, reason: object, *, urgency: object = "normal",
    agent_name: object = None, wait_seconds: object = 0, legacy: bool = False,
) -> Ask | list[Refusal]:  # fmt: skip
    """Return what is asked, or everything that is wrong with it."""
    most = ctx.runtime.settings.max_wait_seconds
    place = "pattern" if legacy else "file"
    pattern = read_pattern(ctx, file, place)
    rows = (
        _reason(reason),
        _choice("urgency", urgency, bodies.URGENCIES),
        None if agent_name is None and not legacy else _name(agent_name),
        *arguments.number("wait_seconds", wait_seconds, 0),
    )
    errors = [row for row in (pattern, *rows) if row is not None and not isinstance(row, Pattern)]
    if errors:
        return errors
    assert isinstance(pattern, Pattern)
    level = cast("Urgency", urgency)
    seconds = float(min(cast("float", wait_seconds), most))
    ask = Ask(pattern, str(reason), level, str(agent_name or ""), seconds, legacy)
    return _too_long(ctx.caller, ask, place) or ask


def read_answer(action: object, eta_minutes: object, reason: object) -> list[Refusal]:
    """Return what is wrong with an answer: `defer` says in how many whole minutes (RSV306)."""
    errors = [_choice("action", action, ("release", "defer")), None if reason is None else _reason(reason)]
    if action == "defer" and not bodies.is_whole(eta_minutes, 1, bodies.MAX_ETA_MINUTES):
        errors.append(
            refuse(
                "RSV306",
                "A deferral says in how many minutes the file will be free.",
                place="eta_minutes",
                found="nothing" if eta_minutes is None else eta_minutes,
                expected=f"a whole number from 1 to {bodies.MAX_ETA_MINUTES}",
                fix='Send action="defer" with eta_minutes, for example 10.',
            )
        )
    return [error for error in errors if error is not None]


def read_thread(thread_id: object) -> Refusal | None:
    """Return what is wrong with a thread id as such."""
    good = isinstance(thread_id, str) and thread_id.isascii()
    return None if good else unknown_thread(thread_id)


def unknown_thread(thread_id: object) -> Refusal:
    """Return the refusal of a thread id that names no negotiation."""
    return refuse(
        "RSV304", "There is no negotiation with this thread id.", place="thread_id", found=thread_id,
        expected="the thread_id of a release-request in your inbox",
        fix="Take it from fetch_inbox, without changing it.",
        next={"tool": "fetch_inbox", "arguments": {"unread_only": False}},
    )  # fmt: skip


def read_pattern(ctx: Context, text: object, place: str) -> Pattern | Refusal:
    """Return a path or pattern in canonical form, or what is wrong with it."""
    if not isinstance(text, str):
        return wrong(place, text, "a path or pattern as text", "Name one file, relative to the repository root.")
    found = arguments.typed(ctx, text)
    return found if isinstance(found, Pattern) else refused(found, place)


def _reason(reason: object) -> Refusal | None:
    length = mailbox.byte_length(reason) if isinstance(reason, str) else None
    escaped = 0 if length is None else mailbox.size(compact({"": reason}))
    if length is not None and length <= bodies.MAX_REASON_BYTES and escaped <= MAX_REASON_ESCAPED:
        return None
    expected = f"a text of at most {bodies.MAX_REASON_BYTES} bytes, with few quotes, line ends and backslashes"
    found = reason if length is None else f"{length} bytes"
    return wrong("reason", found, expected, "Say it in a sentence; send_message carries more.")


def _name(name: object) -> Refusal | None:
    length = mailbox.byte_length(name) if isinstance(name, str) and name.strip() else None
    if length is not None and length <= MAX_NAME_BYTES:
        return None
    return refuse(
        "RSV301", "`agent_name` names nobody.", place="agent_name", found=name, expected="the name of one agent",
        fix="check_conflicts says who holds a file, list_agents who is here.",
        next={"tool": "list_agents", "arguments": {}},
    )  # fmt: skip


def _choice(place: str, value: object, known: tuple[str, ...]) -> Refusal | None:
    if isinstance(value, str) and value in known:
        return None
    listed = " or ".join(known)
    return wrong(place, value, listed, f"Send one of {listed}.")


def _too_long(caller: Caller, ask: Ask, place: str) -> list[Refusal]:
    """Refuse what would not fit into a message, the longest answer to it included."""
    thread = f"neg_{'0' * 16}"
    body = bodies.request(ask.pattern.text, "", caller.name, ask.urgency, thread, thread, legacy=ask.legacy)
    spare = MAX_REASON_ESCAPED + SPARE_BYTES
    length = mailbox.size_of_message(caller.name, bodies.RELEASE_REQUEST, body, thread) + spare
    if length <= mailbox.MAX_MESSAGE_BYTES and len(body.encode()) + spare <= mailbox.MAX_BODY_BYTES:
        return []
    return [
        refuse(
            "RSV302",
            "What is asked for is too long for a message.",
            place=place,
            found=f"{len(ask.pattern.text.encode())} bytes",
            expected="a path or pattern that fits into a message, about 900 bytes",
            fix="Ask for one file, or for a shorter pattern.",
        )
    ]
