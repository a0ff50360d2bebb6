"""The arguments of a reservation, each refused at its place, repeated by its key, and answered with what helps."""

import json
from typing import Any

import pytest

from interlock.reservations.rules import MAX_SHOWN, RULES
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import replace
from tests.reservations.world import World, codes, ids

# -- the arguments -------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("no patterns", {"patterns": []}, "RSV104", "patterns"),
    ("ten thousand patterns", {"patterns": ["a"] * 10_000}, "RSV104", "patterns"),
    ("a text for a list", {"patterns": "src/a.py"}, "RSV105", "patterns"),
    ("nothing for a list", {"patterns": None}, "RSV105", "patterns"),
    ("a number among patterns", {"patterns": ["a", "b", 3]}, "RSV105", "patterns[2]"),
    ("out of the tree", {"patterns": ["a", "../b"]}, "RSV101", "patterns[1]"),
    ("an absolute path", {"patterns": ["/etc/passwd"]}, "RSV101", "patterns[0]"),
    ("all files of git", {"patterns": ["a", ".git/"]}, "RSV213", "patterns[1]"),
    ("the store", {"patterns": [".interlock/**"]}, "RSV213", "patterns[0]"),
    ("an empty pattern", {"patterns": [""]}, "RSV102", "patterns[0]"),
    ("an open bracket", {"patterns": ["a["]}, "RSV102", "patterns[0]"),
    ("a lone surrogate", {"patterns": ["\ud800"]}, "RSV102", "patterns[0]"),
    ("a pattern of a megabyte", {"patterns": ["a" * 1_000_000]}, "RSV103", "patterns[0]"),
    ("ttl is not a number", {"ttl_minutes": float("nan")}, "RSV105", "ttl_minutes"),
    ("ttl zero", {"ttl_minutes": 0}, "RSV105", "ttl_minutes"),
    ("ttl beyond floats", {"ttl_minutes": 10**400}, "RSV105", "ttl_minutes"),
    ("ttl true", {"ttl_minutes": True}, "RSV105", "ttl_minutes"),
    ("ttl text", {"ttl_minutes": "15"}, "RSV105", "ttl_minutes"),
    ("wait not a number", {"wait_seconds": float("nan")}, "RSV105", "wait_seconds"),
    ("wait nothing", {"wait_seconds": None}, "RSV105", "wait_seconds"),
    ("exclusive one", {"exclusive": 1}, "RSV105", "exclusive"),
    ("no_force text", {"no_force": "true"}, "RSV105", "no_force"),
    ("partial and waiting", {"partial": True, "wait_seconds": 1}, "RSV105", "partial"),
    ("a reason that is a list", {"reason": ["x"]}, "RSV105", "reason"),
    ("a reason of 501 characters", {"reason": "x" * 501}, "RSV105", "reason"),
    ("a reason with an escape sequence", {"reason": "\x1b[2J"}, "RSV105", "reason"),
    ("an empty key", {"idempotency_key": ""}, "RSV105", "idempotency_key"),
    ("a key that is a number", {"idempotency_key": 7}, "RSV105", "idempotency_key"),
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


def test_everything_that_is_wrong_is_reported_at_once(world: World) -> None:
    answer = world.agent("ann").reserve_files(["..", "ok", 1], ttl_minutes=-1, exclusive=None)  # type: ignore[arg-type,list-item]
    assert {row["place"] for row in answer["errors"]} == {"patterns[0]", "patterns[2]", "ttl_minutes", "exclusive"}


def test_a_folder_is_held_with_everything_below_it(world: World) -> None:

    def is_folder(root: str, path: str) -> bool:
        return (root, path) == ("/checkout", "src")

    ann = world.agent("ann")
    ann.runtime = replace(world.runtime, is_folder=is_folder)
    assert ann.reserve_files(["src"])["reservations"][0]["pattern"] == "src/**"


def test_an_agent_holds_no_more_than_it_may() -> None:
    world = World(settings=Settings(max_leases=3))
    ann = world.agent("ann")
    assert codes(ann.reserve_files(["a", "b"])) == []
    assert codes(ann.reserve_files(["c", "d"])) == ["RSV205"]
    assert codes(ann.reserve_files(["a", "c"])) == []
    assert codes(ann.reserve_files(["a", "b", "c"])) == []


# -- repeating -----------------------------------------------------------------------------------------------------


def test_the_same_key_gives_the_first_answer_byte_for_byte(world: World, ann: Reservations) -> None:
    first = json.dumps(ann.reserve_files(["a"], idempotency_key="k"))
    world.now += 1000
    assert json.dumps(ann.reserve_files(["a"], idempotency_key="k")) == first
    assert world.leases() == []


def test_the_same_key_with_other_arguments_is_refused_unless_it_is_another_agents(world: World) -> None:
    ann = world.agent("ann")
    ann.reserve_files(["a"], idempotency_key="k")
    answer = ann.reserve_files(["b"], idempotency_key="k")
    assert [(row["code"], row["place"]) for row in answer["errors"]] == [("RSV106", "idempotency_key")]
    assert [lease.pattern for lease in world.leases()] == ["a"]
    assert codes(world.agent("bob").reserve_files(["b"], idempotency_key="k")) == []


def test_a_refused_call_is_tried_anew_under_its_key(world: World) -> None:
    held = world.agent("ann").reserve_files(["a"])
    bob = world.agent("bob")
    assert codes(bob.reserve_files(["a"], idempotency_key="k")) == ["RSV201"]
    world.agent("ann").release_files(ids(held))
    assert codes(bob.reserve_files(["a"], idempotency_key="k")) == []


def test_a_part_of_what_was_asked_for_is_completed_under_its_key(world: World, held: list[str]) -> None:
    bob = world.agent("bob")
    first = bob.reserve_files(["a", "b"], partial=True, idempotency_key="k")
    world.agent("ann").release_files(held)
    second = bob.reserve_files(["a", "b"], partial=True, idempotency_key="k")
    assert ([row["pattern"] for row in second["reservations"]], ids(second)[1:]) == (["a", "b"], ids(first))


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
