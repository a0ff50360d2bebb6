"""What happened, as the workers and the store wrote it down, each by itself."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from interlock.core import patterns
from interlock.core.patterns import Pattern, canonical
from interlock.reservations.store.records import Lease
from tests.reservations.databases import named

Row = dict[str, Any]


@dataclass(frozen=True)
class History:
    """One run.

    Args:
        logs: By agent, what it wrote down, in its order.
        events: What the store wrote down, in the order of its transactions: `type`, `at` and the data.
        leases: What was held at the end.
        killed: By agent, when it was killed or ended by itself.
        dead_after: After how many seconds of silence leases may be taken over.
    """

    logs: dict[str, list[Row]]
    events: list[Row]
    leases: list[Lease] = field(default_factory=list[Lease])
    killed: dict[str, float] = field(default_factory=dict[str, float])
    dead_after: float = 0.0

    def rows(self, *kinds: str) -> list[Row]:
        """Return what all agents wrote down of some kinds, by time."""
        found = [row for log in self.logs.values() for row in log if row["kind"] in kinds]
        return sorted(found, key=lambda row: row["at"])


def read(folder: Path, store: str, root: str, killed: dict[str, float], dead_after: float) -> History:
    """Read a run that has ended; half a line was not written."""
    logs: dict[str, list[Row]] = {}
    for path in sorted(folder.glob("*.log")):
        lines = path.read_bytes().splitlines(keepends=True)
        logs[path.stem] = [json.loads(line) for line in lines if line.endswith(b"\n")]
        ended = [row["at"] for row in logs[path.stem] if row["kind"] == "ended"]
        killed = {**dict.fromkeys([path.stem] if ended else [], min(ended, default=0.0)), **killed}
    with named(store).transaction() as tx:
        events: Sequence[Row] = [
            {**json.loads(event.data), "type": event.type, "at": event.at} for event in tx.events(root, 10**9)
        ]
        leases = tx.leases()
    return History(logs, list(events), leases, killed, dead_after)


@cache
def overlap(one: str, other: str) -> bool:
    """Return whether two patterns overlap."""
    return patterns.overlaps(parsed(one), parsed(other))


@cache
def parsed(text: str) -> Pattern:
    """Return a pattern that is known to be right."""
    found = canonical(text)
    assert isinstance(found, Pattern)
    return found


def summary(history: History) -> dict[str, int]:
    """Return how much happened, by kind: of the workers' logs, and `lease_…` and `waiter_…` of the store's events."""
    kinds = [row["kind"] for log in history.logs.values() for row in log if row["kind"] != "call"]
    return dict(sorted(Counter([*kinds, *(row["type"] for row in history.events)]).items()))
