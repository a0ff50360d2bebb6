"""Negotiation: what happens to requests whose time ran out, when their requester next calls."""

from typing import Any

import pytest

from interlock.reservations.store.records import Urgency
from tests.reservations.world import FILE, World, body, inbox, thread_of, three, two

pytestmark = pytest.mark.usefixtures("each_store")


@pytest.mark.parametrize(("urgency", "minutes"), [("urgent", 5), ("normal", 10)])
def test_advisory_reports_a_request_that_timed_out_and_takes_nothing(urgency: Urgency, minutes: int) -> None:
    world, ada, bob = two()
    ada.reserve_files([FILE], ttl_minutes=60)
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency=urgency))
    world.minutes(minutes - 0.1, ada)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    world.minutes(2.1, ada)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert (late["thread_id"], late["file"], late["holder"]) == (thread, FILE, "Ada")
    assert (late["urgency"], late["state"], late["minutes_over"]) == (urgency, "expired", 2)
    assert late["suggestion"]
    assert len(bob.fetch_inbox()["negotiation_timeouts"]) == 1
    assert bob.negotiate_release(FILE, "need it")["status"] == "timeout"
    assert len(ada.my_reservations()["reservations"]) == 1
    assert len(world.events("release_timed_out")) == 1
    assert ada.fetch_inbox()["negotiation_timeouts"] == []


def test_a_request_with_low_urgency_never_times_out() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=1440)
    bob.negotiate_release(FILE, "some day", urgency="low")
    world.minutes(600, ada)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    assert bob.negotiate_release(FILE, "some day", urgency="low")["status"] == "pending"


def test_the_time_limits_are_settings() -> None:
    world, ada, bob = two(urgent_timeout_minutes=1, normal_timeout_minutes=None, low_timeout_minutes=2)
    rows: list[tuple[str, Urgency]] = [("a", "urgent"), ("b", "normal"), ("c", "low")]
    for name, urgency in rows:
        ada.reserve_files([name], ttl_minutes=60)
        bob.negotiate_release(name, "need it", urgency=urgency)
    world.minutes(30, ada)
    assert [row["file"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["a", "c"]


def test_force_takes_the_lease_and_notifies_both() -> None:
    world, ada, bob = two(escalation="force")
    [lease] = ada.reserve_files([FILE], ttl_minutes=60)["reservations"]
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="urgent"))
    world.minutes(5, ada)
    assert len(ada.my_reservations()["reservations"]) == 1
    answer = bob.fetch_inbox()
    [late] = answer["negotiation_timeouts"]
    assert (late["thread_id"], late["state"]) == (thread, "forced")
    assert ada.my_reservations()["reservations"] == []
    [ack] = [row for row in answer["messages"] if row["topic"] == "release-ack"]
    assert (ack["thread_id"], body(ack)["reason"], body(ack)["released"]) == (thread, "timeout", True)
    assert (body(ack)["file"], [row["holder"] for row in bob.my_reservations()["reservations"]]) == (FILE, ["Bob"])
    [notice] = inbox(ada, "forced")
    assert (notice["from"], notice["thread_id"], notice["importance"]) == ("interlock", thread, "urgent")
    assert lease["reservation_id"] in notice["body"]
    assert FILE in notice["body"]
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    again = bob.negotiate_release(FILE, "need it")
    assert (again["status"], again.get("reason")) == ("release", "timeout")
    assert [row["holder"] for row in again.get("reservations", [])] == ["Bob"]
    assert len(world.events("lease_forced")) == 1
    assert ada.respond_to_release(thread, "release")["status"] == "free"


def test_force_also_happens_at_the_next_negotiation_and_only_then() -> None:
    world, ada, bob, eve = three(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    world.minutes(30, ada, bob)
    for calls in (ada, eve):
        calls.fetch_inbox()
        calls.list_agents()
        calls.current_state()
    assert len(ada.my_reservations()["reservations"]) == 1
    assert bob.negotiate_release("other.py", "something else")["status"] == "free"
    assert ada.my_reservations()["reservations"] == []


def test_force_never_takes_a_lease_with_no_force_and_says_so() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=60, no_force=True)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    world.minutes(30, ada, bob)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert (late["state"], late["code"]) == ("expired", "RSV307")
    assert len(ada.my_reservations()["reservations"]) == 1
    assert inbox(ada, "forced") == []


