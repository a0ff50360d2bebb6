"""The current state: the agents, what `interlock status` shows of the reservations, joining and leaving."""

import math
from collections import Counter
from typing import Any, Final

from interlock.reservations import place
from interlock.reservations.answers import AgentsAnswer, StatusAnswer
from interlock.reservations.leases import calls, liveness, wait_queue
from interlock.reservations.leases.runtime import Context, Entry
from interlock.reservations.leases.views import lease_info
from interlock.reservations.messages import escalation
from interlock.reservations.store.records import Agent, Lease, Negotiation, Waiter, iso, key_of
from interlock.reservations.versions import recovery

LATELY_SECONDS: Final = 24 * 3600
"""How long an agent without a lease is listed after it was last seen."""

DEFAULT_MINUTES: Final = 60.0

RESOLVED: Final = {
    "released": "its holder released it",
    "forced": "its time ran out and it was taken",
    "free": "the reservation ended",
    "withdrawn": "its requester left",
}
"""How a negotiation came to its end."""


def list_agents(ctx: Context) -> AgentsAnswer:
    """Return the agents seen in the last day or holding a lease, the one seen last first.

    Each has `name, kind, state, last_seen, last_seen_seconds, leases`.
    """
    with calls.entered(ctx) as entry:
        held = Counter(key_of(lease.agent) for lease in entry.tx.leases())
        rows = [
            _agent(entry, agent, held[key_of(agent.name)])
            for agent in entry.tx.agents()
            if key_of(agent.name) in held or entry.now - agent.last_seen <= LATELY_SECONDS
        ]
        return {"agents": rows}


def current_state(ctx: Context, since_minutes: float = DEFAULT_MINUTES) -> StatusAnswer:
    """Return the leases, the queue, and the negotiations that are open or recent (Negotiation PRD F4).

    Leases come with the newest first, the queue in its order, of the negotiations the open ones first and the newest
    first among each. Looking does not register an agent.

    Args:
        since_minutes: How far back resolved negotiations are shown.
    """
    with calls.seen(ctx) as entry:
        queue = entry.tx.waiters()
        held = entry.tx.leases()[::-1]
        since = entry.now - since_minutes * 60
        # What is open is shown however old it is; one that was resolved before is left out.
        recent = [row for row in entry.tx.negotiations_since(since) if (row.resolved_at or entry.now) >= since]
        recent.sort(key=lambda row: (row.resolved_at is not None, -row.created_at))
        answer: StatusAnswer = {
            "leases": [_lease(entry, lease) for lease in held],
            "waiters": [_waiter(entry, waiter, position) for position, waiter in enumerate(queue, 1)],
            "negotiations": [_negotiation(entry, row) for row in recent],
        }
    if rows := recovery.disturbed(place.at(ctx.caller.root), since):
        answer["disturbed"] = rows
    return answer


def join(ctx: Context) -> dict[str, Any]:
    """Register the caller and bind its process to it.

    The answer has `name, kind, leases, unread`, `requests` (open ones that the caller has to answer) and `waiting_for`
    (its places in the queue).
    """
    with calls.entered(ctx) as entry:
        name = entry.agent.name
        asked = entry.tx.open_negotiations(holder=name)
        queue = list(enumerate(entry.tx.waiters(), 1))
        return {
            "name": name,
            "kind": entry.agent.kind,
            "leases": [lease_info(lease, entry.now) for lease in entry.tx.leases_of(name)],
            "unread": entry.tx.unread_count(name),
            "requests": [_negotiation(entry, row) for row in asked],
            "waiting_for": [_waiter(entry, row, place) for place, row in queue if key_of(row.agent) == key_of(name)],
        }


def leave(ctx: Context) -> dict[str, Any]:
    """Release everything of the caller, take back its requests and its places in the queue, and unbind its process.

    The agent and its messages stay: it may come back under its name. The answer has `name`, `released_count` and
    `withdrawn` (how many requests were taken back).
    """
    with calls.entered(ctx) as entry:
        name = entry.agent.name
        wait_queue.leave_all(entry, "its agent left")
        asked = entry.tx.open_negotiations(requester=name)
        for row in asked:
            escalation.resolve(entry, row, "withdrawn")
        own = entry.tx.leases_of(name)
        calls.end(entry, own, "released")
        if ctx.caller.pid is not None:
            entry.tx.bind_process(ctx.caller.host, ctx.caller.pid, ctx.caller.started, "", entry.now)
        entry.event("agent_left", agent=name, released_count=len(own), withdrawn=len(asked))
        return {"name": name, "released_count": len(own), "withdrawn": len(asked)}


def leave_queue(ctx: Context, text: str) -> bool:
    """Take the caller out of the queue for a canonical pattern, with its request; return whether it was there."""
    with calls.entered(ctx) as entry:
        places = [row for row in wait_queue.places_of(entry, entry.agent.name) if text in row.patterns]
        for row in places:
            wait_queue.leave(entry, row, "its agent left the queue")
        for asked in entry.tx.open_negotiations(requester=entry.agent.name) if places else ():
            if asked.file == text:
                escalation.resolve(entry, asked, "withdrawn")
        wait_queue.settle(entry)
        return bool(places)


def _agent(entry: Entry, agent: Agent, held: int) -> dict[str, Any]:
    return {
        "name": agent.name,
        "kind": agent.kind,
        "state": liveness.state(entry, agent.name),
        "last_seen": iso(agent.last_seen),
        "last_seen_seconds": max(0, int(entry.now - agent.last_seen)),
        "leases": held,
    }


def _lease(entry: Entry, lease: Lease) -> dict[str, Any]:
    agent = entry.tx.agent(lease.agent)
    last_seen = lease.renewed_at if agent is None else agent.last_seen
    return {
        **lease_info(lease, entry.now),
        "holder_state": liveness.state(entry, lease.agent),
        "last_seen": iso(last_seen),
        "last_seen_seconds": max(0, int(entry.now - last_seen)),
        "age_seconds": max(0, int(entry.now - lease.granted_at)),
    }


def _waiter(entry: Entry, waiter: Waiter, position: int) -> dict[str, Any]:
    return {
        "position": position,
        "agent": waiter.agent,
        "state": liveness.state(entry, waiter.agent),
        "patterns": list(waiter.patterns),
        "exclusive": waiter.exclusive,
        "reason": waiter.reason,
        "since": iso(waiter.since),
        "waiting_seconds": max(0, int(entry.now - waiter.since)),
        "until": iso(waiter.until),
    }


def _negotiation(entry: Entry, row: Negotiation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "thread_id": row.thread_id,
        "requester": row.requester,
        "holder": row.holder,
        "file": row.file,
        "pattern": row.pattern,
        "reservation_id": row.reservation_id,
        "reason": row.reason,
        "urgency": row.urgency,
        "state": row.state,
        "resolved": row.resolved_at is not None,
        "age_minutes": max(0, int((entry.now - row.created_at) // 60)),
        "created_at": iso(row.created_at),
        "eta_minutes": row.eta_minutes,
        "minutes_left": None,
        "expired": escalation.is_over(row, entry.now),
        **escalation.acknowledgement(entry, row.thread_id),
    }
    if row.resolved_at is not None:
        return shown | {"resolved_at": iso(row.resolved_at), "how": RESOLVED[row.state], "note": row.note}
    if row.deadline is not None:
        left = (row.deadline - entry.now) / 60
        shown["minutes_left"] = math.ceil(left) if left > 0 else math.floor(left)
    return shown | ({"note": row.note} if row.note else {})
