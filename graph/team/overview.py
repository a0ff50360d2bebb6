"""What the workers of a project do: who is alive and drives what, what waits in each queue, and what is stalled."""

from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from interlock.core.database import Database, Link
from interlock.gates.config import load_config
from interlock.graph.engine import legs
from interlock.graph.engine.folder import list_runs
from interlock.graph.landing.land import landed_as
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore


class WorkerRow(TypedDict):
    """A worker: its id begins with the name of its host, `state` is `alive`, `ending` or `silent`, it drives `runs`."""

    id: str
    state: str
    queues: list[str]
    concurrency: int
    version: str
    seen_seconds: float
    runs: list[str]


class QueueRow(TypedDict):
    """A queue: how many legs wait and run, and how long the oldest one has waited."""

    queue: str
    waiting: int
    running: int
    oldest_seconds: float


class StalledRow(TypedDict):
    """A run that does not go on by itself, why, and the command that helps."""

    run: str
    why: str
    next: str


class Overview(TypedDict):
    """Workers, queues, and runs that are stalled."""

    workers: list[WorkerRow]
    queues: list[QueueRow]
    stalled: list[StalledRow]


_WORKERS = """
SELECT id, queues, concurrency, version, draining,
    extract(epoch FROM clock_timestamp() - beat_at)::float AS seen_seconds,
    ARRAY(SELECT split_part(workflow_uuid, '#', 1) FROM dbos.workflow_status
        WHERE executor_id = id AND status = 'PENDING' AND name = %s) AS runs
FROM interlock.worker ORDER BY id
"""
_QUEUES = """
SELECT queue_name AS queue, count(*) FILTER (WHERE status <> 'PENDING') AS waiting,
    count(*) FILTER (WHERE status = 'PENDING') AS running,
    coalesce(extract(epoch FROM clock_timestamp())
        - min(created_at) FILTER (WHERE status <> 'PENDING') / 1000.0, 0)::float AS oldest_seconds
FROM dbos.workflow_status WHERE name = %s AND status = ANY(%s) GROUP BY queue_name ORDER BY queue_name
"""


def overview(root: Path) -> Overview:
    """Return what the workers of a project do.

    Raises:
        GraphError: The project has no database.
        DatabaseError: It cannot be used.
    """
    database, limit = legs.needed(root), load_config(root).workers.timeout_seconds

    def look(link: Link) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        workers = link.execute(_WORKERS, (legs.NAME,)).fetchall()
        return workers, link.execute(_QUEUES, (legs.NAME, [*legs.ACTIVE])).fetchall()

    workers, queues = database.transact(look)
    rows = [_worker(row, limit) for row in workers]
    found = Overview(workers=rows, queues=[QueueRow(**row) for row in queues], stalled=[])
    served = {queue for row in rows if row["state"] == "alive" for queue in row["queues"]}
    for queue in found["queues"]:
        name = queue["queue"]
        if queue["waiting"] and name not in served and name.partition("-")[0] not in served:
            start = f"interlock worker --queues {name.partition('-')[0]}"
            found["stalled"].append(StalledRow(run=f"({queue['waiting']})", why=f"no worker does {name}", next=start))
    begun = list_runs(root, "runs")
    for run, why, fix in legs.failed(database):
        if run in begun and not RunStore(root, run).abandoned() and not landed_as(root, run):
            goes_on = "land" if view_run(run, root=root).status == "APPROVED" else "resume"
            found["stalled"].append(StalledRow(run=run, why=why, next=f"interlock {goes_on} {run}"))
        # One that was taken out of the queue is over, and so is one whose task was submitted again.
        elif run not in begun and not why.startswith("CANCELLED") and _is_newest(database, run):
            found["stalled"].append(StalledRow(run=run, why=why, next=f"{fix} Then submit the task again."))
    return found


def _is_newest(database: Database, run: str) -> bool:
    return legs.newest_of(database, run.rpartition(".")[0]) == run


def _worker(row: dict[str, Any], limit: float) -> WorkerRow:
    draining = row.pop("draining")
    state = "silent" if row["seen_seconds"] > limit else "ending" if draining else "alive"
    return WorkerRow(**row, state=state)
