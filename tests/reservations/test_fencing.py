"""Acting under one's leases: checked in one transaction, and nobody takes them meanwhile."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.reservations.leases.fencing import NotCoveredError, guarded
from interlock.reservations.leases.runtime import Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import replace
from interlock.reservations.store.sqlite import SqliteStore
from tests.child import python
from tests.reservations.world import World, codes, ids
from tests.table import each_row

pytestmark = pytest.mark.usefixtures("each_store")


def act(world: World, name: str, *paths: str, hold_seconds: float | None = None) -> dict[str, int]:
    with guarded(world.agent(name), paths, hold_seconds=hold_seconds) as guard:
        return guard.tokens


def refusal(world: World, name: str, path: str) -> dict[str, object]:
    with pytest.raises(NotCoveredError) as caught:
        act(world, name, path)
    (error,) = caught.value.errors
    return {**error}


@pytest.mark.parametrize("hold_seconds", [None, 60])
def test_an_action_gets_the_tokens_of_the_leases_that_cover_its_paths(world: World, hold_seconds: float | None) -> None:
    world.agent("ann").reserve_files(["src/**", "[[]x].py"])
    tokens = act(world, "ann", "src/a.py", "src/b.py", "[x].py", hold_seconds=hold_seconds)
    assert tokens == {"src/a.py": 2, "src/b.py": 2, "[x].py": 1}


@pytest.mark.parametrize("hold_seconds", [None, 60])
def test_path_without_own_exclusive_lease_is_refused_and_nothing_runs(world: World, hold_seconds: float | None) -> None:
    world.agent("ann").reserve_files(["a"])
    world.agent("ann").reserve_files(["shared"], exclusive=False)
    world.agent("bob").reserve_files(["b"])
    ran: list[bool] = []
    with (
        pytest.raises(NotCoveredError) as caught,
        guarded(world.agent("ann"), ["a", "shared", "b", "free", "../x"], hold_seconds=hold_seconds),
    ):
        ran.append(True)
    assert ran == []
    found = [(row["code"], row["place"]) for row in caught.value.errors]
    assert found == [("RSV206", "shared"), ("RSV206", "b"), ("RSV206", "free"), ("RSV101", "../x")]
    assert len(world.events("guard_refused")) == 1


def test_a_refusal_says_who_holds_the_path_now(world: World) -> None:
    world.agent("bob").reserve_files(["src/**"])
    error = refusal(world, "ann", "src/a.py")
    assert isinstance(error["conflict"], dict)
    assert error["conflict"]["holder"] == "bob"
    assert "conflict" not in refusal(world, "ann", "free")


def test_a_lease_that_ended_covers_nothing_though_its_holder_believes_in_it(world: World) -> None:
    world.agent("ann").reserve_files(["a"], ttl_minutes=1)
    world.now += 60
    refusal(world, "ann", "a")
    world.agent("bob").reserve_files(["a"])
    refusal(world, "ann", "a")


def test_nobody_gets_into_the_store_while_a_short_action_runs(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    with guarded(world.agent("ann"), ["a"]), pytest.raises(RuntimeError, match="transaction is open"):
        world.agent("bob").reserve_files(["a"])


def test_an_action_that_fails_leaves_the_store_as_it_was_and_its_error_comes_out(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    before = world.leases()
    for hold_seconds in (None, 9000.0):
        with pytest.raises(ZeroDivisionError), guarded(world.agent("ann"), ["a"], hold_seconds=hold_seconds):
            _ = 1 / 0
    assert [replace(lease, expires_at=0) for lease in world.leases()] == [replace(before[0], expires_at=0)]


def test_a_held_lease_outlives_its_time_and_is_not_taken_by_force_or_from_the_silent() -> None:
    world = World(settings=Settings(escalation="force"))
    world.agent("ann").reserve_files(["a"], ttl_minutes=1)
    world.agent("bob").negotiate_release("a", "please", "urgent")
    with guarded(world.agent("ann"), ["a"], hold_seconds=3600) as guard:
        world.now += 1000
        world.agent("bob").fetch_inbox()
        assert codes(world.agent("bob").reserve_files(["a"])) == ["RSV201"]
        guard.confirm()
    assert [(lease.agent, lease.no_force) for lease in world.leases()] == [("ann", False)]


def test_an_action_that_was_held_up_beyond_its_lease_does_not_take_effect(world: World) -> None:
    world.agent("ann").reserve_files(["a"], ttl_minutes=1)
    with guarded(world.agent("ann"), ["a"], hold_seconds=60) as guard:
        world.now += 61
        world.agent("bob").reserve_files(["a"])
        with pytest.raises(NotCoveredError) as caught:
            guard.confirm()
    assert [row["code"] for row in caught.value.errors] == ["RSV206"]
    assert [(lease.agent, lease.no_force) for lease in world.leases()] == [("bob", False)]


PAUSED = """
import sys
from contextlib import suppress
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.leases.fencing import NotCoveredError, guarded
from interlock.reservations.service import Reservations
from interlock.reservations import SqliteStore

