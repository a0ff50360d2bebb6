"""Negotiation: asking a holder for one reservation, by `negotiate_release` and by the call before it."""

import json
from typing import Any

import pytest

from interlock.reservations.hooks import release_requests
from interlock.reservations.leases.calls import entered
from interlock.reservations.leases.runtime import Context
from interlock.reservations.store.records import Urgency
from tests.reservations.world import FILE, World, body, codes, holding, inbox, thread_of, three, two
from tests.table import each_row

pytestmark = pytest.mark.usefixtures("each_store")


def test_a_file_that_nobody_holds_is_free_at_once() -> None:
    answer = World().join("Bob").negotiate_release(FILE, "need it")
    assert (answer["thread_id"], answer["status"], answer["errors"]) == (None, "free", [])
    assert answer.get("next") == {"tool": "reserve_files", "arguments": {"patterns": [FILE], "reason": "need it"}}


def test_a_request_reaches_the_holder_pinned_to_its_reservation() -> None:
    world, ada, bob = two()
    world.dirty["src/**"] = True
    [lease] = ada.reserve_files(["src/**"], "refactoring")["reservations"]
    answer: Any = bob.negotiate_release("./src//app.py", "need it")
    assert answer["status"] == "pending"
    known = [answer["holder"][key] for key in ("holder", "held_pattern", "holder_state", "dirty")]
    assert known == ["Ada", "src/**", "alive", True]
    [message] = ada.fetch_inbox()["messages"]
    assert message["thread_id"] == thread_of(answer)
    assert body(message) == {
        "type": "release-request",
        "file": FILE,
        "reason": "need it",
        "requester": "Bob",
        "urgency": "normal",
        "thread_id": thread_of(answer),
        "reservation_id": lease["reservation_id"],
    }


def test_asking_again_gives_the_same_thread_and_sends_nothing() -> None:
    _, ada, bob, eve = three()
    ada.reserve_files(["src/**"])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert thread_of(bob.negotiate_release(FILE, "still need it")) == thread
    assert thread_of(bob.negotiate_release("src/other.py", "this too")) != thread
    assert thread_of(eve.negotiate_release(FILE, "me too")) != thread
    assert [body(row)["requester"] for row in inbox(ada)] == ["Bob", "Bob", "Eve"]


def test_asking_again_gives_the_same_thread_though_its_holder_got_more_right_meanwhile() -> None:
    world, ada, bob = two()
    ada.reserve_files(["src/*"], exclusive=False)
    ada.reserve_files(["**/app.py"], exclusive=False)
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    world.now += 1
    assert codes(ada.reserve_files(["src/*"])) == []
    assert thread_of(bob.negotiate_release(FILE, "need it")) == thread


@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
def test_asking_again_with_more_urgency_raises_importance_and_time_limit(read: bool) -> None:
    world, ada, bob = holding(escalation="advisory")
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="low"))
    if read:
        ada.fetch_inbox()
    world.minutes(1)
    assert thread_of(bob.negotiate_release(FILE, "now", urgency="urgent")) == thread
    [message] = ada.fetch_inbox()["messages"]
    assert (message["importance"], message["ack_required"], body(message)["urgency"]) == ("urgent", True, "urgent")
    assert bob.negotiate_release(FILE, "now", urgency="low")["status"] == "pending"
    world.minutes(4.9, ada)
    assert bob.negotiate_release(FILE, "now", urgency="low")["status"] == "pending"
    world.minutes(0.2, ada)
    assert bob.negotiate_release(FILE, "now", urgency="low")["status"] == "timeout"


@each_row("urgency", ["low", "normal", "urgent"])
def test_urgency_sets_the_importance_of_a_request_and_whether_it_is_to_be_acknowledged(urgency: Urgency) -> None:
    world, ada, bob = holding()
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency=urgency))
    with world.store.transaction() as tx:
        [sent] = tx.thread(thread)
    assert (sent.topic, sent.importance, sent.ack_required) == ("release-request", urgency, urgency == "urgent")
    assert (json.loads(sent.body)["urgency"], sent.acked_at) == (urgency, None)
    world.now += 5
    ada.respond_to_release(thread, "defer", eta_minutes=3)
    with world.store.transaction() as tx:
        assert tx.thread(thread)[0].acked_at == world.now


def test_more_urgency_is_a_new_message_to_a_holder_whose_edit_hook_has_shown_the_request() -> None:
    _, ada, bob = holding()
    bob.negotiate_release(FILE, "need it")
    assert _new_to_the_hook(ada)
    assert not _new_to_the_hook(ada)
    thread = thread_of(bob.negotiate_release(FILE, "now", urgency="urgent"))
    assert _new_to_the_hook(ada) == {thread}
    assert [row["importance"] for row in ada.fetch_inbox()["messages"]] == ["urgent"]


def _new_to_the_hook(holder: Context) -> frozenset[str]:
    with entered(holder) as entry:
        return release_requests.look(entry).new


