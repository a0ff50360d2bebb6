"""What views of many runs need: the runs of a project with their state, who holds files, and what waits.

A board is kept up to date by reading on: the journal from where the last look ended, and a run again only once its
files or its lines have changed. It holds no lock while it looks. So a look at a thousand runs of which none moved costs
next to nothing. The pages go by it.
"""

import math
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from interlock.core.errors import InterlockError
from interlock.graph.feed import Feed, Row
from interlock.graph.task.explain import Wait, waits_of
from interlock.graph.task.progress import agent_text, agents_at_work
from interlock.graph.task.runs import Graphs, view_run
from interlock.graph.task.scope_leases import waited_for
from interlock.graph.task.store import RunStore, journal_alone
from interlock.graph.task.view import RunView
from interlock.reservations import Reservations, drain_events, identity, key_of, open_reservations, place
from interlock.reservations.answers import StatusAnswer

LOOKED_AT: Final = 200
"""So many runs that are not over are looked at for what waits, the ones that changed last."""
_FRESH_SECONDS: Final = 1.0
_SINCE_MINUTES: Final = 24 * 60.0


class Waiting(NamedTuple):
    """Something that waits, and since when: ISO 8601 in UTC."""

    wait: Wait
    since: str


class Board:
    """The runs and reservations of one project.

    Args:
        root: The project.

    Attributes:
        feed: What the journal says of each run.
        damaged: Why the journal cannot be read, or empty.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.feed = Feed(root)
        self.damaged = ""
        self._views: dict[str, tuple[tuple[int, ...], RunView]] = {}
        self._graphs: Graphs = {}
        self._names: set[str] = set()
        self._looked: tuple[float, StatusAnswer | None] | None = None

    def refresh(self) -> None:
        """Read what was written to the journal since the last look; one that is damaged keeps the rows it has."""
        try:
            self.feed.catch_up()
            self.damaged = ""
        except InterlockError as error:
            self.damaged = f"{error.message} {error.fix}"

    def view(self, run_id: str) -> RunView:
        """Return the view of a task run; the same until its files change.

        Raises:
            GraphError: It is not there any more, or cannot be read.
        """
        row = self.feed.rows.get(run_id)
        # The number of lines too: an answer of a person is a line, and changes no file of the run.
        stamp = (*_stamp(self.root / ".interlock" / "runs" / run_id), 0 if row is None else row.lines)
        known = self._views.get(run_id)
        if known is not None and known[0] == stamp:
            return known[1]
        # Which of many runs the journal alone has is known here; to search for each of them takes minutes.
        if row is not None and not RunStore(self.root, run_id).exists():
            raise journal_alone(run_id)
        view = view_run(run_id, root=self.root, graphs=self._graphs)
        self._views[run_id] = stamp, view
        return view

    def at_work(self, run_id: str) -> str:
        """Return what a task run that is driven does, or which files it waits for; empty when nobody drives it."""
        if not RunStore(self.root, run_id).driven():
            return ""
        agents = "; ".join(map(agent_text, agents_at_work(self.root, run_id)))
        return waited_for(self.root, run_id).partition(" ")[2] or agents or "at work"

    def open_rows(self) -> list[Row]:
        """Return the rows of task runs that may go on; a BLOCKED one only where it is its task's newest."""
        seen: set[str] = set()
        found: list[Row] = []
        for row in self.feed.newest():
            if row.kind == "task" and not row.over and not (row.state == "BLOCKED" and row.name in seen):
                found.append(row)
            # A BLOCKED run after which its task was begun again waits for nobody.
            seen.add(row.name)
            if len(found) >= LOOKED_AT:
                break
        return found

    def waiting(self) -> list[Waiting]:
        """Return what waits for a person, the newest first."""
        found = [*self._of_runs(), *self._of_requests()]
        return sorted(found, key=lambda each: each.since, reverse=True)

    def _of_runs(self) -> Iterator[Waiting]:
        for row in self.open_rows():
            with suppress(InterlockError):
                for wait in waits_of(self.view(row.run), RunStore(self.root, row.run)):
                    yield Waiting(wait, row.changed_at)

    def _of_requests(self) -> Iterator[Waiting]:
        """Yield what this person is asked to release, and what was granted while they waited for it."""
        try:
            held = self.reservations()
        except InterlockError:  # the page of the leases, or the table, says what is wrong
            return
        if held is None:
            return
        for row in held["negotiations"]:
            if not row["resolved"] and key_of(row["holder"]) in self._names:
                thread, file = str(row["thread_id"]), str(row["file"])
                text = f"{row['requester']} asks {row['holder']} for {file}"
                yield Waiting(Wait("negotiation", thread, text, thread, file=file), str(row["created_at"]))
        for row in held["leases"]:
            if row["claim"] and key_of(row["holder"]) in self._names:
                left = f"{max(1, math.ceil(row['expires_in_seconds'] / 60))} min left"
                text = f"{row['pattern']} is yours now; reserve it again to keep it, or release it: {left}"
                id_ = row["reservation_id"]
                yield Waiting(Wait("claim", id_, text, id_, file=row["pattern"]), row["granted_at"])

    def reservations(self, *, fresh: bool = False) -> StatusAnswer | None:
        """Return leases, wait queue and the negotiations of a day; None where nothing was reserved.

        It is at most a second old, or `fresh`.

        Raises:
            ReservationError: The store cannot be read.
        """
        if fresh or self._looked is None or time.monotonic() - self._looked[0] >= _FRESH_SECONDS:
            found = None
            if place.is_used(place.find(str(self.root))):
                with calls(self.root) as mine:
                    found = mine.current_state(_SINCE_MINUTES)
                    self._names = {key_of(mine.caller.name), key_of(identity.person(os.environ))}
            self._looked = time.monotonic(), found
        return self._looked[1]


@contextmanager
def calls(root: Path) -> Generator[Reservations]:
    """Open the reservations of a project for its person; afterwards, what happened is written into the journal."""
    mine = open_reservations(str(root), "ui")
    try:
        yield mine
    finally:
        with suppress(InterlockError, OSError):  # it stays queued, and the next call tries again
            drain_events(mine.runtime.store, mine.caller.root)
        mine.runtime.store.close()


def _stamp(folder: Path) -> tuple[int, ...]:
    """Return what differs once something of a run has changed."""
    found: list[int] = []
    # The folder itself (the empty name) changes when a file in it is made or removed.
    for name in ("checkpoints.sqlite", "checkpoints.sqlite-wal", "abandoned", "stopped.json", ""):
        try:
            seen = os.stat(folder / name)  # noqa: PTH116 - many
        except OSError:
            found += (0, 0)
        else:
            found += (seen.st_mtime_ns, seen.st_size)
    return tuple(found)
