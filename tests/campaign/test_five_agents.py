"""Five agents and the safety of locks at full size: many processes and repositories, stopped and killed at random."""

from pathlib import Path

import pytest

from benchmarks.five.checkout import Checkout, Layout
from benchmarks.five.course import run
from benchmarks.five.figures import FIELD_STUDY, failures, figures
from tests.reservations.lock_safety.chaos import Chaos
from tests.reservations.lock_safety.checker import check
from tests.reservations.lock_safety.history import summary


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("layout", ["repositories", "folders"])
def test_five_agents_settle_every_conflict_and_lose_no_edit(layout: Layout, tmp_path: Path) -> None:
    found = figures(run(Checkout(tmp_path / "workspace", layout, 56), agents=5, seed=1, folder=tmp_path))
    print(found)
    assert failures(found) == []
    assert found["negotiations"]["requests"] > FIELD_STUDY["requests"]


@pytest.mark.campaign
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(("workers", "seconds", "every_seconds"), [(20, 30, 0.2), (100, 600, 0.1)])
def test_many_processes_that_are_stopped_and_killed_keep_every_promise(
    workers: int, seconds: float, every_seconds: float, tmp_path: Path
) -> None:
    chaos = Chaos(tmp_path, workers, seconds, seed=workers)
    history = chaos.run(every_seconds=every_seconds)
    print(f"{workers} processes, {seconds} s, {chaos.stops} stopped, {len(chaos.killed)} killed: {summary(history)}")
    assert check(history) == []
