"""Processes that are stopped and killed at random never hold a file twice; the checker would see it if they did."""

from pathlib import Path

import pytest

from tests.reservations.databases import empty
from tests.reservations.lock_safety.bugs import BUGS
from tests.reservations.lock_safety.chaos import Chaos
from tests.reservations.lock_safety.checker import check

ROUNDS = 8
"""A planted bug must show within this many short runs."""


@pytest.mark.long
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_six_processes_that_are_stopped_and_killed_keep_every_promise(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database: str = request.getfixturevalue("empty_reservations") if store == "postgres" else ""
    chaos = Chaos(tmp_path, workers=6, seconds=5, seed=1, database=database)
    history = chaos.run()
    assert check(history) == []
    assert (chaos.stops > 0, len(chaos.killed) > 0) == (True, True)
    kinds = {row["kind"] for log in history.logs.values() for row in log}
    assert kinds >= {"granted", "refused", "released", "used", "use refused", "checked"}


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    database: str = request.getfixturevalue("reservations_database") if BUGS[bug].shared else ""
    found: set[str] = set()
    for number in range(ROUNDS):
        if database:
            empty(database)
        chaos = Chaos(tmp_path / str(number), 4, BUGS[bug].seconds, seed=number, bug=bug, database=database)
        history = chaos.run(may_fail=BUGS[bug].fails)
        found |= {violation.promise for violation in check(history)}
        if found & BUGS[bug].breaks:
            return
    pytest.fail(f"{bug} broke only {sorted(found)}")
