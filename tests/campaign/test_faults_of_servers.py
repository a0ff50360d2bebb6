"""A database whose connections are cut, that crashes, or whose disk is full: runs go on where they were."""

import time
from pathlib import Path

import pytest

from benchmarks.many_machines import campaign, faults, project
from tests.campaign.many_machines import FULL, HALVES, SHORT, do
from tests.postgres import Server

FAULTS = ("cut", "restart", "full-disk")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS)
def test_runs_end_well_whatever_happens_to_the_database(fault: str, postgres: Server, tmp_path: Path) -> None:
    do(postgres, tmp_path, fault, SHORT, "pair" if fault == "cut" else "plain")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_run_goes_on_after_the_database_was_away_for_longer_than_its_process_waits(
    postgres: Server, tmp_path: Path
) -> None:
    postgres.start()
    with campaign.world(postgres, tmp_path) as world:
        world.start(1, plant="impatient")
        (run,) = world.submit("T-0")
        assert world.provider.wait_for(lambda call: call.run == run, 60)
        with faults.noted(world, "restart"):
            postgres.stop(immediate=True)
            time.sleep(8)
            postgres.start()
        world.settle()
        assert campaign.check(world).faults == []


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("fault", FAULTS)
def test_runs_end_well_after_many_faults_of_the_database(
    fault: str, kind: project.Kind, postgres: Server, tmp_path: Path
) -> None:
    do(postgres, tmp_path, fault, FULL // 2, kind)
