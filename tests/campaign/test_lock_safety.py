"""Lock safety at full size: many processes for a long time, stopped and killed at random."""

from pathlib import Path

import pytest

from tests.reservations.lock_safety.chaos import Chaos
from tests.reservations.lock_safety.checker import check
from tests.reservations.lock_safety.history import summary


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
