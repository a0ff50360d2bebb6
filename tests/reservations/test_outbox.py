"""From the store into the journal: every event once."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from interlock.journal import Entry, Journal
from interlock.reservations.store import outbox
from interlock.reservations.store.sqlite import SqliteStore
from tests.reservations.world import ROOT, World

pytestmark = pytest.mark.usefixtures("each_store")


@pytest.fixture
def world() -> World:
    world = World()
    world.agent("ann").reserve_files(["a", "b"])
    world.agent("bob").reserve_files(["a"])
    return world


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "events.jsonl")


def test_events_become_lines_of_the_journal_and_leave_the_queue(world: World, journal: Journal) -> None:
    assert outbox.drain_events(world.store, ROOT, journal) == 5
    lines = list(journal.entries(outbox.JOURNAL_RUN))
    assert [line.type for line in lines] == [
        "agent_joined",
        "lease_granted",
        "lease_granted",
        "agent_joined",
        "lease_refused",
    ]
    with world.store.transaction() as tx:
        store_id = tx.store_id()
    assert [line.key for line in lines] == [f"{store_id}/{number}" for number in range(1, 6)]
    assert (lines[1].data["pattern"], lines[1].data["token"]) == ("a", 1)
    assert lines[1].data["at"] == "2027-01-15T08:00:00Z"
    assert world.queue() == []


def test_without_events_no_journal_is_made(tmp_path: Path) -> None:
    assert outbox.drain_events(World().store, str(tmp_path)) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_journal_of_the_checkout_is_the_default(tmp_path: Path) -> None:
    world = World(store=SqliteStore(":memory:"))
    with world.store.transaction() as tx:
        tx.add_event(str(tmp_path), "lease_granted", "{}", 0)
        tx.add_event("/another", "lease_granted", "{}", 0)
    assert outbox.drain_events(world.store, str(tmp_path)) == 1
    lines = Journal(tmp_path / "artifacts" / "interlock" / "events.jsonl").entries()
    with world.store.transaction() as tx:
        assert [line.key for line in lines] == [f"{tx.store_id()}/1"]
        assert len(tx.events("/another", 10)) == 1


class Failing(Journal):
    """A journal whose process is killed before or after the lines are on the disk."""

    after = False

    def extend(
        self, run: str, events: Sequence[tuple[str, str, Mapping[str, Any]]], *, at: str = ""
    ) -> tuple[Entry, ...]:
        if self.after:
            super().extend(run, events, at=at)
        raise OSError("killed")


@pytest.mark.parametrize("after", [False, True])
def test_a_killed_drain_is_repeated_without_a_line_twice(world: World, journal: Journal, *, after: bool) -> None:
    failing = Failing(journal.path)
    failing.after = after
    with pytest.raises(OSError, match="killed"):
        outbox.drain_events(world.store, ROOT, failing)
    assert len(world.queue()) == 5
    assert outbox.drain_events(world.store, ROOT, journal) == 5
    assert len({line.key for line in journal.entries()}) == len(list(journal.entries())) == 5


def test_two_drains_at_once_write_every_event_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BATCH", 7)
    world = World()
    for number in range(100):
        world.agent("ann").reserve_files([f"f{number}"])
    barrier = Barrier(2)

    def drain(journal: Journal) -> None:
        barrier.wait(10)
        outbox.drain_events(world.store, ROOT, journal)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(drain, [Journal(tmp_path / "events.jsonl") for _ in range(2)]))
    assert len(list(Journal(tmp_path / "events.jsonl").entries())) == 101
    assert world.queue() == []


def test_the_journal_is_not_loaded_by_the_rules() -> None:
    program = "import sys, interlock.reservations.leases.fencing as a, interlock.reservations.store.outbox as b\n"
    program += "import interlock.reservations.service\n"
    program += "print(sorted(m for m in sys.modules if m.startswith(('interlock.journal', 'pathlib', 'subprocess'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
