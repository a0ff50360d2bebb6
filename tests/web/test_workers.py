"""The page of workers: who is alive and drives what, what waits, what is stalled; only where there is a database."""

from collections.abc import Callable

import pytest

from interlock.core.database import ADDRESS, Database
from tests.graph.conftest import Project
from tests.graph.team.conftest import drive, legs, prepared
from tests.postgres import Server
from tests.web.conftest import World


def test_workers_queues_and_what_is_stalled(
    over: Callable[..., World], project: Project, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leg that waits for a queue that nobody serves, one that is driven, one that was refused, a silent worker."""
    with prepared(postgres) as address:
        monkeypatch.setenv(ADDRESS, address)
        database = Database(address)
        for worker, ago in (("a-worker", 0), ("b-worker", 60)):
            row = (worker, ["drive"], 3, "1", ago)
            database.transact(
                lambda link, row=row: link.execute(
                    "INSERT INTO interlock.worker (id, queues, concurrency, version, beat_at) "
                    "VALUES (%s, %s, %s, %s, clock_timestamp() - make_interval(secs => %s))",
                    row,
                )
            )
        drive(database, "DRIVEN-1.1")
        legs.enqueue(database, "LOOKS-1.1", {}, queue="browser")
        legs.reserve(database, "GONE-1")
        leg, output = legs.enqueue(database, "GONE-1.1", {}), '{"error": ["RUN653", "no remote", "Name one."]}'
        refused = "UPDATE dbos.workflow_status SET status = 'SUCCESS', output = %s WHERE workflow_uuid = %s"
        database.transact(lambda link: link.execute(refused, (output, leg)))
        text = over(project.root).browser("read").text("/hello/workers")
        for part in (
            "a-worker alive drive 3 DRIVEN-1.1",
            "b-worker silent",
            "no worker does browser interlock worker --queues browser",
            "browser 1 0",
            "drive 0 1",
            "GONE-1.1 RUN653 no remote Name one. Then submit the task again.",
        ):
            assert part in text, text
        database.close()
        legs.client(address).destroy()


def test_without_a_database_there_is_no_such_page(world: World) -> None:
    """No link leads there, and the address says what is missing."""
    browser = world.browser("read")
    assert "/hello/workers" not in browser.get("/").text
    answer = browser.get("/hello/workers")
    assert answer.status_code == 409
    assert "RUN654" in answer.text
