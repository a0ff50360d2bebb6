"""The checkpoint database of all ticket runs of a root: opened, read, and refused when it is damaged."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateSnapshot

from interlock.core.locks import locked
from interlock.graph.checkpoints import DAMAGE, SAFE_WAL, is_set_up, make_database
from interlock.graph.errors import RunDamagedError
from interlock.graph.pipeline.build import PipelineGraph
from interlock.graph.pipeline.store import TicketStore
from interlock.graph.store import state_dir
from interlock.reservations import is_writable, to_read

CHECKPOINTS: Final = "tickets.sqlite"

RESUME: Final = "__resume__"
"""The channel in which LangGraph keeps the answer to an interrupt."""

_BUSY_SECONDS: Final = 15
_FIX: Final = f"Move .interlock/{CHECKPOINTS} away and submit again: runs are rebuilt from the journal."


class _Open:
    """How many batches are open."""

    batches = 0


class TicketSaver(SqliteSaver):
    """A checkpointer that writes what one submission leads to in one transaction.

    Args:
        connection: The database.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        # A graph works with a shallow copy of its checkpointer: the count must be one for both.
        self._open = _Open()

    @contextmanager
    def batch(self) -> Generator[None]:
        """Hold back every commit until the end; of several threads, the first to end commits for all.

        Raises:
            sqlite3.Error: The checkpoint could not be written; the journal has what happened all the same.
        """
        with self.lock:
            self._open.batches += 1
        try:
            yield
        finally:
            with self.lock:
                self._open.batches -= 1
                self._commit()

    def _commit(self) -> None:
        try:
            self.conn.commit()
        except sqlite3.Error:
            self.conn.rollback()
            raise

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint in place of those before it: the journal has the past, and a run never goes back."""
        kept = super().put(config, checkpoint, metadata, new_versions)
        names = kept["configurable"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        row = (str(names["thread_id"]), names["checkpoint_ns"], names["checkpoint_id"])
        with self.cursor() as cursor:
            for table in ("checkpoints", "writes"):
                cursor.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?",  # noqa: S608
                    row,
                )
        return kept

    def latest(self, run_id: str) -> tuple[str, bool]:
        """Return the id of a run's last checkpoint, and whether an answer was handed in to its interrupt."""
        with self.cursor(transaction=False) as cursor:
            cursor.execute(
                "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''", (run_id,)
            )
            (checkpoint,) = cursor.fetchone()
            cursor.execute(
                "SELECT count(*) FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
                " AND channel = ?",
                (run_id, checkpoint, RESUME),
            )
            return checkpoint or "", bool(cursor.fetchone()[0])

    @contextmanager
    def cursor(self, transaction: bool = True) -> Generator[sqlite3.Cursor]:
        """Give a cursor; what it wrote is committed at its end, or at that of the batch."""
        with super().cursor(transaction and not self._open.batches) as cursor:
            yield cursor


def open_checkpoints(root: Path) -> TicketSaver:
    """Open the database, shared by threads and processes; whoever writes to a run holds the run's lock.

    Raises:
        RunDamagedError: It is not a database, or cannot be opened.
        sqlite3.Error: The disk is full, or the database is held by another process for too long.
    """
    if has_ticket_checkpoints(root) and not is_writable(str(root / ".interlock" / CHECKPOINTS)):
        return _copied(root / ".interlock" / CHECKPOINTS)
    path = state_dir(root) / CHECKPOINTS
    try:
        with path.with_suffix(".lock").open("ab") as lock, locked(lock):
            if not path.exists():
                make_database(path)
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        saver = TicketSaver(connection)
        # Setting up changes the journal mode, which fails while another process writes.
        saver.is_setup = is_set_up(connection)
        if sqlite3.sqlite_version_info < SAFE_WAL:
            # The rollback journal is zeroed and not deleted, which spares a change of the folder at every commit.
            connection.execute("PRAGMA journal_mode=PERSIST")
        connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
            raise
        raise _damaged(str(error)) from error
    if not saver.is_setup:
        raise _damaged("it has not the tables of checkpoints")
    return saver


def _copied(path: Path) -> TicketSaver:
    """Open a copy in memory of a database that cannot be written: it can be looked at, and nothing is kept."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        with to_read(str(path)) as name, closing(sqlite3.connect(name)) as source:
            source.backup(connection)
        connection.execute("PRAGMA query_only=ON")
        saver = TicketSaver(connection)
        saver.is_setup = is_set_up(connection)
    except sqlite3.DatabaseError as error:
        raise _damaged(str(error)) from error
    if not saver.is_setup:
        raise _damaged("it has not the tables of checkpoints")
    return saver


def _damaged(why: str) -> RunDamagedError:
    return RunDamagedError(f".interlock/{CHECKPOINTS} cannot be used: {why}", _FIX)


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
        if isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGE:
            raise
        why = f"{type(error).__name__}: {error}"[:200]
        raise RunDamagedError(f"the checkpoint of ticket run {store.run_id} cannot be read: {why}", _FIX) from error
    if not whole:
        raise RunDamagedError(f"the checkpoint of ticket run {store.run_id} holds another run", _FIX)
    return snapshot
