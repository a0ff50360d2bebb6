"""The checkpoint database of one run: opened, read, and refused when it is damaged."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from interlock.graph.state import TaskInput, TaskOutput, TaskState
from interlock.graph.store import RunStore

_SAFE_WAL: Final = (3, 51, 3)

CHECKPOINTS: Final = "checkpoints.sqlite"

_DAMAGE: Final = frozenset({1, 11, 14, 26})
"""SQLite's ERROR (no such column), CORRUPT, CANTOPEN and NOTADB; a full or slow disk says nothing about the file."""


@contextmanager
def checkpointer(store: RunStore) -> Generator[SqliteSaver]:
    """Open the run's own checkpoint database; whoever writes to it holds the run's lock.

    Raises:
        RunDamagedError: The database is damaged, here or wherever it is used.
    """
    try:
        with closing(sqlite3.connect(store.folder / CHECKPOINTS, timeout=15, check_same_thread=False)) as connection:
            saver = SqliteSaver(connection)
            saver.setup()
            if sqlite3.sqlite_version_info < _SAFE_WAL:
                connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("PRAGMA synchronous=FULL")
            yield saver
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
            raise
        raise store.damaged(CHECKPOINTS, str(error)) from error


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
