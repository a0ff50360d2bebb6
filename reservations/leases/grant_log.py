"""Who was granted a pattern, one after the other: so that an agent that comes back to a file learns what it missed.

The rows are kept beside remembered answers, in the name of the store and under keys that no agent can write.
"""

import json
from typing import Final, NamedTuple, TypeAlias, cast

from interlock.reservations import patterns
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.records import SYSTEM, Lease, key_of

KEPT: Final = 8
"""At most this many changes of hands of a pattern are remembered, for as long as answers are."""

_PREFIX: Final = "\x1fholders "
_RAN_OUT: Final = "\x1fran out "

_Turn: TypeAlias = tuple[float, str]
"""When an agent was first granted a pattern after somebody else, and its name."""


class Turn(NamedTuple):
    """Who had a pattern, and when its lease ran out; None when it has not ended, or ended otherwise."""

    agent: str
    ran_out: float | None


class Missed(NamedTuple):
    """What an agent missed that held a file, and then others did.

    Args:
        others: Who held it since, the first one first.
        begun: When the first of them got it.
        back: When the agent got it again; None when it has not.
    """

    others: tuple[str, ...]
    begun: float
    back: float | None


def record(entry: Entry, lease: Lease) -> None:
    """Remember that a lease was granted; an agent that has it again with nobody in between changes nothing."""
    turns = _turns(entry, lease.pattern)
    if turns and key_of(turns[-1][1]) == key_of(lease.agent):
        return
    rows = [*turns, (entry.now, lease.agent)][-KEPT:]
    entry.tx.remember(SYSTEM, _key(lease.pattern), "", json.dumps(rows), entry.now)


def ran_out(entry: Entry, lease: Lease) -> None:
    """Remember that a lease ended by the clock alone."""
    entry.tx.remember(SYSTEM, _key(lease.pattern, _RAN_OUT), "", json.dumps((lease.expires_at, lease.agent)), entry.now)


def last(entry: Entry, text: str, *, but: str = "") -> Turn | None:
    """Return who was granted a pattern last, by its name or by whole folders around it; None when nobody is known.

    The name with the key `but` is passed over.
    """
    names = _names(text, patterns.index_prefix(text))
    turns = [(at, agent, name) for name in names for at, agent in _turns(entry, name) if key_of(agent) != but]
    if not turns:
        return None
    begun, agent, name = max(turns)
    row = entry.tx.remembered(SYSTEM, _key(name, _RAN_OUT))
    at, whose = (0.0, "") if row is None else cast("_Turn", json.loads(row[1]))
    return Turn(agent, at if key_of(whose) == key_of(agent) and at >= begun else None)


def missed(entry: Entry, path: str) -> Missed | None:
    """Return who held a file since the caller did, or None when nobody did or the caller never held it.

    What was held by the name of the file and by whole folders around it is known; by other wildcards it is not.
    """
    me = key_of(entry.agent.name)
    turns = sorted(turn for name in _names(path, path) for turn in _turns(entry, name))
    others = [at for at, agent in turns if key_of(agent) != me]
    before = [at for at, agent in turns if key_of(agent) == me and others and at < others[-1]]
    if not before:
        return None
    since = [(at, agent) for at, agent in turns if key_of(agent) != me and at > before[-1]]
    back = [at for at, agent in turns if key_of(agent) == me and at > others[-1]]
    return Missed(tuple(dict.fromkeys(agent for _, agent in since)), since[0][0], back[0] if back else None)


def _names(text: str, prefix: str) -> list[str]:
    folders = (f"{above}**" for above in patterns.ancestors(prefix) if not above or above.endswith("/"))
    return list(dict.fromkeys([text, *folders]))


def _turns(entry: Entry, pattern: str) -> list[_Turn]:
    row = entry.tx.remembered(SYSTEM, _key(pattern))
    return [] if row is None else [(at, agent) for at, agent in cast("list[_Turn]", json.loads(row[1]))]


def _key(pattern: str, prefix: str = _PREFIX) -> str:
    return prefix + (pattern.casefold() if patterns.FOLD_CASE else pattern)
