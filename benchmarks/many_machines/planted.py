"""Planted bugs, each with what has to happen to a run for it to do harm; see `plants/sitecustomize.py`."""

import time
from collections.abc import Callable
from typing import Final

from benchmarks.many_machines.faults import noted
from benchmarks.many_machines.world import Machine, World

CALL_SECONDS: Final = 3.0
"""Longer than elsewhere: whoever took over is still at it when the other one comes back."""
_SECONDS: Final = 60.0


def _asked(world: World, run: str, role: str = "builder", *, answered: bool = False) -> Machine:
    """Wait until a role is asked, or has answered; return the machine that drives the run."""
    world.provider.wait_for(
        lambda call: call.run == run and f"-{role}-" in call.ask and (call.ended > 0) >= answered, _SECONDS
    )
    found = world.owner(run)
    assert found is not None, "nobody drives the run"
    return found


def returns_in_a_call(world: World, run: str) -> None:
    """Freeze a worker in a paid call, and let what it had started go on while another one makes that call."""
    machine = _asked(world, run)
    time.sleep(0.5)
    with noted(world, "freeze"):
        machine.freeze(alone=False)
        frozen = time.time()
        world.provider.wait_for(lambda call: call.run == run and call.began > frozen, _SECONDS)
        machine.thaw(worker_after=6.0)


def returns_with_a_line(world: World, run: str) -> None:
    """Freeze a worker that is about to write a line of the journal, and let it go on when the run was abandoned."""
    world.runs[run] = "abandoned"
    machine = _asked(world, run, "planner")
    world.until(lambda: world.ask("SELECT 1 FROM public.audit WHERE name LIKE 'answers/%%'"), _SECONDS)
    time.sleep(3.0)
    with noted(world, "freeze"):
        machine.freeze(alone=False)
        code, said = world.home.interlock("abandon", run)
        assert code == 0, said
        machine.thaw(worker_after=10.0)


def dies_with_an_answer(world: World, run: str) -> None:
    """Kill a worker long after a role has answered."""
    machine = _asked(world, run, answered=True)
    time.sleep(8.0)
    with noted(world, "kill"):
        machine.kill()


def dies_in_a_call(world: World, run: str) -> None:
    """Kill a worker in the second paid call."""
    machine = _asked(world, run)
    with noted(world, "kill"):
        machine.kill()


def ends(world: World, run: str) -> None:
    """Ask a worker to end in a paid call."""
    _asked(world, run).end()


def nothing(_world: World, _run: str) -> None:
    """Leave the machines alone."""


PLANTED: Final[dict[str, Callable[[World, str], None]]] = {
    "fence": returns_in_a_call,
    "journal": returns_with_a_line,
    "answer": dies_with_an_answer,
    "tree": dies_in_a_call,
    "wakeup": ends,
    "resumed": nothing,
}
