"""Workers that are killed, frozen, ended, or of the wrong time: no run is lost, and nothing is done or paid twice."""

from pathlib import Path

import pytest

from benchmarks.many_machines import campaign, project
from tests.campaign.many_machines import FULL, HALVES, SHORT, do
from tests.postgres import Server

FAULTS = ("kill", "kill-worker", "freeze", "freeze-worker", "freeze-die", "clock", "drain", "abandon")


@pytest.mark.timeout(120)
def test_two_workers_take_a_run_each_to_landed(postgres: Server, tmp_path: Path) -> None:
    with campaign.world(postgres, tmp_path, call_seconds=0.2) as world:
        world.start(2, concurrency=1)
        world.submit("T-1", "T-2")
        world.settle()
        drove = world.ask("SELECT DISTINCT executor_id FROM dbos.workflow_status WHERE name = 'leg'")
        assert campaign.check(world).faults == []
        assert len(drove) == 2


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", ["kill", "freeze", "freeze-die", "clock"])
def test_runs_end_well_whatever_happens_to_their_workers(fault: str, postgres: Server, tmp_path: Path) -> None:
    do(postgres, tmp_path, fault, SHORT, "pair" if fault == "freeze" else "plain")


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("fault", FAULTS)
def test_runs_end_well_after_many_faults_of_workers(
    fault: str, kind: project.Kind, postgres: Server, tmp_path: Path
) -> None:
    do(postgres, tmp_path, fault, FULL // 2, kind)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_runs_of_models_end_well_after_faults_of_workers(fault: str, postgres: Server, tmp_path: Path) -> None:
    do(postgres, tmp_path, fault, SHORT, "chat")