def test_a_silent_holder_is_asked_for_what_it_keeps_though_another_request_to_it_is_open() -> None:
    world, ada, bob = two()
    ada.reserve_files(["src/*"], ttl_minutes=60)
    ada.reserve_files(["**/app.py"], ttl_minutes=60, no_force=True)
    first = thread_of(bob.negotiate_release(FILE, "need it", urgency="low"))
    world.minutes(6, bob)
    answer: Any = bob.negotiate_release(FILE, "need it", urgency="low")
    assert (answer["status"], answer["holder"]["held_pattern"]) == ("pending", "**/app.py")
    assert thread_of(answer) != first


def test_more_urgency_later_never_gives_the_holder_more_time() -> None:
    world, ada, bob = two()
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="normal")
    world.minutes(9, ada, bob)
    bob.negotiate_release(FILE, "now", urgency="urgent")
    world.minutes(1, ada, bob)
    assert bob.negotiate_release(FILE, "now")["status"] == "timeout"


@each_row(
    ("arguments", "code", "place"),
    [
        ({"file": ""}, "RSV102", "file"),
        ({"file": "../a.py"}, "RSV101", "file"),
        ({"reason": "x" * 501}, "RSV105", "reason"),
        ({"agent_name": "Adaa"}, "RSV301", "agent_name"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_argument_is_refused_and_sends_nothing(arguments: dict[str, Any], code: str, place: str) -> None:
    _, ada, bob = holding()
    given: dict[str, Any] = {"file": FILE, "reason": "need it"} | arguments
    answer = bob.negotiate_release(**given)
    assert (answer["status"], answer["thread_id"]) == ("refused", None)
    [error] = answer["errors"]
    assert (error["code"], error["place"]) == (code, place)
    assert inbox(ada) == []


def test_asking_an_agent_that_does_not_hold_it_names_who_does() -> None:
    _, ada, bob, _ = three()
    ada.reserve_files([FILE])
    answer: Any = bob.negotiate_release(FILE, "need it", agent_name="Eve")
    [error] = answer["errors"]
    assert (error["code"], error["found"], error["expected"]) == ("RSV303", "Eve", "Ada")
    assert bob.negotiate_release(**error["next"]["arguments"])["status"] == "pending"


def test_asking_oneself_is_refused() -> None:
    ada = World().join("Ada")
    ada.reserve_files(["src/**"])
    answer = ada.negotiate_release(FILE, "mine")
    assert (answer["status"], codes(answer)) == ("refused", ["RSV303"])
    assert inbox(ada) == []


def test_of_several_shared_holders_the_first_is_asked(world: World) -> None:
    ada, bob, cyd, eve = (world.join(name) for name in ("Ada", "Bob", "Cyd", "Eve"))
    for calls in (ada, bob, cyd):
        calls.reserve_files([FILE], exclusive=False)
        world.now += 1
    answer: Any = eve.negotiate_release(FILE, "need it")
    assert answer["holder"]["holder"] == "Ada"
    second = eve.negotiate_release(FILE, "need it", agent_name="cYD")
    assert second["thread_id"] != answer["thread_id"]
    assert [len(inbox(calls)) for calls in (ada, bob, cyd)] == [1, 0, 1]


def test_a_holder_whose_process_ended_is_not_asked_but_taken_over(world: World) -> None:
    ada, bob = world.join("Ada", pid=7), world.join("Bob")
    ada.reserve_files([FILE], no_force=True)
    world.ended.add(7)
    answer: Any = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer["holder"]["holder_state"]) == ("free", "gone")
    assert bob.reserve_files(**answer["next"]["arguments"])["errors"] == []


# -- the old call --------------------------------------------------------------------------------------------------


def test_the_old_call_sends_a_request_with_its_pattern() -> None:
    _, ada, bob = holding()
    answer = bob.request_release("Ada", "src/*.py", "need it")
    assert (answer["sent"], answer["errors"]) == (True, [])
    assert "negotiate_release" in answer["deprecated"]
    [message] = inbox(ada)
    fields = body(message)
    assert (fields["pattern"], fields["thread_id"]) == ("src/*.py", answer["thread_id"])
    assert message["thread_id"] == answer["thread_id"]
    assert "file" not in fields
    assert ada.respond_to_release(str(answer["thread_id"]), "release")["status"] == "released"
    assert len(inbox(bob, "release-ack")) == 1


@each_row(
    ("name", "pattern", "reason", "code"),
    [
        ("ghost", FILE, "x", "RSV301"),
        ("Eve", FILE, "x", "RSV303"),
        ("Ada", "free.py", "x", "RSV303"),
        ("Ada", "../x", "x", "RSV101"),
    ],
)
def test_the_old_call_is_refused_like_the_new_one(name: Any, pattern: Any, reason: Any, code: str) -> None:
    _, ada, bob, _ = three()
    ada.reserve_files([FILE])
    answer = bob.request_release(name, pattern, reason)
    assert (answer["sent"], answer["thread_id"], codes(answer)) == (False, None, [code])
    assert inbox(ada) == []


def test_the_old_call_and_the_new_one_share_a_thread_that_then_times_out() -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files([FILE], ttl_minutes=600)
    thread = bob.request_release("Ada", FILE, "need it")["thread_id"]
    world.minutes(60, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    assert bob.negotiate_release(FILE, "need it")["thread_id"] == thread
    assert bob.request_release("Ada", FILE, "need it")["thread_id"] == thread
    world.minutes(10, ada, bob)
    assert [row["state"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["forced"]
