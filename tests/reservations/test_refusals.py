"""What a refusal says first: who can answer, and the call that helps then."""

from typing import Any

import pytest

from interlock.reservations.rules import MAX_SHOWN, RULES
from tests.reservations.world import World, codes


def refused(world: World, name: str, **call: Any) -> Any:
    """Return the one refusal of a call."""
    answer = world.agent(name).reserve_files(**call)
    (row,) = answer["errors"]
    assert all(row[key] for key in ("code", "message", "place", "found", "expected", "fix"))
    assert row["code"] in RULES
    return row


def test_of_several_holders_the_one_that_still_works_is_named(world: World) -> None:
    world.agent("ann").reserve_files(["src/a.py"])
    world.agent("bob").reserve_files(["src/b.py"])
    world.end_process("ann")
    row = refused(world, "cid", patterns=["src/**"])
    assert (row["conflict"]["holder"], row["next"]["arguments"]["agent_name"]) == ("bob", "bob")


@pytest.mark.parametrize(("age", "tool"), [(0, "negotiate_release"), (840, "reserve_files")])
def test_a_lease_that_lasts_is_asked_for_and_one_that_ends_soon_is_waited_for(age: float, tool: str) -> None:
    world = World()
    world.agent("ann").reserve_files(["a"])
    for _ in range(int(age // 60)):
        world.now += 60
        world.agent("ann").my_reservations()
    world.now += 30 if age else 0
    assert refused(world, "bob", patterns=["a"])["next"]["tool"] == tool


def test_nobody_is_sent_to_negotiate_with_an_agent_that_gives_no_sign_of_life(world: World) -> None:
    world.agent("ann").reserve_files(["a"], no_force=True, ttl_minutes=60)
    world.now += 20 * 60
    row = refused(world, "bob", patterns=["a"])
    assert (row["conflict"]["holder_state"], row["next"]["tool"]) == ("silent", "reserve_files")


def test_a_long_pattern_is_cut_in_the_sentence_and_whole_in_the_call(world: World) -> None:
    name = "x" * 200
    world.agent("ann").reserve_files([name])
    row = refused(world, "bob", patterns=[name])
    assert len(row["message"]) < MAX_SHOWN + 60
    assert row["next"]["arguments"]["file"] == name
    assert codes(world.agent("bob").negotiate_release(**row["next"]["arguments"])) == []
