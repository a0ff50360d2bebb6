"""What happened in a project, day by day: each run on the day of its last step, the newest first.

It goes by the journal alone. Only of a run that is not over, its folder says whether somebody drives it, or why it
stopped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from interlock.graph.engine.folder import beside_run
from interlock.graph.feed import TICKET, Feed, Row
from interlock.graph.task.store import RunStore
from interlock.journal import Entry


def log_of(root: Path, since: date | None = None) -> dict[str, Any]:
    """Return the runs of each day in local time as JSON values with the schema `interlock.log/1`, the newest first.

    With `since`, those of that day and after it. Of a day, `usd` is the price of the runs whose price is known, and
    `unpriced` how many others there are. Of a run, `end` is its last status, `abandoned`, `at work` or `stopped: CODE`,
    and `seconds` is from its first line to its last.

    Raises:
        JournalError: The journal cannot be read, or is not what was written.
    """
    feed = Feed(root)
    feed.catch_up()
    days: dict[date, list[dict[str, Any]]] = {}
    for row in feed.newest():
        at = datetime.fromisoformat(row.changed_at).astimezone()
        if since is None or at.date() >= since:
            spent, name = row.total, f"{TICKET if row.kind == 'ticket' else ''}{row.run}"
            said: dict[str, Any] = {
                "at": at.isoformat(timespec="seconds"),
                "run": name,
                "task": row.title,
                "end": _end(root, row),
            }
            seconds = (at - datetime.fromisoformat(row.begun_at)).total_seconds()
            said |= {"seconds": seconds, "tokens": spent.tokens, "usd": spent.usd}
            said["landed"] = landing(feed.entries(beside_run(row.run)))
            days.setdefault(at.date(), []).append(said)
    return {"schema": "interlock.log/1", "days": [_day(day, runs) for day, runs in days.items()]}


def landing(entries: Iterable[Entry]) -> Mapping[str, str] | None:
    """Return the commit and the target that a run landed in, by the lines beside it; None where it did not."""
    found = [entry.data for entry in entries if entry.type == "landed"]
    return {name: str(found[-1].get(name, "")) for name in ("commit", "target")} if found else None


def _day(day: date, runs: list[dict[str, Any]]) -> dict[str, Any]:
    priced = [run["usd"] for run in runs if run["usd"] is not None]
    sums = {name: sum(run[name] for run in runs) for name in ("seconds", "tokens")}
    sums |= {
        "usd": sum(priced),
        "unpriced": len(runs) - len(priced),
        "landed": sum(bool(run["landed"]) for run in runs),
    }
    return {"day": day.isoformat(), "ends": dict(Counter(run["end"] for run in runs)), **sums, "runs": runs}


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