def test_a_deferral_moves_the_time_limit_to_its_eta() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=60)
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="urgent"))
    world.minutes(4, ada, bob)
    ada.respond_to_release(thread, "defer", eta_minutes=20)
    world.minutes(19.9, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    world.minutes(0.1, ada, bob)
    assert [row["state"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["forced"]


def test_a_deferral_of_a_request_without_a_limit_sets_none() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=600)
    thread = thread_of(bob.negotiate_release(FILE, "some day", urgency="low"))
    ada.respond_to_release(thread, "defer", eta_minutes=1)
    world.minutes(60, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []


def test_of_two_urgent_requests_the_first_gets_the_file_whoever_calls_first() -> None:
    world, ada, bob, eve = three(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "first", urgency="urgent")
    eve.negotiate_release(FILE, "second", urgency="urgent")
    world.minutes(6, ada, bob, eve)
    eve.fetch_inbox()
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]
    assert eve.my_reservations()["reservations"] == []
    answer: Any = eve.negotiate_release(FILE, "second", urgency="urgent")
    assert (answer["status"], answer["holder"]["holder"]) == ("pending", "Bob")


def test_a_holder_that_died_is_reported_as_one_to_take_over(world: World) -> None:
    ada, bob = world.join("Ada", pid=7), world.join("Bob")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    world.minutes(6, ada, bob)
    world.ended.add(7)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert "reserve_files" in late["suggestion"]
    assert bob.reserve_files([FILE])["errors"] == []
    assert bob.fetch_inbox()["negotiation_timeouts"] == []


# -- what is taken -----------------------------------------------------------------------------------------------------


def test_two_requests_for_parts_of_one_reservation_time_out_together() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files(["src/**"], ttl_minutes=60)
    for name in ("src/a", "src/b"):
        bob.negotiate_release(name, "need it", urgency="urgent")
    world.minutes(6, ada, bob)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert (late["file"], late["state"]) == ("src/a", "forced")
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == ["src/a", "src/b"]


def test_force_takes_all_that_the_holder_had_on_the_file_when_it_was_asked_for() -> None:
    """Else a holder with two leases on a file would answer one request in two time limits."""
    world, ada, bob = two(escalation="force")
    ada.reserve_files(["src/*.py", "**/app.py", "doc/**"], ttl_minutes=60)
    world.now += 1
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    world.minutes(6, ada, bob)
    assert [row["state"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["forced"]
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]
    assert [row["pattern"] for row in ada.my_reservations()["reservations"]] == ["doc/**"]
    [notice] = inbox(ada, "forced")
    assert "src/*.py" in notice["body"]
    assert "**/app.py" in notice["body"]


def test_a_lease_with_no_force_beside_the_one_that_was_taken_is_named_and_the_file_is_not_reported_as_free() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files(["src/*.py"], ttl_minutes=60)
    ada.reserve_files(["**/app.py"], ttl_minutes=60, no_force=True)
    world.now += 1
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="urgent"))
    world.minutes(6, ada, bob)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert (late["state"], late["still_held"]) == ("forced", "**/app.py")
    assert (inbox(bob, "release-ack"), len(inbox(bob, "forced"))) == ([], 1)
    again = bob.negotiate_release(FILE, "need it", urgency="urgent")
    assert (again["status"], thread_of(again) != thread) == ("pending", True)
    world.minutes(6, ada, bob)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert late["code"] == "RSV307"


def test_a_holder_that_reserves_wider_behind_a_requester_that_left_the_queue_gains_one_time_limit_at_most() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    bob.release_all()
    assert ada.reserve_files(["src/**"], ttl_minutes=60)["errors"] == []
    world.minutes(6, ada, bob)
    again = bob.negotiate_release(FILE, "need it", urgency="urgent")
    assert again["status"] == "pending"
    assert ada.reserve_files(["**"])["errors"] != []
    world.minutes(6, ada, bob)
    assert [row["state"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["forced"]
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]


def test_a_holder_cannot_reserve_wider_past_a_requester_in_the_queue() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    assert ada.reserve_files(["src/**"])["errors"] != []
    world.minutes(6, ada, bob)
    bob.fetch_inbox()
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]
