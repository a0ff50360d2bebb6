"""The arguments of a reservation, each refused at its place, and answered with what helps."""

import json
from typing import Any

import pytest

from interlock.reservations.rules import MAX_SHOWN, RULES
from interlock.reservations.store.records import replace
from tests.reservations.world import World, codes

pytestmark = pytest.mark.usefixtures("each_store")

# -- the arguments -------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("no patterns", {"patterns": []}, "RSV105", "patterns"),
    ("ten thousand patterns", {"patterns": ["a"] * 10_000}, "RSV105", "patterns"),
    ("out of the tree", {"patterns": ["a", "../b"]}, "RSV101", "patterns[1]"),
    ("all files of git", {"patterns": ["a", ".git/"]}, "RSV213", "patterns[1]"),
    ("the store", {"patterns": [".interlock/**"]}, "RSV213", "patterns[0]"),
    ("an empty pattern", {"patterns": [""]}, "RSV102", "patterns[0]"),
    ("an open bracket", {"patterns": ["a["]}, "RSV102", "patterns[0]"),
    ("a pattern of a megabyte", {"patterns": ["a" * 1_000_000]}, "RSV102", "patterns[0]"),
    ("ttl zero", {"ttl_minutes": 0}, "RSV105", "ttl_minutes"),
    ("a reason of 501 characters", {"reason": "x" * 501}, "RSV105", "reason"),
]


@pytest.mark.parametrize(("arguments", "code", "place"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_argument_is_refused_at_its_place_and_grants_nothing(
    world: World, arguments: dict[str, Any], code: str, place: str
) -> None:
    given: dict[str, Any] = {"patterns": ["fine"], **arguments}
    answer = world.agent("ann").reserve_files(**given)
    assert [(row["code"], row["place"]) for row in answer["errors"]] == [(code, place)]
    assert len(json.dumps(answer)) < 2000
    assert (answer["reservations"], world.leases()) == ([], [])


def test_a_folder_is_held_with_everything_below_it(world: World) -> None:

    def is_folder(root: str, path: str) -> bool:
        return (root, path) == ("/checkout", "src")

    ann = world.agent("ann")
    ann.runtime = replace(world.runtime, is_folder=is_folder)
    assert ann.reserve_files(["src"])["reservations"][0]["pattern"] == "src/**"


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
