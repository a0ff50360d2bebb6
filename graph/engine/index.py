"""The index of runs: which there are below a root, in which order they were made, and of which task or ticket.

Each run has a number that it was made with, which is larger than those of all runs before it. The folders of the runs
are the truth; what is known of them is kept in `.interlock/runs.sqlite`, which may be removed at any time, so that a
look costs no reading of every folder.
"""

import json
import os
import sqlite3
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from interlock.core.files import write_atomically
from interlock.graph.engine.paths import is_run_id

Kind: TypeAlias = Literal["runs", "tickets"]
"""The folder in `.interlock` of the runs of tasks, and of tickets."""

BEGIN: Final = "run.json"
"""The file that holds what a run began with; a folder without it is no run."""

_FILE: Final = "runs.sqlite"
_NUMBER: Final = "made"
"""The file of a run with its number: nanoseconds since the epoch, or one more than the number of the run before."""
_BUSY_SECONDS: Final = 2.0
_COLUMNS: Final = "kind TEXT, run TEXT, number INTEGER, name TEXT, over INTEGER, PRIMARY KEY (kind, run)"


class Row(NamedTuple):
    """One run: its id, its number, the task or ticket that it is of, and whether it is known to be over."""

    run: str
    number: int
    name: str
    over: int = 0


def list_runs(root: Path, kind: Kind) -> list[str]:
    """Return the ids of all runs, the oldest first."""
    return [row.run for row in sorted(_rows(root, kind), key=_age)]


def runs_of(root: Path, kind: Kind, name: str, *, over: bool = True) -> list[str]:
    """Return the runs of a task or ticket, the newest first; one whose file cannot be read goes by its id.

    Args:
        root: The project's root.
        kind: Of tasks or of tickets.
        name: The task or ticket.
        over: Whether to return those too of which `note_over` was said.
    """
    rows = (row for row in _rows(root, kind) if row.name == name and (over or not row.over))
    return [row.run for row in sorted(rows, key=_age, reverse=True)]


def find_run(root: Path, kind: Kind, name: str) -> str | None:
    """Return the run of that id, or the newest run of the task or ticket of that name, or None."""
    if is_run_id(name) and (_folder(root, kind) / name / BEGIN).exists():
        return name
    return next(iter(runs_of(root, kind, name)), None)


def make_run(root: Path, kind: Kind, run_id: str, data: bytes) -> None:
    """Write what a run begins with, and give it its number: from then on it exists."""
    folder = _folder(root, kind) / run_id
    newest = max((row.number for row in _rows(root, kind)), default=0)
    write_atomically(folder / _NUMBER, str(max(time.time_ns(), newest + 1)).encode())
    write_atomically(folder / BEGIN, data)
    with _opened(root) as index:
        if index is not None:
            _add(index, kind, [_read(folder)[0]])


def note_over(root: Path, kind: Kind, run_id: str) -> None:
    """Note that a run is over for good, so that nobody looks whether it can go on."""
    with _opened(root) as index, suppress(sqlite3.Error):
        if index is not None:
            with index:
                index.execute("UPDATE runs SET over = 1 WHERE kind = ? AND run = ?", (kind, run_id))


def _age(row: Row) -> tuple[int, str]:
    return row.number, row.run


def _folder(root: Path, kind: Kind) -> Path:
    return root / ".interlock" / kind


def _rows(root: Path, kind: Kind) -> list[Row]:
    """Return every run; what the index does not hold yet is read from the folders, and added."""
    folder = _folder(root, kind)
    try:
        names = [entry.name for entry in os.scandir(folder) if is_run_id(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    with _opened(root) as index:
        known = {} if index is None else dict(_known(index, kind))
        fresh = {name: _read(folder / name) for name in names if name not in known and (folder / name / BEGIN).exists()}
        found = [known.get(name) or fresh[name][0] for name in names if name in known or name in fresh]
        # A run whose file cannot be read may be restored: it is looked at again.
        added = [row for row, whole in fresh.values() if whole]
        if index is not None and added:
            _add(index, kind, added)
    return [row for row in found if row.run in fresh or (folder / row.run / BEGIN).exists()]


def _known(index: sqlite3.Connection, kind: Kind) -> Generator[tuple[str, Row]]:
    with suppress(sqlite3.Error):
        rows = index.execute("SELECT run, number, name, over FROM runs WHERE kind = ?", (kind,)).fetchall()
        yield from ((row[0], Row(*row)) for row in rows)


def _add(index: sqlite3.Connection, kind: Kind, rows: Iterable[Row]) -> None:
    with suppress(sqlite3.Error), index:
        index.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", ((kind, *row) for row in rows))


@contextmanager
def _opened(root: Path) -> Generator[sqlite3.Connection | None]:
    """Open the file of the index; None where it cannot be written, which costs time and nothing else."""
    path = root / ".interlock" / _FILE
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        yield None
        return
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS)
        connection.execute(f"CREATE TABLE IF NOT EXISTS runs ({_COLUMNS})")
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            path.unlink(missing_ok=True)  # it is no database: the next look makes it anew
        yield None
        return
    with closing(connection):
        yield connection


def _read(folder: Path) -> tuple[Row, bool]:
    """Read the number and the name of a run from its files; also return whether its own file could be read."""
    try:
        begun = cast("dict[str, Any]", json.loads((folder / BEGIN).read_bytes()))
        name, whole = str(begun["task"]["task_id"] if "task" in begun else begun["ticket_id"]), True
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        name, whole = folder.name.rpartition(".")[0], False
    return Row(folder.name, _number(folder), name), whole


def _number(folder: Path) -> int:
    """Return the number of a run; one of an older version has none, there the time of its first file counts."""
    try:
        return int((folder / _NUMBER).read_bytes())
    except (OSError, ValueError):
        with suppress(OSError):
            return (folder / BEGIN).stat().st_mtime_ns
        return 0
