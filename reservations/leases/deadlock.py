"""Who waits for whom: a circle of agents that wait for each other never ends by itself."""

import json
from collections.abc import Iterable, Sequence

from interlock.reservations.leases import granting, liveness, wait_queue
from interlock.reservations.leases.granting import Look
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.records import SYSTEM, key_of

TOPIC = "deadlock"


def circle(entry: Entry, waits_for: Iterable[str]) -> tuple[str, ...]:
    """Return the circle that the caller would close by waiting for some agents; empty for none.

    An agent waits for the holders of what is in the way of its places in the queue, for those in front of it there,
    and for the holder of a reservation that it negotiates for. The dead keep nobody waiting. The caller comes first,
    each waits for the next one, and the last for the caller.
    """
    me = key_of(entry.agent.name)
    names = {key_of(name): name for name in waits_for if _lives(entry, name)}
    came_from = dict.fromkeys(names, me)
    queue = list(names)
    for key in queue:
        for name in _edges(entry, names[key]):
            other = key_of(name)
            if other == me:
                path = [key]
                while path[-1] != me:
                    path.append(came_from[path[-1]])
                return (entry.agent.name, *(names[step] for step in path[-2::-1]))
            if other not in came_from:
                came_from[other], names[other] = key, name
                queue.append(other)
    return ()


def report(entry: Entry, members: Sequence[str]) -> None:
    """Notify all members but the caller of a circle, once for as long as it lasts."""
    others = [name for name in members if key_of(name) != key_of(entry.agent.name)]
    marks = sorted(mark for name in others for mark in _marks(entry, name))
    key = json.dumps([sorted(key_of(name) for name in members), marks])
    if entry.tx.remembered(SYSTEM, key) is not None:
        return
    entry.tx.remember(SYSTEM, key, TOPIC, "", entry.now)
    chain = " waits for ".join([*members, members[0]])
    for name in others:
        body = f"{chain}. Nobody of you can go on: release what another one needs, then reserve it again."
        entry.notify(name, TOPIC, body, importance="urgent")


def waited_for(looks: Iterable[Look]) -> list[str]:
    """Return the agents that are in the way, each once."""
    return list({key_of(held.agent): held.agent for found in looks for held in found.blockers}.values())


def _edges(entry: Entry, agent: str) -> list[str]:
    """Return the living agents that an agent waits for."""
    found: list[str] = []
    for waiter in wait_queue.places_of(entry, agent):
        looks = granting.look(entry, agent, granting.wanted_by(waiter), wait_queue.ahead(entry, agent, waiter))
        found += waited_for(looks)
    found += [
        asked.holder
        for asked in entry.tx.open_negotiations(requester=agent)
        if not asked.legacy and entry.tx.lease(asked.reservation_id) is not None
    ]
    return [name for name in found if _lives(entry, name)]


def _marks(entry: Entry, agent: str) -> list[str]:
    """Return what makes an agent wait now: a circle of the same agents at another time is another one."""
    places = [f"{waiter.waiter_id}" for waiter in wait_queue.places_of(entry, agent)]
    return places + [asked.thread_id for asked in entry.tx.open_negotiations(requester=agent)]


def _lives(entry: Entry, name: str) -> bool:
    return liveness.state(entry, name) == "alive"