mine = Reservations(Runtime(SqliteStore(sys.argv[1])), Caller("paused", "agent", sys.argv[2], "run"))
answer = mine.reserve_files(["file"], ttl_minutes=0.02)
print("reserved", len(answer["reservations"]), flush=True)
sys.stdin.readline()
try:
    with guarded(mine, ["file"]):
        open(sys.argv[2] + "/file", "w").write("paused")
    print("written", flush=True)
except NotCoveredError as error:
    print(error.errors[0]["code"], error.errors[0]["conflict"]["holder"], flush=True)
"""


def test_a_process_that_was_stopped_past_its_lease_cannot_write_through_the_guard(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    with python(PAUSED, path, tmp_path) as paused:
        assert paused.line() == "reserved 1\n"
        os.kill(paused.pid, signal.SIGSTOP)
        try:
            other = Reservations(Runtime(SqliteStore(path)), replace(World().caller("other"), root=str(tmp_path)))
            assert len(ids(other.reserve_files(["file"], wait_seconds=30))) == 1
            (tmp_path / "file").write_text("other")
        finally:
            os.kill(paused.pid, signal.SIGCONT)
        paused.say("go")
        assert paused.line() == "RSV206 other\n"
    assert (tmp_path / "file").read_text() == "other"


@each_row("seconds", [(3600, 3000), (3000, 3600), (3600, 3600)])
@each_row("ends_first", [0, 1])
def test_two_actions_under_one_lease_are_protected_until_each_ends(seconds: tuple[int, int], ends_first: int) -> None:
    world = World(settings=Settings(escalation="force", urgent_timeout_minutes=1))
    world.agent("ann").reserve_files(["a"])
    actions = [guarded(world.agent("ann"), ["a"], hold_seconds=each) for each in seconds]
    for action in actions:
        action.__enter__()
    actions.pop(ends_first).__exit__(None, None, None)
    world.agent("bob").negotiate_release("a", "why", "urgent")
    world.now += 120
    (late,) = world.agent("bob").fetch_inbox()["negotiation_timeouts"]
    assert (late["state"], late["holder"]) == ("expired", "ann")
    actions.pop().__exit__(None, None, None)


def test_the_protection_of_an_action_ends_with_it() -> None:
    world = World(settings=Settings(escalation="force", urgent_timeout_minutes=1))
    world.agent("ann").reserve_files(["a"])
    act(world, "ann", "a", hold_seconds=3600)
    world.agent("bob").negotiate_release("a", "why", "urgent")
    world.now += 120
    (late,) = world.agent("bob").fetch_inbox()["negotiation_timeouts"]
    assert late["state"] == "forced"


def test_an_action_that_was_killed_protects_its_lease_no_longer_than_it_said() -> None:
    world = World(settings=Settings(escalation="force", urgent_timeout_minutes=1))
    ann = world.agent("ann")
    ann.reserve_files(["a"], ttl_minutes=60)
    killed = guarded(world.agent("ann"), ["a"], hold_seconds=90)
    killed.__enter__()
    world.agent("bob").negotiate_release("a", "why", "urgent")
    states: list[str] = []
    for _ in range(2):
        world.now += 70
        ann.my_reservations()
        states += [late["state"] for late in world.agent("bob").fetch_inbox()["negotiation_timeouts"]]
    assert states == ["expired", "forced"]
    with suppress(RuntimeError):
        killed.__exit__(RuntimeError, RuntimeError(), None)


def test_an_action_that_lengthens_its_lease_is_an_event_and_one_that_does_not_is_none(world: World) -> None:
    ann = world.agent("ann")
    ann.reserve_files(["a"], ttl_minutes=5)
    for _ in range(3):
        act(world, "ann", "a", hold_seconds=60)
    assert world.events("lease_renewed") == []
    for _ in range(3):
        act(world, "ann", "a", hold_seconds=600)
    (renewed,) = world.events("lease_renewed")
    assert (renewed["held"], renewed["expires_at"]) == (True, world.now + 600)


def test_who_acts_for_longer_than_its_claim_lasts_has_an_ordinary_lease(world: World, held: list[str]) -> None:
    world.agent("bob").negotiate_release("a", "please")
    world.agent("ann").release_files(held)
    act(world, "bob", "a", hold_seconds=600)
    assert [(lease.claim, lease.expires_at) for lease in world.leases()] == [(False, world.now + 600)]


def test_an_action_leaves_no_force_as_its_holder_has_it(world: World, ann: Reservations) -> None:
    ann.reserve_files(["a"])
    with guarded(world.agent("ann"), ["a"], hold_seconds=60):
        assert [row["no_force"] for row in ann.my_reservations()["reservations"]] == [False]
        ann.reserve_files(["a"], no_force=True)
    assert [row["no_force"] for row in ann.my_reservations()["reservations"]] == [True]
    act(world, "ann", "a", hold_seconds=60)
    assert [lease.no_force for lease in world.leases()] == [True]
