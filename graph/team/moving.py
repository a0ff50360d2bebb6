"""A project that moves into a database: its journal, its runs with their files, its reservations; then compared.

Nothing here is changed, so that it may be repeated: what is there already stays. Runs that are not over stay out, since
one that works in the checkout cannot go on elsewhere: they are to be ended first.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from langgraph.checkpoint.postgres import PostgresSaver

from interlock.core.database import Database, Link, database_of
from interlock.core.text import few
from interlock.gates.sealed import place_of
from interlock.graph.engine import mirror
from interlock.graph.engine.folder import list_runs
from interlock.graph.errors import NOT_MOVED, GraphError
from interlock.graph.task.carried import push_stored, remote_of
from interlock.graph.task.runs import checkpoint_of, kept_views
from interlock.graph.task.store import RunStore
from interlock.graph.task.view import RunView
from interlock.journal import Journal, Upstream
from interlock.reservations import copy_rows


class Moved(NamedTuple):
    """What was copied, and how many heads of runs are the same in both."""

    lines: int
    runs: int
    rows: int
    heads: int


def migrate(root: Path, address: str) -> Moved:
    """Copy a project into a database, which has its tables and nothing else, and compare the heads of all runs.

    Raises:
        GraphError: `RUN656` the project has a database already, runs are not over, or the copy differs.
        DatabaseError, JournalError, ReservationError: Something cannot be read or written; doing it again goes on.
    """
    if database_of(root) is not None:
        raise GraphError("the project has a database already", "Take `database` out first.", NOT_MOVED)
    remote_of(root)
    views = kept_views(root, _raise)
    if going_on := [run for run, view in views.items() if view.phase != "done"]:
        message = f"these runs are not over, and could go on nowhere else: {few(going_on)}"
        fix = f"Take them to their end, or end them: interlock abandon {going_on[0]}. Then do the same again."
        raise GraphError(message, fix, NOT_MOVED)
    database = Database(address)
    record = root / "artifacts" / "interlock"
    journals = [path for path in (record / "events.jsonl", record / "tickets.jsonl") if path.exists()]
    lines = sum(Upstream(database, path.stem).upload(path) for path in journals)
    for run in list_runs(root, "runs"):
        _copy_run(root, database, views[run])
    rows = copy_rows(place_of(root)[0], database)
    return Moved(lines, len(views), rows, _compared(record / "events.jsonl", database))


def _raise(_run: str, error: Exception) -> None:
    raise error


def _copy_run(root: Path, database: Database, view: RunView) -> None:
    store = RunStore(root, view.run_id)
    paths = [
        *(store.folder / name for name in ("run.json", "stopped.json", "abandoned")),
        *store.folder.glob("answers/*"),
    ]
    commit = push_stored(root, view) if view.policy.sealing else ""
    kept = checkpoint_of(store)

    def work(link: Link) -> None:
        for path in filter(Path.is_file, paths):
            mirror.put(link, view.run_id, path.relative_to(store.folder).as_posix(), path.read_bytes())
        link.execute(_KNOWN, ([view.run_id],))
        link.execute(mirror.SAVED, (commit, view.run_id))
        if kept is not None:
            place: Mapping[str, Any] = {"thread_id": view.run_id, "checkpoint_ns": ""}
            versions = kept.checkpoint["channel_versions"]
            PostgresSaver(link).put({"configurable": {**place}}, kept.checkpoint, kept.metadata, versions)

    database.transact(work, lock=mirror.LOCK)


# The id of a run whose folder was removed is taken as well.
_KNOWN: Final = "INSERT INTO interlock.run (run) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"


def _compared(path: Path, database: Database) -> int:
    """Compare the head of every run in the journal here with that in the database, and return how many there are.

    Raises:
        GraphError: `RUN656` they differ.
    """
    with TemporaryDirectory(prefix="interlock-") as folder:
        here, there = Journal(path), Journal(Path(folder) / path.name, upstream=Upstream(database, path.stem))
        runs = here.runs()
        database.transact(lambda link: link.execute(_KNOWN, ([*runs],)))
        for run in runs:
            if here.head(run) != there.head(run):
                message = f"run {run} ends differently in the database: {there.head(run)}, and here {here.head(run)}"
                raise GraphError(message, "Use an empty database, and do the same again.", NOT_MOVED)
    return len(runs)
