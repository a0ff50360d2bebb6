"""Who holds and waits for what, as pages read it and act on it: in the name of the person who serves the pages."""

import os
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interlock.core.errors import InterlockError
from interlock.reservations import Reservations, drain_events, open_reservations, place
from interlock.reservations.answers import StandingAnswer

_FRESH_SECONDS: Final = 1.0
_SINCE_MINUTES: Final = 24 * 60.0

_LOOKS: Final[dict[Path, tuple[float, StandingAnswer | None]]] = {}


@contextmanager
def calls(root: Path) -> Generator[Reservations]:
    """Open the reservations of a project; afterwards, what happened is written into the journal."""
    mine = open_reservations(str(root), "ui")
    try:
        yield mine
    finally:
        with suppress(InterlockError, OSError):  # it stays queued, and the next call tries again
            drain_events(mine.runtime.store, mine.caller.root)
        mine.runtime.store.close()


def picture(root: Path) -> StandingAnswer | None:
    """Return leases, wait queue and the negotiations of a day, at most a second old; None where nothing was reserved.

    A store that cannot be read counts as none here; the page of the leases says what is wrong with it.
    """
    known = _LOOKS.get(root)
    if known is not None and time.monotonic() - known[0] < _FRESH_SECONDS:
        return known[1]
    with suppress(InterlockError):
        found = look(root)
        _LOOKS[root] = time.monotonic(), found
        return found
    return None


def look(root: Path) -> StandingAnswer | None:
    """Return the same as it is now.

    Raises:
        ReservationError: The store cannot be read.
    """
    if not os.path.exists(place.find(str(root)).store_path):  # noqa: PTH110 - a text, as in the whole package
        return None
    with calls(root) as mine:
        return mine.standing(_SINCE_MINUTES)


def forget(root: Path) -> None:
    """Let the next look be a new one, since something was done."""
    _LOOKS.pop(root, None)


@dataclass(slots=True)
class Node:
    """A folder or a pattern in the tree of what is held: `leases` of just this, and what lies below."""

    name: str
    leases: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    below: "dict[str, Node]" = field(default_factory=dict[str, "Node"])


def tree(leases: Iterable[Mapping[str, Any]]) -> Node:
    """Return leases as a tree of the steps of their patterns."""
    root = Node("")
    for lease in sorted(leases, key=lambda row: str(row["pattern"])):
        at = root
        for step in str(lease["pattern"]).split("/"):
            at = at.below.setdefault(step, Node(step))
        at.leases.append(lease)
    return root
