"""The wait queue: first come, first served, for all patterns of a call together."""

from typing import Any

import pytest

from interlock.reservations.leases import calls as leases
from interlock.reservations.leases import granting, wait_queue
from interlock.reservations.leases.granting import Wanted
from interlock.reservations.leases.runtime import Caller
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import replace
from tests.reservations.world import HOST, ROOT, World, codes, ids

pytestmark = pytest.mark.usefixtures("each_store")


def wait(world: World, name: str, *patterns: str, seconds: float = 60) -> None:
    """Put an agent at the end of the queue, as a call does that gave up at once."""
    wanted = Wanted(tuple(map(granting.pattern_of, sorted(patterns))), True, False, "", 900)
    with leases.entered(world.agent(name)) as entry:
        wait_queue.join(entry, wanted, world.now + seconds)


def test_a_waiting_call_gets_what_is_released_while_it_waits(world: World, held: list[str]) -> None:
    world.pauses = [lambda: None, lambda: world.agent("ann").release_files(held)]
    (lease,) = world.agent("bob").reserve_files(["a"], wait_seconds=10)["reservations"]
    assert (lease["holder"], lease["claim"], lease["expires_in_seconds"]) == ("bob", False, 900)
    assert world.waiters() == []
    assert [message.read_at is not None for message in world.messages("bob", "granted")] == [True]


def test_a_waiting_call_ends_at_its_deadline_and_keeps_its_place_a_little_longer(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    begun = world.now
    answer = world.agent("bob").reserve_files(["a"], wait_seconds=10)
    assert codes(answer) == ["RSV201"]
    assert world.now - begun == pytest.approx(10)
    assert answer.get("waiting", {})["position"] == 1
    world.now += 59
    world.look()
    assert world.waiters() == ["bob"]
    world.now += 1.1
    world.look()
    assert world.waiters() == []


def test_a_waiting_call_is_granted_when_the_lease_expires_though_nobody_else_calls(world: World) -> None:
    world.agent("ann").reserve_files(["a"], ttl_minutes=0.1)
    begun = world.now
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=20)) == []
    assert world.now - begun == pytest.approx(6, abs=0.1)


