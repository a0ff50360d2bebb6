"""Circles of agents that wait for each other: refused at once, and reported to all of them once."""

import pytest

from interlock.reservations.leases import calls, deadlock
from tests.reservations.test_wait_queue import wait
from tests.reservations.world import World, codes


def hold(world: World, **files: str) -> None:
    for name, file in files.items():
        assert codes(world.agent(name).reserve_files([file])) == []


def test_an_agent_that_would_close_a_circle_is_refused_at_once_and_the_other_is_notified(world: World) -> None:
    hold(world, ann="a", bob="b")
    wait(world, "ann", "b")
    begun = world.now
    (error,) = world.agent("bob").reserve_files(["a"], wait_seconds=45)["errors"]
    assert (error["code"], world.now) == ("RSV204", begun)
    assert [len(world.messages(name, "deadlock")) for name in ("ann", "bob")] == [1, 0]
    assert world.waiters() == ["ann"]


def test_a_call_that_does_not_wait_closes_no_circle(world: World) -> None:
    hold(world, ann="a", bob="b")
    wait(world, "ann", "b")
    assert codes(world.agent("bob").reserve_files(["a"])) == ["RSV201"]
    assert world.messages("ann", "deadlock") == []


def test_a_circle_is_reported_once_for_as_long_as_it_lasts(world: World) -> None:
    hold(world, ann="a", bob="b")
    wait(world, "ann", "b")
    for _ in range(3):
        world.agent("bob").reserve_files(["a"], wait_seconds=1)
    assert len(world.messages("ann", "deadlock")) == 1
    world.agent("ann").release_all()
    hold(world, ann="a")
    wait(world, "ann", "b")
    world.agent("bob").reserve_files(["a"], wait_seconds=1)
    assert len(world.messages("ann", "deadlock")) == 2


@pytest.mark.parametrize("size", [3, 4, 10])
def test_a_long_circle_is_found_and_every_other_member_is_notified(world: World, size: int) -> None:
    names = [f"agent{number}" for number in range(size)]
    hold(world, **{name: f"f{number}" for number, name in enumerate(names)})
    for number, name in enumerate(names[:-1]):
        wait(world, name, f"f{number + 1}")
    assert codes(world.agent(names[-1]).reserve_files(["f0"], wait_seconds=45)) == ["RSV204"]
    assert [len(world.messages(name, "deadlock")) for name in names] == [1] * (size - 1) + [0]


def test_the_circle_begins_with_the_caller_and_names_everybody_in_order_and_a_chain_is_none(world: World) -> None:
    hold(world, ann="a", bob="b", cid="c")
    wait(world, "ann", "b")
    wait(world, "bob", "c")
    for name, found in (("cid", ("cid", "ann", "bob")), ("dee", ())):
        with calls.entered(world.agent(name)) as entry:
            assert deadlock.circle(entry, ["ann"]) == found
    assert codes(world.agent("dee").reserve_files(["a"], wait_seconds=1)) == ["RSV201"]


def test_waiting_behind_somebody_in_the_queue_counts_as_waiting_for_them(world: World) -> None:
    hold(world, ann="a", cid="c")
    wait(world, "bob", "c", "x")
    wait(world, "ann", "x")
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=45)) == ["RSV204"]


def test_a_negotiation_counts_as_waiting(world: World) -> None:
    hold(world, ann="a", bob="b")
    world.agent("ann").negotiate_release("b", "please")
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=45)) == ["RSV204"]


def test_the_dead_close_no_circle(world: World) -> None:
    hold(world, ann="a", bob="b")
    wait(world, "ann", "b")
    world.end_process("ann")
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=45)) == []


def test_the_silent_close_no_circle_though_their_lease_is_protected(world: World) -> None:
    world.agent("ann").reserve_files(["a"], no_force=True, ttl_minutes=60)
    world.agent("bob").reserve_files(["b"], ttl_minutes=60)
    wait(world, "ann", "b", seconds=3600)
    world.now += 301
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=1)) == ["RSV201"]


def test_a_chain_over_somebody_silent_is_no_circle(world: World) -> None:
    world.agent("cid").reserve_files(["c"], no_force=True, ttl_minutes=60)
    world.agent("bob").reserve_files(["b"], ttl_minutes=60)
    wait(world, "cid", "b", seconds=3600)
    world.now += 301
    hold(world, ann="a")
    wait(world, "ann", "c")
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=1)) == ["RSV201"]


def test_two_that_share_a_file_and_both_want_it_alone_are_notified(world: World) -> None:
    for name in ("ann", "bob"):
        world.agent(name).reserve_files(["a"], exclusive=False)
    wait(world, "ann", "a")
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=45)) == ["RSV204"]
