"""The checkpoint database of one run: opened, read, and refused when it is damaged."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from interlock.graph.task.state import TaskInput, TaskOutput, TaskState
from interlock.graph.task.store import CHECKPOINTS, RunStore
from interlock.reservations import to_read

SAFE_WAL: Final = (3, 51, 3)
"""From this version on several processes may write to one database in WAL mode."""

DAMAGE: Final = frozenset({1, 11, 14, 26})
"""SQLite's ERROR (no such column), CORRUPT, CANTOPEN and NOTADB; a full or slow disk says nothing about the file."""


class _SetUp(SqliteSaver):
    """A saver on a database that has its tables."""

    def setup(self) -> None:
        """Do nothing: it would change the journal mode, which fails while anybody reads, and a reader must not do."""


@contextmanager
def checkpointer(store: RunStore, *, read_only: bool = False) -> Generator[SqliteSaver]:
    """Open the run's own checkpoint database; whoever writes to it holds the run's lock.

    With `read_only`, nothing is written, and another process may be writing.

    Raises:
        RunDamagedError: The database is damaged, here or wherever it is used.
    """
    path = store.folder / CHECKPOINTS
    try:
        if not read_only and not path.exists():
            _make_database(path)
        with (
            to_read(str(path)) if read_only else nullcontext(str(path)) as name,
            closing(sqlite3.connect(name, timeout=15, check_same_thread=False)) as connection,
        ):
            saver = _SetUp(connection)
            connection.execute("PRAGMA synchronous=FULL")
            yield saver
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
            raise
        raise store.damaged(CHECKPOINTS, str(error)) from error


def has_checkpoints(store: RunStore) -> bool:
    """Return whether a run has a checkpoint database: one that was just begun has none."""
    return (store.folder / CHECKPOINTS).exists()


def _make_database(path: Path) -> None:
    """Make an empty database, which gets its name only when it is whole."""
    part = path.with_name(f".{path.name}.part")
    for leftover in path.parent.glob(f"{part.name}*"):
        leftover.unlink()
    with closing(sqlite3.connect(part)) as connection:
        SqliteSaver(connection).setup()
        if sqlite3.sqlite_version_info < SAFE_WAL:
            connection.execute("PRAGMA journal_mode=DELETE")
    part.replace(path)


def read_state(
    store: RunStore, graph: CompiledStateGraph[TaskState, None, TaskInput, TaskOutput], config: RunnableConfig
) -> StateSnapshot:
    """Return the state of a run as last checkpointed.

    Raises:
        RunDamagedError: The checkpoint cannot be decoded, or does not hold the state of a run.
    """
    try:
        state = graph.get_state(config)
        values = state.values
        head, frozen = values.get("head"), values.get("frozen", "")
        whole = isinstance(frozen, str) and (
            not head or (isinstance(head["seq"], int) and isinstance(head["hash"], str))
        )
    except (ValueError, TypeError, LookupError, AttributeError, EOFError) as error:
        raise store.damaged(CHECKPOINTS, f"{type(error).__name__}: {error}"[:200]) from error
    if not whole:
        raise store.damaged(CHECKPOINTS, "it holds no head of a journal")
    return state
