"""SIGKILL in the middle of writes to the store: what was acknowledged is there, nothing is half there."""

import random
import signal
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

import pytest

from interlock.reservations import SqliteStore
from tests.child import Child, python

MAX_SECONDS = 0.03
"""A kill comes at a random moment of so long after an acknowledgement; one transaction takes a millisecond."""

HOT_JOURNAL = bytes.fromhex("d9d505f920a163d7")

WRITER = """
import sys
from interlock.reservations.store.records import Lease, Message
from interlock.reservations import SqliteStore
store, name = SqliteStore(sys.argv[1]), sys.argv[2]
while True:
    with store.transaction() as tx:
        number = tx.next_number("token")
        text = f"{number} " * (number % 700)
        tx.put_lease(Lease(f"rsv_{number}", name, text, "src/", True, False, False, "", number, 1.0, 1.0, 2.0))
        tx.add_message(Message(0, f"neg_{number}", name, name, "", "low", False, None, text, 1.0, None))
        tx.add_event("/one", "lease_granted", text, float(number))
        if number % 3 == 0:
            tx.drop_lease(f"rsv_{number - 2}")
            tx.remember("any", f"dropped {number - 2}", "", 1.0)
    print(number, flush=True)
"""


def kill_after(writer: Child, acknowledged: int, seconds: float) -> list[int]:
    """Kill a writer some moment after so many acknowledgements, and return all that it gave."""
    first = [int(writer.line()) for _ in range(acknowledged)]
    timer = Timer(seconds, writer.kill)
    timer.start()
    # Half a line is no acknowledgement.
    rest = [int(line) for line in writer.rest().splitlines(keepends=True) if line.endswith("\n")]
    timer.join()
    assert writer.returncode == -signal.SIGKILL
    return first + rest


def check(path: Path, acknowledged: Sequence[int], kills: int) -> None:
    """Read the store as a program that starts after the kills, and compare the tables with what was acknowledged."""
    with SqliteStore(str(path)).transaction() as tx:
        events = {int(event.at): event.data for event in tx.events("/one", 10**9)}
        leases = {lease.token: lease.pattern for lease in tx.leases()}
        messages = {number: [each.body for each in tx.thread(f"neg_{number}")] for number in events}
        dropped = {number for number in events if tx.remembered("any", f"dropped {number}") is not None}
    assert set(events) >= set(acknowledged)
    assert len(set(acknowledged)) == len(acknowledged)
    # A number that was not acknowledged was under way when its writer was killed: one for each kill at most.
    assert len(events) - len(acknowledged) <= kills
    assert set(events) == set(range(1, len(events) + 1))
    assert all(text == f"{number} " * (number % 700) for number, text in events.items())
    assert messages == {number: [text] for number, text in events.items()}
    assert dropped == {number - 2 for number in events if number % 3 == 0}
    assert leases == {number: text for number, text in events.items() if number not in dropped}
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def kill(path: Path, rounds: int, writers: int, seed: int) -> int:
    """Kill writers one after the other in each round, and check; return in how many rounds one was undone."""
    rng = random.Random(seed)
    acknowledged: list[int] = []
    undone = 0
    for number in range(rounds):
        running = [python(WRITER, path, f"writer-{number}-{each}") for each in range(writers)]
        for writer in running:
            acknowledged += kill_after(writer, rng.randint(1, 4), rng.random() * MAX_SECONDS)
        journal = path.with_name(f"{path.name}-journal")
        undone += journal.exists() and journal.read_bytes()[:8] == HOT_JOURNAL
        check(path, acknowledged, (number + 1) * writers)
    return undone


def test_writers_killed_a_few_times_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    kill(tmp_path / "reservations.sqlite", rounds=2, writers=3, seed=1)


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_writers_killed_two_hundred_times_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    undone = sum(kill(tmp_path / f"{seed}.sqlite", rounds=10, writers=2, seed=seed) for seed in range(10))
    print(f"200 kills; {undone} of 100 rounds left a transaction that the next program had to undo")
    # A write-ahead log has no such mark: what was not committed is simply not read.
    assert undone > 0
