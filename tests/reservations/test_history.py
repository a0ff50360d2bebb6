"""The leases that the journal gives are those of the store, whatever happened."""

from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.journal import Journal
from interlock.reservations.errors import StoreError
from interlock.reservations.git.lease_history import look
from interlock.reservations.leases import fencing
from interlock.reservations.leases.fencing import NotCoveredError
from interlock.reservations.settings import Settings
from interlock.reservations.store import history, outbox, records
from interlock.reservations.store.history import RecordedEvent, history_of
from interlock.reservations.store.sqlite import SqliteStore
from tests.effort import examples
from tests.reservations.compared import compare
from tests.reservations.world import ROOT, START, World, ids

pytestmark = pytest.mark.usefixtures("each_store")

NAMES = ("ann", "bob", "cid")
PATTERNS = ("a", "b", "*", "src/x", "src/*", "src/**", "**/x")

names = st.sampled_from(NAMES)
patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("reserve"), names, patterns, st.booleans(), st.booleans(), st.sampled_from([0, 0.01])),
    st.tuples(st.just("release"), names, st.integers(0, 5)),
    st.tuples(st.just("release_all"), names),
    st.tuples(st.just("time"), st.sampled_from([0.25, 10, 31, 61, 125, 200])),
    st.tuples(st.just("end"), names),
    st.tuples(st.just("ask"), names, st.sampled_from(["a", "src/x"])),
    st.tuples(st.just("inbox"), names),
    st.tuples(st.just("guard"), names, st.sampled_from(["a", "src/x"]), st.sampled_from([1.0, 300.0])),
)


class Play:
    """Carries out steps in a world in which requests that time out take the lease."""

    def __init__(self) -> None:
        self.world = World(
            settings=Settings(
                ttl_minutes=2, dead_after_minutes=3, claim_minutes=0.5, escalation="force", urgent_timeout_minutes=0.5
            )
        )
        self.kinds: set[str] = set()
        self.pids = count(1000)

    def step(self, kind: str, *arguments: Any) -> None:
        world = self.world
        if kind == "time":
            world.now += arguments[0]
            return
        name, *rest = arguments
        calls = world.agent(name)
        if kind == "reserve":
            wanted, exclusive, no_force, wait = rest
            calls.reserve_files(wanted, exclusive=exclusive, no_force=no_force, wait_seconds=wait)
        elif kind == "release":
            held = [lease.reservation_id for lease in world.leases() if lease.agent == name]
            calls.release_files(held[rest[0] :][:1])
        elif kind == "release_all":
            calls.release_all()
        elif kind == "end":
            world.end_process(name)
            world.pids[name] = next(self.pids)
        elif kind == "ask":
            calls.negotiate_release(rest[0], "need it", urgency="urgent")
        elif kind == "inbox":
            calls.fetch_inbox()
        else:
            try:
                with fencing.guarded(world.agent(name), [rest[0]], hold_seconds=rest[1]):
                    pass
            except NotCoveredError:
                pass


@settings(max_examples=examples(150))
@given(st.lists(steps, min_size=5, max_size=40))
def test_what_the_events_give_is_what_the_store_holds_after_any_calls(calls: list[tuple[Any, ...]]) -> None:
    play = Play()
    for step in calls:
        play.step(*step)
        found = compare(look(play.world.store, [ROOT]), [], play.world.now)
        assert (found.verdict, found.differences) == ("same", ())
        assert found.leases == len(play.world.leases())


def test_every_ending_is_recorded_and_rebuilt_from_the_journal(tmp_path: Path) -> None:
    play = Play()
    steps_of_all: list[tuple[Any, ...]] = [
        ("reserve", "ann", ["a", "src/x"], True, False, 0),
        ("ask", "bob", "a"),
        ("time", 31),
        ("inbox", "bob"),
        ("release_all", "bob"),
        ("end", "ann"),
        ("reserve", "cid", ["src/x"], False, False, 0),
        ("reserve", "cid", ["src/x"], True, False, 0),
        ("reserve", "cid", ["src/**"], True, False, 0),
        ("time", 200),
        ("reserve", "bob", ["b"], True, False, 0),
    ]
    for step in steps_of_all:
        play.step(*step)
    journal = Journal(tmp_path / "events.jsonl")
    outbox.drain_events(play.world.store, ROOT, journal)
    every = history.history_of(history.from_journal(journal.entries())).leases
    assert {held.ending for held in every} >= {"", *history.ENDINGS.values(), "raised"}
    rebuilt = [held for held in every if held.ended_at is None]
    assert [(held.agent, held.pattern, held.token, held.expires_at) for held in rebuilt] == [
        (lease.agent, lease.pattern, lease.token, lease.expires_at) for lease in play.world.leases()
    ]
    found = compare(look(play.world.store, [ROOT]), journal.entries(), play.world.now)
    assert (found.verdict, found.leases, found.queued) == ("same", 1, 0)


# -- what differs, and what is not known -----------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    world = World()
    world.agent("ann").reserve_files(["a", "b"])
    return world


