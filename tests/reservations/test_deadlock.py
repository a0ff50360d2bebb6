"""Two agents that would wait for each other: the second one is refused at once, with the call that ends it."""

import pytest

from interlock.reservations.answers import Refusal
from tests.reservations.test_wait_queue import wait
from tests.reservations.world import World, codes

pytestmark = pytest.mark.usefixtures("each_store")


def hold(world: World, **files: str) -> None:
    for name, file in files.items():
        assert codes(world.agent(name).reserve_files([file])) == []


def test_an_agent_that_would_close_a_circle_is_refused_at_once_with_the_call_that_ends_it(world: World) -> None:
    hold(world, ann="a", bob="b")
    wait(world, "ann", "b")
    begun = world.now
    error: Refusal = world.agent("bob").reserve_files(["a"], wait_seconds=45)["errors"][0]
    held = world.agent("bob").my_reservations()["reservations"][0]["reservation_id"]
    assert (error["code"], world.now, world.waiters()) == ("RSV204", begun, ["ann"])
    assert error.get("next") == {"tool": "release_files", "arguments": {"reservation_ids": [held]}}
    world.agent("bob").release_files([held])
    assert [row["pattern"] for row in world.agent("ann").my_reservations()["reservations"]] == ["a", "b"]


def test_a_call_that_does_not_wait_closes_no_circle(world: World) -> None:
    hold(world, ann="a", bob="b")
    wait(world, "ann", "b")
    assert codes(world.agent("bob").reserve_files(["a"])) == ["RSV201"]


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


def test_two_that_share_a_file_and_both_want_it_alone_are_a_circle(world: World) -> None:
    for name in ("ann", "bob"):
        world.agent(name).reserve_files(["a"], exclusive=False)
    wait(world, "ann", "a")
    assert codes(world.agent("bob").reserve_files(["a"], wait_seconds=45)) == ["RSV204"]
