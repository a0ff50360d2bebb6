"""Leases between real processes on one store: the queue keeps its order, and nothing is held twice."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from interlock.reservations import process
from interlock.reservations.leases import wait_queue
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from tests.conftest import ROOT
from tests.reservations.databases import named
from tests.reservations.world import ids

PEOPLE = """
import os, sys
from interlock.reservations import process
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from tests.reservations.databases import named

folder, store, name = sys.argv[1:4]
caller = Caller(name, "agent", folder, "run", process.host(), os.getpid())
agent = Reservations(Runtime(named(store)), caller)
"""

WAITER = (
    PEOPLE
    + """
answer = agent.reserve_files(["a"], wait_seconds=45)
assert answer["errors"] == [], answer
with open(folder + "/log", "a") as log:
    log.write(name + "\\n")
agent.release_files([row["reservation_id"] for row in answer["reservations"]])
"""
)

BACK_AND_FORTH = (
    PEOPLE
    + """
patterns = sys.argv[4:]
for turn in range(25):
    answer = agent.reserve_files(patterns, wait_seconds=45)
    assert answer["errors"] == [], answer
    assert sorted(row["pattern"] for row in answer["reservations"]) == sorted(patterns), answer
    for pattern in patterns:
        os.close(os.open(f"{folder}/{pattern}.held", os.O_CREAT | os.O_EXCL))
    for pattern in patterns:
        os.unlink(f"{folder}/{pattern}.held")
    agent.release_files([row["reservation_id"] for row in answer["reservations"]])
"""
)


Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give a store in a file, and then one in a database."""
    return (
        str(tmp_path / "store.sqlite") if request.param == "sqlite" else request.getfixturevalue("empty_reservations")
    )


@pytest.fixture
def start(tmp_path: Path, store: str) -> Iterator[Start]:
    """Start a program with the folder, the store and further arguments; none outlives the test."""
    people: list[subprocess.Popen[str]] = []

    def run(program: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, str(tmp_path), store, *arguments]
        people.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True))
        return people[-1]

    yield run
    for person in people:
        person.kill()
        person.communicate()


def here(folder: Path, store: str) -> Reservations:
    caller = Caller("holder", "agent", str(folder), "run", process.host(), os.getpid())
    return Reservations(Runtime(named(store)), caller)


def await_queue(agent: Reservations, length: int) -> None:
    """Return as soon as that many wait."""
    until = agent.runtime.monotonic() + 30
    while True:
        stamp = agent.runtime.store.stamp()
        with agent.runtime.store.transaction() as tx:
            if len(tx.waiters()) == length:
                return
        assert agent.runtime.monotonic() < until, f"no {length} in the queue after 30 seconds"
        wait_queue.until_changed(agent.runtime, stamp, 1)


def test_eight_processes_are_served_in_order_and_a_killed_one_is_passed_over(
    tmp_path: Path, store: str, start: Start
) -> None:
    holder = here(tmp_path, store)
    held = ids(holder.reserve_files(["a"]))
    waiting: list[subprocess.Popen[str]] = []
    for number in range(8):
        waiting.append(start(WAITER, f"p{number}"))
        await_queue(holder, number + 1)
    for killed in (waiting.pop(3), waiting.pop(0)):
        killed.kill()
        killed.wait(10)
    holder.release_files(held)
    for waiter in waiting:
        _, errors = waiter.communicate(timeout=40)
        assert errors == ""
    assert (tmp_path / "log").read_text().split() == ["p1", "p2", "p4", "p5", "p6", "p7"]


@pytest.mark.parametrize("orders", [(["a", "b"], ["b", "a"]), (["a", "b", "c"], ["c", "a"], ["b", "c"])])
def test_agents_that_want_the_same_files_in_another_order_never_lock_each_other_out(
    tmp_path: Path, store: str, start: Start, orders: tuple[list[str], ...]
) -> None:
    people = [start(BACK_AND_FORTH, f"p{number}", *order) for number, order in enumerate(orders)]
    for person in people:
        _, errors = person.communicate(timeout=60)
        assert (person.returncode, errors) == (0, "")
    with here(tmp_path, store).runtime.store.transaction() as tx:
        assert (tx.leases(), tx.waiters()) == ([], [])