def test_a_waiting_call_takes_over_when_the_holder_dies_meanwhile(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    world.pauses = [lambda: world.end_process("ann")]
    begun = world.now
    answer = world.agent("bob").reserve_files(["a"], wait_seconds=20)
    assert [row["holder"] for row in answer.get("taken_over", [])] == ["ann"]
    assert world.now - begun <= wait_queue.LOOK_SECONDS + 0.1


def test_an_exception_while_waiting_gives_the_place_up(world: World) -> None:
    world.agent("ann").reserve_files(["a"])

    def interrupt() -> None:
        raise KeyboardInterrupt

    world.pauses = [interrupt]
    with pytest.raises(KeyboardInterrupt):
        world.agent("bob").reserve_files(["a"], wait_seconds=20)
    assert world.waiters() == []


def test_what_is_released_goes_to_the_first_in_the_queue(world: World, held: list[str]) -> None:
    for name in ("bob", "cid", "dee"):
        wait(world, name, "a")
    world.agent("ann").release_files(held)
    assert [(lease.agent, lease.claim) for lease in world.leases()] == [("bob", True)]
    assert world.waiters() == ["cid", "dee"]


def test_a_waiter_without_a_call_gets_a_short_claim_and_one_message(world: World, held: list[str]) -> None:
    wait(world, "bob", "a")
    world.agent("ann").release_files(held)
    for _ in range(3):
        world.look()
    assert len(world.messages("bob", "granted")) == 1
    (claim,) = world.leases()
    assert claim.expires_at == world.now + 120
    (lease,) = world.agent("bob").reserve_files(["a"])["reservations"]
    assert (lease["reservation_id"], lease["token"], lease["claim"]) == (claim.reservation_id, claim.token, False)
    assert lease["expires_in_seconds"] == 900


@pytest.mark.parametrize("got", [["a"], ["a", "b"], ["**"]])
def test_who_got_the_file_in_another_way_leaves_the_queue_and_is_not_notified(world: World, got: list[str]) -> None:
    world.agent("ann").reserve_files(["a"])
    bob = world.agent("bob")
    bob.negotiate_release("a", "please")
    world.end_process("ann")
    assert codes(bob.reserve_files(got)) == []
    with world.store.transaction() as tx:
        assert tx.waiters() == []
    assert world.messages("bob", "granted") == []
    assert world.events("waiter_granted") == []


def test_clocks_that_drift_apart_do_not_make_a_waiting_call_write_at_each_look(world: World) -> None:
    """Each write wakes everybody else who waits."""
    world.agent("ann").reserve_files(["a"])
    seen: set[float] = set()

    def note() -> None:
        with world.store.transaction() as tx:
            seen.update(waiter.until for waiter in tx.waiters())

    world.pauses = [note] * 400
    bob = world.agent("bob")
    bob.runtime = replace(bob.runtime, monotonic=lambda: world.waited * 0.999)
    bob.reserve_files(["a"], wait_seconds=10)
    assert len(seen) == 1


def test_a_wait_ends_in_its_time_when_the_clock_is_set_back(world: World) -> None:
    """Clients give up after a minute, whatever the clock says."""
    world.agent("ann").reserve_files(["x"], ttl_minutes=60)
    bob = world.agent("bob")
    waited = 0.0

    def pause(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        world.now += seconds - (3600 if waited == seconds else 0)
        assert waited < 60

    bob.runtime = replace(bob.runtime, pause=pause, monotonic=lambda: waited)
    assert codes(bob.reserve_files(["x"], wait_seconds=5)) == ["RSV201"]


def test_a_claim_that_nobody_picks_up_goes_to_the_next(world: World, held: list[str]) -> None:
    world.settings = Settings(claim_minutes=0.5)
    wait(world, "bob", "a")
    wait(world, "cid", "a")
    world.agent("ann").release_files(held)
    world.now += 30
    world.look()
    assert [lease.agent for lease in world.leases()] == ["cid"]


def test_a_newcomer_queues_behind_whoever_waits_in_front_even_when_the_file_is_free(world: World) -> None:
    world.agent("ann").reserve_files(["b"])
    wait(world, "bob", "a", "b")
    error: Any = world.agent("cid").reserve_files(["a"])["errors"][0]
    assert (error["code"], error["conflict"]["holder"], error["conflict"]["waiting"]) == ("RSV201", "bob", True)
    assert world.agent("cid").check_conflicts(["a"])["clear"] == []
    assert codes(world.agent("cid").reserve_files(["c"])) == []


def test_a_wide_pattern_is_not_starved_by_narrow_ones(world: World) -> None:
    names = ["n1", "n2"]
    held = ids(world.agent("n1").reserve_files(["src/1"]))
    wait(world, "wide", "src/**")
    for number in range(20):
        name = names[number % 2]
        assert codes(world.agent(name).reserve_files([f"src/new{number}"])) == ["RSV201"]
    world.agent("n1").release_files(held)
    assert [(lease.agent, lease.pattern) for lease in world.leases()] == [("wide", "src/**")]


def test_shared_waiters_are_granted_together(world: World, held: list[str]) -> None:
    for name in ("bob", "cid"):
        world.agent(name).reserve_files(["a"], exclusive=False, wait_seconds=0.01)
    world.agent("ann").release_files(held)
    assert sorted(lease.agent for lease in world.leases()) == ["bob", "cid"]


def test_asking_again_for_the_same_keeps_the_place(world: World) -> None:
    world.agent("ann").reserve_files(["a", "b"])
    wait(world, "bob", "a", "b")
    wait(world, "cid", "a")
    world.now += 50
    world.agent("bob").reserve_files(["b", "a"])
    world.now += 50
    wait(world, "cid", "a")
    assert world.waiters() == ["bob", "cid"]


def test_a_waiter_whose_process_ended_is_passed_over(world: World, held: list[str]) -> None:
    wait(world, "bob", "a")
    wait(world, "cid", "a")
    world.end_process("bob")
    world.agent("ann").release_files(held)
    assert [lease.agent for lease in world.leases()] == ["cid"]


def test_a_grant_from_the_queue_does_not_lengthen_what_the_waiter_holds(world: World) -> None:
    world.agent("bob").reserve_files(["b"], ttl_minutes=5)
    held = ids(world.agent("ann").reserve_files(["a"]))
    wait(world, "bob", "a", "b")
    world.now += 30
    world.agent("ann").release_files(held)
    rows = {lease.pattern: (lease.claim, lease.expires_at - world.now) for lease in world.leases()}
    assert rows == {"a": (True, 120), "b": (False, 270)}


def test_a_shared_lease_that_is_raised_from_the_queue_is_no_claim(world: World) -> None:
    world.agent("bob").reserve_files(["a"], exclusive=False)
    held = ids(world.agent("ann").reserve_files(["a"], exclusive=False))
    wait(world, "bob", "a")
    world.agent("ann").release_files(held)
    (lease,) = world.leases()
    assert (lease.agent, lease.exclusive, lease.claim, lease.expires_at - world.now) == ("bob", True, False, 900)


def test_the_place_of_a_call_ends_with_it_and_the_lingering_if_it_was_killed(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    until: list[float] = []

    def note() -> None:
        with world.store.transaction() as tx:
            until.extend(waiter.until for waiter in tx.waiters())

    begun = world.now
    world.pauses = [note]
    world.agent("bob").reserve_files(["a"], wait_seconds=10)
    assert until == [begun + 10 + 60]


def test_a_wait_ends_when_the_store_changes_or_the_time_has_come(world: World) -> None:
    begun, stamp = world.now, world.store.stamp()
    wait_queue.until_changed(world.runtime, stamp, 1)
    assert world.now == pytest.approx(begun + 1)
    world.pauses = [lambda: None, world.look]
    wait_queue.until_changed(world.runtime, stamp, 1000)
    assert world.now < begun + 2


def test_a_refusal_about_somebody_in_front_names_what_it_waits_for(world: World) -> None:
    world.agent("ann").reserve_files(["lib/x", "src/app.py"])
    wait(world, "bob", "lib/x", "src/app.py")
    refusals = world.agent("cid").reserve_files(["src/**", "lib/*"])["errors"]
    waiting_for = [row["conflict"]["held_pattern"] for row in refusals if "conflict" in row]
    assert waiting_for == ["lib/x", "src/app.py"]
    world.agent("ann").release_all()
    assert world.waiters() == []


def test_a_waiter_in_front_is_shown_with_its_own_pattern(world: World) -> None:
    world.agent("ann").reserve_files(["src/app.py"])
    wait(world, "bob", "lib/x", "src/app.py")
    ann = world.agent("ann")
    (conflict,) = ann.check_conflicts(["lib/**"])["conflicts"]
    assert (conflict["holder"], conflict["held_pattern"], conflict.get("waiting")) == ("bob", "lib/x", True)
    (refusal,) = ann.reserve_files(["lib/**"])["errors"]
    assert "lib/x" in refusal["found"]
    assert refusal.get("conflict", {}).get("held_pattern") == "lib/x"


def test_a_wait_that_is_over_leaves_the_place_of_a_negotiation_as_long_as_it_was(world: World) -> None:
    world.agent("ann").reserve_files(["a"], ttl_minutes=60)
    bob = world.agent("bob")
    bob.negotiate_release("a", "why", "low")
    bob.reserve_files(["a"], wait_seconds=5)
    world.now += 600
    world.look("ann")
    assert world.waiters() == ["bob"]


# -- who is not there --------------------------------------------------------------------------------------------------


def in_queue(world: World, name: str, pattern: str, pid: int | None = None) -> Reservations:
    """Let an agent ask for what is held, from a shell (no process is known) or from a client."""
    calls = Reservations(world.runtime, Caller(name, "agent", ROOT, "mcp", HOST if pid else "", pid, "once"))
    assert calls.negotiate_release(pattern, "need it")["status"] == "pending"
    return calls


def test_who_is_silent_and_not_known_to_run_is_passed_over_and_gets_it_when_it_calls_again(world: World) -> None:
    ann, cid = world.agent("ann"), world.agent("cid")
    ann.reserve_files(["a.py"])
    fay = in_queue(world, "fay", "a.py")
    world.now += 6 * 60
    ann.release_all()
    assert world.leases() == []
    assert world.waiters() == ["fay"]
    assert cid.reserve_files(["a.py"])["errors"] == []
    cid.release_all()
    fay.fetch_inbox()
    assert [(lease.agent, lease.claim) for lease in world.leases()] == [("fay", True)]


def test_the_next_in_the_queue_gets_what_somebody_silent_would_have_had(world: World, ann: Reservations) -> None:
    ann.reserve_files(["a.py"])
    in_queue(world, "fay", "a.py")
    world.now += 6 * 60
    ann.my_reservations()
    in_queue(world, "bob", "a.py")
    ann.release_all()
    assert [lease.agent for lease in world.leases()] == ["bob"]


def test_who_is_silent_but_runs_gets_it_in_its_turn(world: World, ann: Reservations) -> None:
    ann.reserve_files(["a.py"])
    in_queue(world, "fay", "a.py", pid=77)
    world.now += 6 * 60
    ann.release_all()
    assert [lease.agent for lease in world.leases()] == ["fay"]


def test_a_wait_that_is_over_says_which_place_is_kept_and_the_call_that_goes_on(world: World) -> None:
    world.agent("ann").reserve_files(["a.py", "b.py"])
    bob = world.agent("bob")
    answer = bob.reserve_files(["a.py", "b.py"], wait_seconds=3)
    for error in answer["errors"]:
        assert "place 1" in error["fix"]
        assert error.get("next") == {
            "tool": "reserve_files",
            "arguments": {"patterns": ["a.py", "b.py"], "wait_seconds": world.settings.max_wait_seconds},
        }
    kept = world.waiters()
    bob.reserve_files(["a.py", "b.py"], wait_seconds=3)
    assert world.waiters() == kept == ["bob"]
