"""What happened in a project, day by day: each run on the day of its last step, the newest first.

It goes by the journal alone. Only of a run that is not over, its folder says whether somebody drives it, or why it
stopped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.graph.engine.folder import beside_run
from interlock.graph.feed import TICKET, Feed, Row
from interlock.graph.task.store import RunStore
from interlock.journal import Entry

LANDED: Final = "landed"
"""The line beside a run that says that its work has landed: `commit` and `target`."""


class Logged(NamedTuple):
    """What became of one run.

    Args:
        at: When its last step was, in local time.
        run: Its id, with `ticket:` before that of a ticket.
        task: What was to be done.
        end: How it ended: its last status, `abandoned`, `at work`, or `stopped` with a code.
        seconds: From its first line to its last one.
        tokens: Those of all answers, in and out.
        usd: Their price in US dollars; None where some of it is not known.
        landed: The commit and the branch that its work landed in; empty where it did not.
    """

    at: datetime
    run: str
    task: str
    end: str
    seconds: float
    tokens: int
    usd: float | None
    landed: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**self._asdict(), "at": self.at.isoformat(timespec="seconds"), "landed": dict(self.landed) or None}


class Day(NamedTuple):
    """The runs of one day, the newest first."""

    day: date
    runs: list[Logged]

    def to_json(self) -> dict[str, Any]:
        """Return its totals and its runs as JSON values; `unpriced` runs are not in `usd`."""
        priced = [run.usd for run in self.runs if run.usd is not None]
        return {
            "day": self.day.isoformat(),
            "ends": dict(Counter(run.end for run in self.runs)),
            "landed": sum(bool(run.landed) for run in self.runs),
            "seconds": sum(run.seconds for run in self.runs),
            "tokens": sum(run.tokens for run in self.runs),
            "usd": sum(priced),
            "unpriced": len(self.runs) - len(priced),
            "runs": [run.to_json() for run in self.runs],
        }


def runs_by_day(root: Path, since: date | None = None) -> list[Day]:
    """Return the runs of each day in local time, the newest first; with `since`, of that day and those after it.

    Raises:
        JournalError: The journal cannot be read, or is not what was written.
    """
    feed = Feed(root)
    feed.catch_up()
    days: dict[date, Day] = {}
    for row in feed.newest():
        at = datetime.fromisoformat(row.changed_at).astimezone()
        if since is None or at.date() >= since:
            days.setdefault(at.date(), Day(at.date(), [])).runs.append(_logged(root, feed, row, at))
    return list(days.values())


def landing(entries: Iterable[Entry]) -> Mapping[str, str]:
    """Return the commit and the branch that a run landed in, by the lines beside it; empty where it did not."""
    found = [entry.data for entry in entries if entry.type == LANDED]
    return {name: str(found[-1].get(name, "")) for name in ("commit", "target")} if found else {}


def _logged(root: Path, feed: Feed, row: Row, at: datetime) -> Logged:
    seconds = (at - datetime.fromisoformat(row.begun_at)).total_seconds()
    name, spent = f"{TICKET if row.kind == 'ticket' else ''}{row.run}", row.total
    landed = landing(feed.entries(beside_run(row.run)))
    return Logged(at, name, row.title, _end(root, row), seconds, spent.tokens, spent.usd, landed)


def _end(root: Path, row: Row) -> str:
    if row.abandoned:
        return "abandoned"
    if row.over or row.kind == "ticket":
        return row.state
    store = RunStore(root, row.run)
    if store.driven():
        return "at work"
    stopped = store.stopped()
    return f"stopped: {stopped['code']}" if stopped else row.state or "not started"
