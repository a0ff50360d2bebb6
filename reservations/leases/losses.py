"""What runs lost of their files: a run reads no messages, and whoever looks after it must learn who has its files."""

import json
from typing import Final, NamedTuple

from interlock.reservations.answers import iso
from interlock.reservations.leases import granting
from interlock.reservations.leases.runtime import Entry
from interlock.reservations.store.records import Lease, key_of

_KEY: Final = "\x1flost"
"""No idempotency key has a control character, so no agent writes under this one."""
_LENDER: Final = "\x1flender "
_MAX: Final = 20
"""So many leases are remembered, the ones that were lost last."""


class Lost(NamedTuple):
    """A lease that a run lost.

    Args:
        pattern: What it held.
        by: Who took it over or holds files of it since; empty when its time ran out and nobody has them yet.
        at: When it ended, ISO 8601 in UTC.
    """

    pattern: str
    by: str
    at: str

    @property
    def text(self) -> str:
        """What happened, in a few words."""
        if not self.by:
            return f"Its reservation of `{self.pattern}` ended at {self.at}, and others may take the files"
        return f"{self.by} took over files of `{self.pattern}`, which the run held until {self.at}"


def lend(entry: Entry, lease: Lease, run: str, worker: str) -> None:
    """Remember whose lease a worker holds: what it loses, the run loses."""
    entry.tx.remember(worker, f"{_LENDER}{lease.reservation_id}", "", run, entry.now)


def record(entry: Entry, lease: Lease, by: str) -> None:
    """Remember that a lease of a run, or one that it lent, ended without it; `by` took it, empty where time ran out."""
    lent = entry.tx.remembered(lease.agent, f"{_LENDER}{lease.reservation_id}")
    run = lease.agent if lent is None else lent[1]
    agent = entry.tx.agent(run)
    if agent is not None and agent.client == "run":
        rows = [*_rows(entry, run), (lease.pattern, by, entry.now if by else lease.expires_at)]
        entry.tx.remember(run, _KEY, "", json.dumps(rows[-_MAX:]), entry.now)


def lost(entry: Entry, agent: str) -> list[Lost]:
    """Return what a run lost since it last held its scope."""
    found: list[Lost] = []
    for pattern, by, at in _rows(entry, agent):
        held = granting.overlapping(entry, granting.pattern_of(pattern))
        since = [row.agent for row in held if row.granted_at >= at and key_of(row.agent) != key_of(agent)]
        found.append(Lost(pattern, by or next(iter(since), ""), iso(at)))
    return found


def forget(entry: Entry, agent: str) -> None:
    """Forget what a run lost: it holds its scope again."""
    entry.tx.remember(agent, _KEY, "", "[]", entry.now)


def _rows(entry: Entry, agent: str) -> list[tuple[str, str, float]]:
    row = entry.tx.remembered(agent, _KEY)
    try:
        return [(str(pattern), str(by), float(at)) for pattern, by, at in json.loads(row[1] if row else "[]")]
    except (TypeError, ValueError):
        return []
