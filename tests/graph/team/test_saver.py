"""The saver: what LangGraph's own keeps, and nothing for a run that this process has lost."""

import inspect
from typing import Any

import pytest
from dbos._context import current_owner_xid
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver

from interlock.core.database import Database, LegLost, Link
from interlock.graph.engine.saver import FencedSaver
from tests.graph.team.conftest import drive, driving

PLACE: RunnableConfig = {"configurable": {"thread_id": "T.1", "checkpoint_ns": ""}}


def put(saver: FencedSaver, config: RunnableConfig = PLACE) -> RunnableConfig:
    """Write a checkpoint, and return where it is."""
    return saver.put(config, empty_checkpoint(), {"source": "loop", "step": 1, "parents": {}}, {})


def kept(database: Database) -> list[RunnableConfig]:
    """Return where the checkpoints of the run are, the newest first."""
    with database.connection() as link:
        return [row.config for row in PostgresSaver(link).list(PLACE)]


def test_what_dbos_knows_an_execution_by(database: Database) -> None:
    """The fence reads a column of DBOS's, and a token that has no public name; both are as they were tried."""
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'workflow_status'"
    found = {row["column_name"] for row in database.read(lambda link: link.execute(columns).fetchall())}
    assert {"owner_xid", "workflow_uuid", "status", "executor_id", "queue_name", "name"} <= found
    assert next(iter(inspect.signature(current_owner_xid).parameters)) == "workflow_id"


def test_it_keeps_what_langgraph_keeps(database: Database) -> None:
    """Read back by LangGraph's own saver, and the other way round."""
    saver = FencedSaver(database)
    first = put(saver)
    saver.put_writes(first, [("channel", {"value": 1})], "task")
    with database.connection() as link:
        theirs = PostgresSaver(link).get_tuple(PLACE)
    ours = saver.get_tuple(PLACE)
    assert ours == theirs
    assert ours is not None
    assert ours.pending_writes == [("task", "channel", {"value": 1})]
    second = put(saver, first)
    assert kept(database) == [second, first]


def test_the_last_checkpoint_is_that_of_the_last_step_whatever_the_clock_said(database: Database) -> None:
    """LangGraph's ids are times: a worker whose clock is ahead has driven the run before one whose clock is right."""
    saver, ids = FencedSaver(database), ("1f1f", "1f1e")
    config = PLACE
    for step, name in enumerate(ids):
        config = saver.put(
            config, {**empty_checkpoint(), "id": name}, {"source": "loop", "step": step, "parents": {}}, {}
        )
    last = saver.get_tuple(PLACE)
    assert last is not None
    assert (last.checkpoint["id"], last.metadata.get("step")) == ("1f1e", 1)


@pytest.mark.parametrize("lost", ["another execution", "cancelled", "ended", "another leg"])
def test_a_leg_that_lost_its_run_writes_nothing(
    address: str, database: Database, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Whatever took the run from it; before that it writes."""
    leg = drive(database, "T.1")
    saver = FencedSaver(driving(address, leg, monkeypatch))
    before = put(saver)
    if lost == "another leg":
        drive(database, "T.1", leg="T.1#2")
    else:
        drive(database, "T.1", status={"cancelled": "CANCELLED", "ended": "SUCCESS"}.get(lost, "PENDING"))
    with pytest.raises(LegLost):
        put(saver, before)
    with pytest.raises(LegLost):
        saver.put_writes(before, [("channel", 1)], "task")
    assert kept(database) == [before]


def test_a_checkpoint_names_the_commit_with_its_files(
    address: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction: where the checkpoint is refused, the commit of before counts."""
    leg = drive(database, "T.1")
    commits = iter(["first", "second"])
    monkeypatch.setenv("INTERLOCK_LEG", leg.environment()["INTERLOCK_LEG"])
    saver = FencedSaver(Database(address), lambda: next(commits))
    put(saver)
    drive(database, "T.1")
    with pytest.raises(LegLost):
        put(saver)

    def saved(link: Link) -> Any:
        return link.execute("SELECT saved FROM interlock.run").fetchone()

    assert database.read(saved) == {"saved": "first"}


def test_a_worker_that_is_to_end_is_noticed_at_the_next_step(
    address: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of the leg learns it with its next checkpoint."""
    leg, asked = drive(database, "T.1"), list[bool]()
    monkeypatch.setenv("INTERLOCK_LEG", leg.environment()["INTERLOCK_LEG"])
    saver = FencedSaver(Database(address), draining=lambda: asked.append(True))
    row = "INSERT INTO interlock.worker (id, queues, concurrency, version) VALUES ('a-worker', '{}', 1, '')"
    database.transact(lambda link: link.execute(row))
    put(saver)
    assert not asked
    database.transact(lambda link: link.execute("UPDATE interlock.worker SET draining = true"))
    put(saver)
    assert asked == [True]
