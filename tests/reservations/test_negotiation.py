"""Negotiation: waiting for an answer, circles, places in the queue, and what is written down."""

from typing import Any

import pytest

from interlock.reservations.service import Reservations
from tests.reservations.world import FILE, START, World, asked, codes, holding, thread_of, three, two

pytestmark = pytest.mark.usefixtures("each_store")

# -- waiting -------------------------------------------------------------------------------------------------------


def asked_of(world: World, name: str) -> str:
    """Return the thread of the one open request to an agent."""
    with world.store.transaction() as tx:
        [asked] = tx.open_negotiations(holder=name)
    return asked.thread_id


def test_a_wait_ends_with_the_release_and_the_file() -> None:
    world, ada, bob = holding()
    world.after(3, lambda: ada.respond_to_release(asked_of(world, "Ada"), "release", reason="done"))
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer.get("reason")) == ("release", "done")
    assert [row["holder"] for row in answer.get("reservations", [])] == ["Bob"]
    assert world.now - START < 4
    assert [row["topic"] for row in bob.fetch_inbox()["messages"]] == ["release-ack"]


def test_a_wait_ends_with_a_deferral() -> None:
    world, ada, bob = holding()
    world.after(3, lambda: ada.respond_to_release(asked_of(world, "Ada"), "defer", eta_minutes=7))
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer.get("eta_minutes")) == ("defer", 7)
    assert world.now - START < 4


def test_a_wait_on_a_deferred_request_ends_with_its_release() -> None:
    world, ada, bob, thread = asked()
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    world.after(5, lambda: ada.respond_to_release(thread, "release"))
    assert bob.negotiate_release(FILE, "need it", wait_seconds=30)["status"] == "release"
    assert world.now - START < 6


def test_a_wait_without_an_answer_ends_in_time() -> None:
    world, _, bob = holding()
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer["errors"]) == ("timeout", [])
    assert answer["thread_id"] == asked_of(world, "Ada")
    assert 30 <= round(world.now - START, 3) < 31


def test_a_wait_on_a_deferral_that_does_not_change_ends_as_the_deferral() -> None:
    _, ada, bob, thread = asked()
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=10)
    assert (answer["status"], answer.get("eta_minutes")) == ("defer", 7)


@pytest.mark.parametrize("how", ["released by hand", "expired"])
def test_a_wait_ends_when_the_reservation_ends_in_any_other_way(how: str) -> None:
    world, ada, bob = two()
    ada.reserve_files([FILE], ttl_minutes=0.1 if how == "expired" else 15)
    if how == "released by hand":
        world.after(6, ada.release_all)
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer["thread_id"]) == ("free", None)
    assert [row["holder"] for row in answer.get("reservations", [])] == ["Bob"]
    assert world.now - START < 8


def test_a_wait_ends_when_the_process_of_the_holder_ends(world: World) -> None:
    ada, bob = world.join("Ada", pid=7), world.join("Bob")
    ada.reserve_files([FILE])
    world.after(6, lambda: world.ended.add(7))
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert answer["status"] == "free"
    assert world.now - START < 8


def test_a_wait_goes_on_with_the_next_holder_when_somebody_was_in_front() -> None:
    world, ada, bob, eve = three()
    ada.reserve_files([FILE])
    eve.negotiate_release(FILE, "first")
    world.after(3, ada.release_all)
    world.after(6, eve.release_all)
    answer = bob.negotiate_release(FILE, "second", wait_seconds=30)
    assert (answer["status"], [row["holder"] for row in answer.get("reservations", [])]) == ("free", ["Bob"])


# -- circles -------------------------------------------------------------------------------------------------------


