"""LangGraph's PostgreSQL saver behind the fence: no checkpoint is written for a run that this process has lost.

Answers T1. Each write is one transaction of `Database`, which first asks whether this leg still has the run. The files
of the run are pushed before, and the transaction names their commit: a checkpoint without its files cannot be.
"""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import BasePostgresSaver

from interlock.core.database import Database, Link, this_leg
from interlock.graph.engine.mirror import SAVED


class FencedSaver(BasePostgresSaver):
    """Keeps the checkpoints of runs.

    Args:
        database: Where.
        files: Pushes the files of the run as they are, and returns the name of their commit.
        draining: Called when the worker of this leg wants it to end at the next step.
    """

    def __init__(
        self,
        database: Database,
        files: Callable[[], str] = lambda: "",
        draining: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._database, self._files, self._draining = database, files, draining

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; without its id, the last one."""
        return self._database.transact(lambda link: PostgresSaver(link).get_tuple(_named(link, config)))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint, and which commit has the files."""
        leg, commit = this_leg(), self._files()

        def work(link: Link) -> tuple[RunnableConfig, bool]:
            written = PostgresSaver(link).put(config, checkpoint, metadata, new_versions)
            if leg is None:
                return written, False
            if commit:
                link.execute(SAVED, (commit, leg.run))
            statement = (
                "SELECT draining FROM interlock.worker AS x "
                "JOIN dbos.workflow_status AS w ON w.executor_id = x.id WHERE w.workflow_uuid = %s"
            )
            row = link.execute(statement, (leg.workflow,)).fetchone()
            return written, bool(row and row["draining"])

        written, draining = self._database.transact(work)
        if draining:
            self._draining()
        return written

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a node of an unfinished step has returned."""
        self._database.transact(lambda link: PostgresSaver(link).put_writes(config, writes, task_id, task_path))


def _named(link: Link, config: RunnableConfig) -> RunnableConfig:
    """Name the last checkpoint: LangGraph's ids are as the clocks of the machines, and the numbers of steps are not."""
    given = config.get("configurable", {})
    if given.get("checkpoint_id"):
        return config
    statement = (
        "SELECT checkpoint_id FROM interlock.checkpoints WHERE thread_id = %s AND checkpoint_ns = %s "
        "ORDER BY (metadata->>'step')::int DESC LIMIT 1"
    )
    row = link.execute(statement, (given["thread_id"], given.get("checkpoint_ns", ""))).fetchone()
    return config if row is None else {**config, "configurable": {**given, **row}}
