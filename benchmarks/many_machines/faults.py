"""What happens to machines: a fault comes once a round, at a moment that is drawn, to whoever drives the run then."""

import os
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

import psycopg

from benchmarks.many_machines import project
from benchmarks.many_machines.world import FAKETIME, Fault, Machine, World

Round: TypeAlias = Callable[[World, random.Random, str], None]
"""Takes the name of a task of its own; when it returns, enough workers run again."""

MOMENTS: Final = ("begins", "is asked", "is asked", "has answered", "has answered", "is judged", "lands")
_SECONDS: Final = 60.0


def moment(world: World, rng: random.Random, run: str) -> None:
    """Wait for a moment of a run that is drawn."""
    which = rng.choice(MOMENTS)
    role = rng.choice(project.ROLES[world.kind])
    if which == "begins":
        world.until(lambda: world.owner(run) is not None, _SECONDS)
        time.sleep(rng.random() * 2.0)
    elif which in ("is asked", "has answered"):
        answered = which == "has answered"
        world.provider.wait_for(
            lambda call: call.run == run and f"-{role}-" in call.ask and (call.ended > 0) >= answered, _SECONDS
        )
        time.sleep(rng.random() * (0.7 if answered else world.provider.seconds))
    else:
        end = "status/READY_FOR_QA" if which == "is judged" else "status/APPROVED"
        world.until(lambda: world.line(run, end), _SECONDS)
        time.sleep(rng.random() * 0.7)


@contextmanager
def noted(world: World, what: str) -> Generator[None]:
    """Keep that a fault was there while something is done."""
    began = time.time()
    world.faults.append(Fault(what, began, float("inf")))
    at = len(world.faults) - 1
    yield
    world.faults[at] = Fault(what, began, time.time())


def _victim(world: World, rng: random.Random, run: str) -> Machine:
    """Return the machine that drives a run; any one where none does at this moment."""
    return world.owner(run) or rng.choice([each for each in world.machines.values() if each.worker])


def _killed(*, alone: bool) -> Round:
    def kill(world: World, rng: random.Random, name: str) -> None:
        (run,) = world.submit(name)
        moment(world, rng, run)
        machine = _victim(world, rng, run)
        with noted(world, "kill"):
            machine.kill(alone=alone)
        machine.start()

    return kill


def _frozen(*, alone: bool, dies: bool = False) -> Round:
    def freeze(world: World, rng: random.Random, name: str) -> None:
        (run,) = world.submit(name)
        moment(world, rng, run)
        machine = _victim(world, rng, run)
        with noted(world, "freeze"):
            machine.freeze(alone=alone)
            world.until(lambda: world.owner(run) is not machine, 20)
            time.sleep(rng.random() * 2)
            machine.thaw(rng.choice((0.0, rng.random() * 3)))
            if dies:
                other = world.owner(run)
                time.sleep(rng.random() * 1.5)
                machine.kill()
                if other is not None and other is not machine:
                    other.kill()
        for each in {machine, *(world.machines.values() if dies else ())}:
            if each.worker is None and each is not world.home:
                each.start()

    return freeze


def cut(world: World, rng: random.Random, name: str) -> None:
    """Cut all connections, as an operator does."""
    (run,) = world.submit(name)
    moment(world, rng, run)
    with noted(world, "cut"):
        for _ in range(rng.randint(1, 4)):
            world.server.cut_connections(world.address)
            time.sleep(rng.random() * 0.3)


def restart(world: World, rng: random.Random, name: str) -> None:
    """Have the server crash, and start it again."""
    (run,) = world.submit(name)
    moment(world, rng, run)
    with noted(world, "restart"):
        world.server.stop(immediate=True)
        time.sleep(rng.choice((0.0, rng.random() * 4)))
        world.server.start()


def full_disk(world: World, rng: random.Random, name: str) -> None:
    """Fill the disk on which the tables lie, for some seconds."""
    (run,) = world.submit(name)
    moment(world, rng, run)
    folder = world.server.folder / "disk"
    with noted(world, "full disk"):
        with suppress(OSError), (folder / "filled").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(64 * 1024))
        with suppress(psycopg.errors.DiskFull), psycopg.connect(world.address) as link:
            link.execute("CREATE TABLE public.large AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
            raise AssertionError("the disk is not full")
        time.sleep(1 + rng.random() * 5)
        (folder / "filled").unlink()


def clock(world: World, rng: random.Random, name: str) -> None:
    """Kill a worker whose clock is an hour off; it comes back with another clock."""
    (run,) = world.submit(name)
    moment(world, rng, run)
    machine = _victim(world, rng, run)
    with noted(world, "kill"):
        machine.kill()
    machine.start(hours_off=rng.choice((-1, 0, 1)))


def drain(world: World, rng: random.Random, name: str) -> None:
    """Ask a worker to end, as a deployment does: no call that was paid for is lost."""
    (run,) = world.submit(name)
    moment(world, rng, run)
    machine = _victim(world, rng, run)
    machine.end()
    machine.start()


def abandon(world: World, rng: random.Random, name: str) -> None:
    """End a run for good that a worker drives."""
    (run,) = world.submit(name, ends="abandoned")
    world.until(lambda: world.line(run, "run_started"), _SECONDS)
    world.provider.wait_for(lambda call: call.run == run, _SECONDS)
    time.sleep(rng.random() * 3)
    with noted(world, "abandon"):
        code, said = world.home.interlock("abandon", run)
    assert code == 0, said


FAULTS: Final[dict[str, Round]] = {
    "kill": _killed(alone=False),
    "kill-worker": _killed(alone=True),
    "freeze": _frozen(alone=False),
    "freeze-worker": _frozen(alone=True),
    "freeze-die": _frozen(alone=False, dies=True),
    "cut": cut,
    "restart": restart,
    "full-disk": full_disk,
    "clock": clock,
    "drain": drain,
    "abandon": abandon,
}


def why_not(fault: str) -> str:
    """Say what a fault lacks on this machine; empty for nothing."""
    if fault == "clock" and not FAKETIME.exists():
        return "libfaketime is not installed: apt-get install libfaketime"
    if fault == "full-disk" and os.geteuid() != 0:
        return "a small disk is mounted by root alone"
    return ""
