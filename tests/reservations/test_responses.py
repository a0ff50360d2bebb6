"""Negotiation: a request is answered on its thread by its holder, and never with an answer that is not so."""

from typing import Any

import pytest

from interlock.reservations.service import Reservations
from interlock.reservations.store.records import iso
from tests.reservations.world import FILE, World, asked, body, codes, holding, inbox, thread_of, three, two
from tests.table import each_row

pytestmark = pytest.mark.usefixtures("each_store")


def test_a_release_hands_the_file_to_who_asked(ada: Reservations, bob: Reservations, eve: Reservations) -> None:
    [lease] = ada.reserve_files([FILE])["reservations"]
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    answer = ada.respond_to_release(thread, "release")
    assert (answer["status"], answer["released"]) == ("released", [lease["reservation_id"]])
    assert codes(eve.reserve_files([FILE])) == ["RSV201"]
    [ack] = inbox(bob, "release-ack")
    said = {"type": "release-ack", "file": FILE, "released": True, "released_by": "Ada"}
    assert (ack["thread_id"], body(ack)) == (thread, said)
    again = bob.negotiate_release(FILE, "need it")
    assert (again["status"], again["thread_id"]) == ("release", thread)
    [claim] = again.get("reservations", [])
    assert (claim["holder"], claim["claim"]) == ("Bob", True)
    [mine] = bob.reserve_files([FILE])["reservations"]
    assert (mine["reservation_id"], mine["claim"]) == (claim["reservation_id"], False)
    assert codes(bob.negotiate_release(FILE, "need it")) == ["RSV303"]


def test_answering_twice_gives_the_same_answer_and_sends_one_message() -> None:
    world, ada, bob, thread = asked()
    first = ada.respond_to_release(thread, "release")
    at = iso(world.now)
    world.now += 60
    assert ada.respond_to_release(thread, "release") == {**first, "released": [], "resolved_at": at}
    assert len(inbox(bob, "release-ack")) == 1
    assert ada.respond_to_release(thread, "defer", eta_minutes=5)["status"] == "released"
    bob.release_all()
    ada.reserve_files([FILE])
    ada.respond_to_release(thread, "release")
    assert len(ada.my_reservations()["reservations"]) == 1, "reserved since"


def test_a_release_ends_every_lease_of_the_holder_that_is_in_the_way_and_no_other() -> None:
    _, ada, bob = two()
    leases = [
        ada.reserve_files([pattern])["reservations"][0]["reservation_id"]
        for pattern in ("src/app*", "src/*.py", "doc/**")
    ]
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert ada.respond_to_release(thread, "release")["released"] == leases[:2]
    assert [row["pattern"] for row in ada.my_reservations()["reservations"]] == ["doc/**"]
    assert bob.negotiate_release(FILE, "need it").get("reservations")


def test_a_reservation_that_ended_meanwhile_is_free_for_both_sides() -> None:
    _, ada, bob, thread = asked()
    ada.release_all()
    for answer in (ada.respond_to_release(thread, "release"), ada.respond_to_release(thread, "defer", eta_minutes=5)):
        assert (answer["status"], answer["released"], answer["errors"]) == ("free", [], [])
    assert inbox(bob, "release-ack") == []
    assert bob.negotiate_release(FILE, "need it", agent_name="Ada")["status"] == "free"


def test_a_request_follows_the_holder_into_a_wider_lease() -> None:
    _, ada, bob = holding()
    thread = bob.request_release("Ada", FILE, "need it")["thread_id"]
    assert ada.reserve_files(["src/**"])["errors"] == []
    asked = bob.negotiate_release(FILE, "need it")
    assert (asked["status"], asked["thread_id"]) == ("pending", thread)
    assert ada.respond_to_release(str(thread), "release")["status"] == "released"
    assert ada.my_reservations()["reservations"] == []


def test_a_deferral_leaves_the_thread_open_and_may_be_given_again(ada: Reservations, bob: Reservations) -> None:
    ada.reserve_files([FILE], ttl_minutes=60)
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    answer = ada.respond_to_release(thread, "defer", eta_minutes=1440, reason="tests run")
    assert (answer["status"], answer.get("eta_minutes"), answer["released"]) == ("deferred", 1440, [])
    asked = bob.negotiate_release(FILE, "need it")
    assert (asked["status"], asked.get("eta_minutes"), asked.get("reason")) == ("defer", 1440, "tests run")
    assert asked["thread_id"] == thread
    ada.respond_to_release(thread, "defer", eta_minutes=1.0, reason="nearly")
    assert bob.negotiate_release(FILE, "need it").get("eta_minutes") == 1
    said = {"type": "release-defer", "file": FILE, "released": False}
    assert [(row["thread_id"], body(row)) for row in inbox(bob, "release-defer")] == [
        (thread, {**said, "eta_minutes": 1440, "reason": "tests run"}),
        (thread, {**said, "eta_minutes": 1, "reason": "nearly"}),
    ]
    assert ada.respond_to_release(thread, "release")["status"] == "released"


@each_row("eta", [None, 0, 1441, 2.5, float("nan")])
def test_a_deferral_without_an_eta_in_whole_minutes_is_refused(eta: Any) -> None:
    _, ada, bob, thread = asked()
    answer = ada.respond_to_release(thread, "defer", eta_minutes=eta)
    assert (answer["status"], codes(answer)) == ("refused", ["RSV105"])
    assert inbox(bob) == []
    assert bob.negotiate_release(FILE, "need it")["status"] == "pending"


@each_row(
    "thread",
    ["", "neg_0000000000000000", "\ud800"],
    ids=lambda v: str(v)[:12].encode("ascii", "replace").decode(),
)
def test_an_unknown_thread_is_refused(thread: Any) -> None:
    answer = World().join("Ada").respond_to_release(thread, "release")
    assert (answer["status"], codes(answer), answer["released"]) == ("refused", ["RSV305"], [])


def test_nobody_answers_for_the_holder(world: World, ada: Reservations, bob: Reservations, eve: Reservations) -> None:
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    for calls in (bob, eve):
        assert codes(calls.respond_to_release(thread, "release")) == ["RSV305"]
        assert codes(calls.respond_to_release(thread, "defer", eta_minutes=5)) == ["RSV305"]
    assert len(ada.my_reservations()["reservations"]) == 1
    assert world.join("ADA").respond_to_release(thread, "release")["status"] == "released"


def test_a_lease_taken_by_somebody_else_since_is_asked_of_its_new_holder() -> None:
    _, ada, bob, eve = three()
    ada.reserve_files([FILE])
    eve.negotiate_release(FILE, "first")
    thread = thread_of(bob.negotiate_release(FILE, "second"))
    ada.release_all()
    again: Any = bob.negotiate_release(FILE, "second")
    assert (again["status"], again["holder"]["holder"]) == ("pending", "Eve")
    assert again["thread_id"] != thread