def test_the_second_of_two_that_ask_each_other_learns_which_call_ends_the_circle(
    world: World, ada: Reservations, bob: Reservations
) -> None:
    held = ada.reserve_files(["a.py"])["reservations"][0]["reservation_id"]
    bob.reserve_files(["b.py"])
    assert "deadlock" not in bob.negotiate_release("a.py", "need it")
    answer = ada.negotiate_release("b.py", "need it", wait_seconds=30)
    assert (answer.get("deadlock"), answer["status"], world.now) == (["Ada", "Bob"], "pending", START)
    assert answer.get("next") == {"tool": "release_files", "arguments": {"reservation_ids": [held]}}
    thread = thread_of(answer)
    assert bob.respond_to_release(thread, "release")["status"] == "released"
    assert [row["pattern"] for row in ada.my_reservations()["reservations"]] == ["a.py", "b.py"]


# -- the place and the events ----------------------------------------------------------------------------------------


def test_asking_for_more_than_is_held_keeps_others_out_only_until_the_time_limit() -> None:
    world, ada, bob, eve = three()
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release("**", "everything")
    assert codes(eve.reserve_files(["other.py"])) == ["RSV201"]
    world.minutes(12, ada, bob, eve)
    assert codes(eve.reserve_files(["other.py"])) == []


@pytest.mark.parametrize("meanwhile", ["asked again", "deferred"])
def test_a_place_wider_than_what_is_held_ends_with_the_time_limit_of_its_request(meanwhile: str) -> None:
    world, ada, bob, eve = three()
    ada.reserve_files([FILE], ttl_minutes=600)
    thread = thread_of(bob.negotiate_release("**", "everything"))
    if meanwhile == "deferred":
        ada.respond_to_release(thread, "defer", eta_minutes=500)
    for _ in range(10):
        world.minutes(1, ada, eve)
        bob.negotiate_release("**", "everything")
        assert codes(eve.reserve_files(["other.py"])) == ["RSV201"]
    world.minutes(1.1, ada, bob)
    bob.negotiate_release("**", "everything")
    assert codes(eve.reserve_files(["other.py"])) == []


def test_a_place_ends_with_a_time_limit_when_the_reservation_that_covered_it_has_ended(world: World) -> None:
    ada, bob, cid, eve = (world.join(name) for name in ("Ada", "Bob", "Cid", "Eve"))
    ada.reserve_files(["src/**"], exclusive=False)
    cid.reserve_files([FILE], exclusive=False, ttl_minutes=600)
    bob.negotiate_release("src/**", "all of it", agent_name="Ada")
    ada.release_all()
    assert codes(eve.reserve_files(["src/other.py"])) == ["RSV201"]
    world.minutes(10, bob, cid)
    assert codes(eve.reserve_files(["src/other.py"])) == []


def test_an_agent_that_waits_in_the_queue_as_a_time_out_suggests_keeps_the_place_of_the_request() -> None:
    world, ada, bob, eve = three()
    ada.reserve_files([FILE], ttl_minutes=600)
    bob.negotiate_release("src/**", "all of it")
    world.minutes(10, ada, bob, eve)
    answer: Any = bob.negotiate_release("src/**", "all of it")
    assert answer["status"] == "timeout"
    for _ in range(3):
        bob.reserve_files(**answer["next"]["arguments"])
        ada.my_reservations()
        assert codes(eve.reserve_files(["src/other.py"])) == ["RSV201"]


def test_asking_for_what_is_held_keeps_the_place_for_as_long_as_the_holder_needs() -> None:
    world, ada, bob, eve = three()
    ada.reserve_files(["src/**"], ttl_minutes=600)
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    eve.reserve_files([FILE], wait_seconds=1)
    world.minutes(300, ada, bob, eve)
    ada.respond_to_release(thread, "release")
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]


def test_everything_is_an_event() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files(["a", "b"], ttl_minutes=60)
    first = thread_of(bob.negotiate_release("a", "need it"))
    bob.negotiate_release("b", "need it")
    ada.respond_to_release(first, "defer", eta_minutes=5)
    ada.respond_to_release(first, "release")
    world.minutes(10, ada, bob)
    bob.fetch_inbox()
    found = [row.type for row in world.queue() if row.type.startswith("release_") or row.type == "lease_forced"]
    expected = ["release_requested", "release_requested", "release_deferred", "release_answered", "release_timed_out"]
    assert found == [*expected, "lease_forced"]
