"""What the edit hook does about release requests that wait for its agent (Negotiation PRD F2, Reservation Tools).

`INTERLOCK_AUTO_RELEASE` decides: without it a new request is mentioned; `1` shows each with the call to make, and those
whose time ran out; `clean` hands over what has no uncommitted change and says so.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast

from interlock.core.patterns import covers
from interlock.core.record import Record
from interlock.reservations.errors import ReservationError
from interlock.reservations.leases import calls, granting
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.rules import shown
from interlock.reservations.store.records import Lease, Negotiation, replace

VARIABLE: Final = "INTERLOCK_AUTO_RELEASE"
MAX_SHOWN: Final = 5
"""At most this many requests are spelled out; the inbox has the others."""
_PAGE: Final = 50

Mode: TypeAlias = Literal["", "1", "clean"]


class Waiting(Record):
    """What waits for an agent when its edit hook looks.

    Args:
        open: The requests that it has not resolved, the oldest first, each with the leases that a release would end:
            the one that it is about, and the agent's others that overlap the file.
        new: The threads of those that the hook has not mentioned yet.
        overdue: Those whose time limit has passed, with the minutes since then.
    """

    own: tuple[str, ...]
    open: tuple[tuple[Negotiation, tuple[Lease, ...]], ...]
    new: frozenset[str]
    overdue: Mapping[str, int]


def mode_of(env: Mapping[str, str]) -> Mode:
    """Return what `INTERLOCK_AUTO_RELEASE` says; `0` and `off` are nothing."""
    value = env.get(VARIABLE, "").strip().lower()
    if value in {"", "0", "off"}:
        return ""
    if value in {"1", "clean"}:
        return cast("Mode", value)
    raise ReservationError(f"{VARIABLE} is {shown(value)}.", f"Set {VARIABLE} to 1 or clean, or unset it.", "RSV904")


def look(entry: Entry) -> Waiting:
    """Return what waits for the agent, and remember what is new as mentioned (`Agent.cursor`)."""
    held = {lease.reservation_id: lease for lease in entry.tx.leases_of(entry.agent.name)}
    own = tuple(lease.pattern for lease in held.values())
    asked = [row for row in entry.tx.open_negotiations(holder=entry.agent.name) if row.reservation_id in held]
    if not asked:
        return Waiting(own, (), frozenset(), {})
    from interlock.reservations.messages.bodies import RELEASE_REQUEST  # noqa: PLC0415 - few edits meet one

    unread = entry.tx.inbox(entry.agent.name, after=entry.agent.cursor, unread_only=True, limit=_PAGE)
    new = frozenset(message.thread_id for message in unread if message.topic == RELEASE_REQUEST)
    if unread:
        entry.tx.put_agent(replace(entry.agent, cursor=unread[-1].message_id))
    overdue = {
        row.thread_id: int((entry.now - row.deadline) // 60)
        for row in asked
        if row.deadline is not None and row.deadline <= entry.now
    }
    return Waiting(own, tuple((row, tuple(granting.on_file(entry, row))) for row in asked), new, overdue)


def message(waiting: Waiting, mode: Mode) -> str:
    """Return what the agent is told of what waits; empty when there is nothing new."""
    fresh = [row for row, _ in waiting.open if row.thread_id in waiting.new or row.thread_id in waiting.overdue]
    if mode == "1":
        return "\n".join(spelled(waiting, fresh))
    fresh = [row for row in fresh if row.thread_id in waiting.new]
    if not fresh:
        return ""
    count = len(waiting.open)
    wait = "1 release request waits" if count == 1 else f"{count} release requests wait"
    return f"Interlock: {wait} for your answer: call fetch_inbox(), then respond_to_release(…)."


def spelled(waiting: Waiting, rows: Sequence[Negotiation]) -> list[str]:
    """Return requests as lines, each with the calls that answer it."""
    lines = [line for row in rows[:MAX_SHOWN] for line in _request(row, waiting.overdue.get(row.thread_id))]
    if len(rows) > MAX_SHOWN:
        lines.append(f"Interlock: {len(rows) - MAX_SHOWN} more requests wait: call fetch_inbox().")
    return lines


def _request(row: Negotiation, minutes_over: int | None) -> list[str]:
    late = "" if minutes_over is None else f" Its time ran out {minutes_over} min ago."
    reason = f": {shown(row.reason)}" if row.reason else ""
    call = f'respond_to_release(thread_id="{row.thread_id}", action='
    return [
        f"Interlock: {shown(row.requester)} asks you to release {shown(row.file)} ({row.urgency}){reason}.{late}",
        f'  done with it: {call}"release")',
        f'  need it: {call}"defer", eta_minutes=…, reason="…")',
    ]


def hand_over(ctx: Context, edited: Sequence[str]) -> str:
    """Hand over, in order, whole leases without uncommitted changes, and return the message for the agent.

    What git does not know is kept, and so are the files that this call edits, `edited` by pattern. Git is asked between
    transactions.
    """
    with calls.entered(ctx) as entry:
        waiting = look(entry)
    if not waiting.open:
        return ""
    from interlock.reservations.messages import response  # noqa: PLC0415 - only when something was asked for

    dirty = ctx.runtime.dirty(
        ctx.caller.root, tuple(dict.fromkeys(lease.pattern for _, held in waiting.open for lease in held))
    )
    lines: list[str] = []
    kept: list[Negotiation] = []
    gone: set[str] = set()
    for row, held in waiting.open:
        if row.reservation_id in gone:
            continue
        touched = any(covers(lease.pattern, pattern) for lease in held for pattern in edited)
        if touched or any(dirty.get(lease.pattern) is not False for lease in held):
            kept.append(row)
            continue
        answer = response.respond(ctx, row.thread_id, "release", report_unsaved=False)
        if answer["status"] in {"released", "free"}:
            gone.update(lease.reservation_id for lease in held)
            names = ", ".join(shown(lease.pattern) for lease in held)
            lines.append(
                f"Interlock: released {names}, without uncommitted changes: {shown(row.requester)} asked for "
                f"{shown(row.file)}. Reserve it again before you edit it."
            )
        else:
            kept.append(row)
    reported = [row for row in kept if row.thread_id in waiting.new or row.thread_id in waiting.overdue]
    return "\n".join([*lines, *spelled(waiting, reported)])
