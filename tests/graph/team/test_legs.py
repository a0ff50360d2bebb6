"""Legs as they are asked for: ids, numbers, wake-ups that are not lost, refusals that come back."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from interlock.agents.ask import RunnerError
from interlock.core.database import Database, DatabaseError, Leg, LegLost
from interlock.gates.sealed import SealError
from interlock.graph.engine import legs
from interlock.graph.errors import GraphError, RunBusyError
from interlock.graph.task.policy import AgentSetting
from interlock.graph.team import asking
from tests.graph.team.conftest import drive


def ask(database: Database, statement: str) -> list[dict[str, Any]]:
    """Return the rows of a statement."""
    return database.read(lambda link: link.execute(statement.encode()).fetchall())


def test_ids_of_runs_are_taken_once(database: Database) -> None:
    """Also by many at once; one that a run of before has is not free."""
    database.transact(lambda link: link.execute("INSERT INTO interlock.run (run) VALUES ('T.1')"))
    with ThreadPoolExecutor(4) as pool:
        found = [done.result() for done in [pool.submit(legs.reserve, database, "T") for _ in range(12)]]
    assert sorted(found, key=lambda run: int(run[2:])) == [f"T.{number}" for number in range(2, 14)]
    legs.reserve(database, "T.1")
    assert legs.reserve(database, "T") == legs.newest_of(database, "T") == "T.14"
    assert legs.newest_of(database, "none") == ""


def test_legs_of_a_run_are_numbered(database: Database) -> None:
    """A name that looks like a pattern counts its own legs alone."""
    assert legs.enqueue(database, "T_1.1", {}) == "T_1.1#1"
    assert legs.enqueue(database, "TX1.1", {}) == "TX1.1#1"
    with ThreadPoolExecutor(4) as pool:
        found = [done.result() for done in [pool.submit(legs.enqueue, database, "T_1.1", {}) for _ in range(4)]]
    assert sorted(found) == [f"T_1.1#{number}" for number in range(2, 6)]
    assert legs.driven(database, "T_1.1")
    assert not legs.driven(database, "T%1.1")


def test_a_run_keeps_its_priority_and_says_where_it_waits(database: Database) -> None:
    """In every queue that it goes on in, whoever puts it there."""
    legs.enqueue(database, "T.1", {}, priority=7)
    legs.enqueue(database, "T.1", {}, queue="browser")
    legs.enqueue(database, "U.1", {})
    found = ask(database, "SELECT workflow_uuid AS leg, priority FROM dbos.workflow_status ORDER BY workflow_uuid")
    assert [(row["leg"], row["priority"]) for row in found] == [("T.1#1", 7), ("T.1#2", 7), ("U.1#1", 100)]
    drive(database, "U.1")
    assert legs.waiting(database)["U.1"] == "is being begun by a worker"
    waiting = legs.waiting(database, {"U.1"})
    assert waiting.keys() == {"T.1"}
    assert waiting["T.1"].startswith("waits in the queue browser for ")


def test_an_error_comes_back_as_what_it_was() -> None:
    """Callers tell them apart by their classes, with workers as without."""
    for error in (LegLost("m", "f"), DatabaseError("m", "f", "DBA906"), SealError("SEAL407", "m", "f")):
        assert type(legs.error_of(error.code, "m", "f")) is type(error)
    for kind in (RunnerError, RunBusyError):
        assert type(legs.error_of(kind.code, "m", "f")) is kind
    assert legs.error_of("RUN653", "m", "f").code == "RUN653"


def test_cancelled_legs_are_over(database: Database) -> None:
    """Nobody waits for them any more, and whoever does is told."""
    legs.enqueue(database, "T.1", {})
    legs.cancel(database, "T.1")
    assert not legs.driven(database, "T.1")
    with pytest.raises(GraphError, match="CANCELLED") as refused:
        legs.await_legs(database, "T.1")
    assert refused.value.fix.endswith("interlock resume T.1.")
    ((run, why, _fix),) = legs.failed(database)
    assert (run, why) == ("T.1", "CANCELLED: it was cancelled")


def test_without_a_worker_nobody_waits(database: Database) -> None:
    """What would begin only when somebody starts one is refused, with the command."""
    with pytest.raises(GraphError, match="no worker") as refused:
        legs.check_workers(database)
    assert "interlock worker" in refused.value.fix
    row = "INSERT INTO interlock.worker (id, queues, concurrency, version) VALUES ('w', '{}', 1, '')"
    database.transact(lambda link: link.execute(row))
    legs.check_workers(database)
    database.transact(lambda link: link.execute("UPDATE interlock.worker SET beat_at = beat_at - interval '1 minute'"))
    with pytest.raises(GraphError):
        legs.check_workers(database)


def test_a_leg_whose_run_is_taken_asks_the_other_to_look_again(database: Database) -> None:
    """The wake-up is not lost: who has the run queues the next leg when it gives it up."""
    from interlock.graph.team.worker import left, take

    first = drive(database, "T.1", leg="T.1#1")
    assert take(database, first) != ""
    second = Leg("T.1", "T.1#2", "token")
    put = (
        "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, owner_xid, queue_name) "
        "VALUES ('T.1#2', 'PENDING', 'leg', 'token', 'drive')"
    )
    database.transact(lambda link: link.execute(put))
    assert take(database, second) == ""
    assert ask(database, "SELECT leg, wanted FROM interlock.run") == [{"leg": "T.1#1", "wanted": True}]
    assert left(database, first) is True
    assert ask(database, "SELECT leg, wanted FROM interlock.run") == [{"leg": "", "wanted": False}]
    assert take(database, second) != ""
    assert left(database, first) is False, "what it does not have it does not give up"
    assert ask(database, "SELECT leg FROM interlock.run") == [{"leg": "T.1#2"}]


def test_an_execution_that_lost_its_leg_takes_no_run(database: Database) -> None:
    """It was frozen between the queue and the run."""
    from interlock.graph.team.worker import take

    old = drive(database, "T.1")
    new = drive(database, "T.1")
    assert take(database, old) == ""
    assert take(database, new) != ""


@pytest.mark.parametrize(
    ("settings", "queue"),
    [
        ({"runner": "command", "preset": "claude"}, "command"),
        ({"runner": "acp:gemini"}, "command"),
        ({"runner": "chat", "model": "openai:x"}, "llm"),
        ({"runner": "chat", "model": "anthropic:x"}, "llm-anthropic"),
        ({"runner": "python:agent:builder"}, "drive"),
        ({"runner": "remote"}, "drive"),
    ],
)
def test_which_queue_does_a_step(settings: dict[str, Any], queue: str, tmp_path: Any) -> None:
    """A program, a model, a model whose provider has a rate; all else is done where the run is driven."""
    (tmp_path / "interlock.toml").write_text("[workers.rates.anthropic]\ncalls = 5\n")
    config = asking.load_config(tmp_path)

    policy: Any = SimpleNamespace(agents={"builder": AgentSetting(settings, "")})
    assert asking.queue_of(policy, "builder", config) == queue
    assert asking.queue_of(policy, "command-gates", config) == "command"
    assert asking.queue_of(policy, "frontend-qa.evidence", config) == "browser"
    assert asking.queue_of(policy, "READY_FOR_QA", config) == "drive"
