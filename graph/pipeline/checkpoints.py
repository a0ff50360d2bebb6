"""The checkpoint database of all ticket runs of a root: opened, read, and refused when it is damaged."""

import fcntl
import sqlite3
from pathlib import Path
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateSnapshot

from interlock.graph.checkpoints import SAFE_WAL
from interlock.graph.errors import RunDamagedError
from interlock.graph.pipeline.build import PipelineGraph
from interlock.graph.pipeline.store import TicketStore
from interlock.graph.store import state_dir

CHECKPOINTS: Final = "tickets.sqlite"

_BUSY_SECONDS: Final = 15
_FIX: Final = f"Move .interlock/{CHECKPOINTS} away and submit again: runs are rebuilt from the journal."


def open_checkpoints(root: Path) -> SqliteSaver:
    """Open the database, shared by threads and processes; whoever writes to a run holds the run's lock.

    SQLite before 3.51.3 can damage a database with several WAL writers, so the rollback journal is used there.

    Raises:
        RunDamagedError: It is not a database, or cannot be opened.
    """
    path = state_dir(root) / CHECKPOINTS
    try:
        with path.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
            saver = SqliteSaver(connection)
            saver.setup()
            if sqlite3.sqlite_version_info < SAFE_WAL:
                connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.DatabaseError as error:
        raise RunDamagedError(f".interlock/{CHECKPOINTS} cannot be used: {error}", _FIX) from error
    return saver


def has_ticket_checkpoints(root: Path) -> bool:
    """Say whether a root has the database, without making it."""
    return (root / ".interlock" / CHECKPOINTS).exists()


def read_checkpoint(store: TicketStore, graph: PipelineGraph, config: RunnableConfig) -> StateSnapshot:
    """Return the state of a run as last checkpointed.

    Raises:
        RunDamagedError: It cannot be decoded, or is not the state of this run.
    """
    try:
        snapshot = graph.get_state(config)
        whole = snapshot.created_at is None or snapshot.values["run_id"] == store.run_id
    except (sqlite3.DatabaseError, ValueError, TypeError, LookupError, AttributeError, EOFError) as error:
        why = f"{type(error).__name__}: {error}"[:200]
        raise RunDamagedError(f"the checkpoint of ticket run {store.run_id} cannot be read: {why}", _FIX) from error
    if not whole:
        raise RunDamagedError(f"the checkpoint of ticket run {store.run_id} holds another run", _FIX)
    return snapshot