def test_a_lease_without_an_event_is_found(world: World) -> None:
    with world.store.transaction() as tx:
        (lease, _) = tx.leases()
        tx.drop_lease(lease.reservation_id)
    found = compare(look(world.store, [ROOT]), [], world.now)
    assert (found.verdict, [row.reservation_id for row in found.differences]) == ("differs", [lease.reservation_id])
    assert found.differences[0].found == "no such lease"


def test_a_lease_that_is_over_in_both_needs_no_event(world: World) -> None:
    with world.store.transaction() as tx:
        tx.drop_lease(tx.leases()[0].reservation_id)
    world.now += 15 * 60 - 1
    assert compare(look(world.store, [ROOT]), [], world.now).verdict == "differs"
    world.now += 1
    assert compare(look(world.store, [ROOT]), [], world.now).verdict == "same"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent", "bob"),
        ("pattern", "c"),
        ("exclusive", False),
        ("claim", True),
        ("token", 99),
        ("granted_at", START - 60),
        ("expires_at", START + 1),
    ],
)
def test_a_lease_that_was_changed_behind_the_events_is_found(world: World, name: str, value: object) -> None:
    with world.store.transaction() as tx:
        lease = tx.leases()[0]
        changed: dict[str, Any] = {name: value}
        tx.put_lease(records.replace(lease, **changed))
    found = compare(look(world.store, [ROOT]), [], world.now)
    assert [row.reservation_id for row in found.differences] == [lease.reservation_id]


def test_events_that_are_in_no_journal_here_leave_it_open(world: World, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    outbox.drain_events(world.store, ROOT, journal)
    assert compare(look(world.store, [ROOT]), [], world.now).verdict == "partial"
    assert compare(look(world.store, [ROOT]), journal.entries(), world.now).verdict == "same"


def test_missing_events_leave_open_only_what_is_held_otherwise_than_the_rest_gives(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    with world.store.transaction() as tx:
        tx.add_event(ROOT, "lease_released", "{}", world.now)
        tx.drop_events([tx.event_count()])
    found = compare(look(world.store, [ROOT]), [], world.now)
    assert (found.verdict, found.missing) == ("same", 1)
    with world.store.transaction() as tx:
        tx.put_lease(records.replace(tx.leases()[0], token=77))
    assert compare(look(world.store, [ROOT]), [], world.now).verdict == "partial"


def test_of_what_is_missing_the_time_is_known_as_far_as_its_neighbours_are() -> None:
    events = [RecordedEvent("s", number, "looked", {}, float(at)) for number, at in ((3, 30), (4, 40), (7, 70))]
    found = history_of(events, {"s": 8, "other": 2})
    assert found.missing == {"s": ((1, 2), (5, 6), (8, 8)), "other": ((1, 2),)}
    assert found.blind == ((-inf, 30.0), (40.0, 70.0), (70.0, inf), (-inf, inf))
    assert history_of(events[:0], {"s": 0}).missing == {}


def test_looking_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    world = World(store=SqliteStore(str(tmp_path / "store.sqlite")))
    world.agent("ann").reserve_files(["a"])
    before, stamp = world.queue(), world.store.stamp()
    assert compare(look(world.store, [ROOT]), [], world.now).verdict == "same"
    assert (world.queue(), world.store.stamp()) == (before, stamp)
    with world.store.transaction() as tx:
        assert tx.events("", 10) == []
    world.store.close()


def test_what_is_written_while_the_journals_are_read_does_not_count(world: World) -> None:
    seen = look(world.store, [ROOT])
    world.agent("bob").reserve_files(["c"])
    found = compare(seen, [], world.now)
    assert (found.verdict, found.leases, found.missing) == ("same", 2, 0)


def test_gaps_in_the_events_are_named(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    for number in (2, 3, 6):
        journal.append(outbox.JOURNAL_RUN, f"0123456789abcdef/{number}", "other", {"at": "2027-01-15T08:00:00Z"})
    found = history.history_of(history.from_journal(journal.entries()))
    assert found.missing == {"0123456789abcdef": ((1, 1), (4, 5))}


@pytest.mark.parametrize(
    ("key", "kind", "data"),
    [
        ("x", "lease_granted", {"at": "2027-01-15T08:00:00Z"}),
        ("s/1", "lease_granted", {}),
        ("s/1", "lease_granted", {"at": "yesterday"}),
        ("s/1", "lease_granted", {"at": "2027-01-15T08:00:00Z", "agent": "ann"}),
        ("s/1", "committed", {"at": "2027-01-15T08:00:00Z"}),
    ],
)
def test_a_line_this_package_never_wrote_is_refused(tmp_path: Path, key: str, kind: str, data: dict[str, Any]) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.append(outbox.JOURNAL_RUN, key, kind, data)
    with pytest.raises(StoreError):
        history.history_of(history.from_journal(journal.entries()))


def test_a_lease_of_which_only_the_renewal_is_known_counts_from_then_on(tmp_path: Path, world: World) -> None:
    world.now += 60
    (first, _) = ids(world.agent("ann").reserve_files(["a", "b"]))
    events = [event for event in world.queue() if event.type == "lease_renewed"]
    leases = history.history_of(history.from_queue("s", events)).leases
    (found,) = (held for held in leases if held.reservation_id == first)
    assert (found.since, found.exclusive, found.pattern) == (START + 60, None, "a")
