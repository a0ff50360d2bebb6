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


@pytest.mark.long
@pytest.mark.timeout(300)
def test_evidence_goes_along_while_another_gate_still_runs(postgres: Server, tmp_path: Path) -> None:
    """Its node has ended, the step has not: whoever takes over asks the judge of that gate with what was collected."""
    slow = {"tests/lint.sh": "sleep 5\n"}
    with campaign.world(postgres, tmp_path, "pair", call_seconds=0.2, more=slow) as world:
        world.start(2)
        (run,) = world.submit("T-0")
        names = "SELECT 1 FROM interlock.checkpoint_writes WHERE channel = 'collected' AND thread_id = %s"
        assert world.until(lambda: world.ask(names, run), 60), "no gate has ended"
        machine = world.owner(run)
        assert machine is not None
        machine.kill()
        world.settle()
        assert campaign.check(world).faults == []


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
