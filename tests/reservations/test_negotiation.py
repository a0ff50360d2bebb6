"""Negotiation: asked of a holder for one reservation, answered on its thread, and never an answer that is not so."""

from typing import Any

import pytest

from interlock.reservations import negotiation, settings
from tests.reservations.team import START, Team, body, codes, inbox

FILE = "src/app.py"


def thread_of(answer: Any) -> str:
    """Return the thread of an answer that has one."""
    assert isinstance(answer["thread_id"], str)
    return answer["thread_id"]


def test_the_time_limits_are_exported() -> None:
    assert (negotiation.URGENT_TIMEOUT_MINUTES, negotiation.NORMAL_TIMEOUT_MINUTES) == (5, 10)
    assert 0 < negotiation.NEGOTIATION_POLL_SECONDS <= 1
    assert settings.Settings().urgent_timeout_minutes == negotiation.URGENT_TIMEOUT_MINUTES
    assert settings.Settings().normal_timeout_minutes == negotiation.NORMAL_TIMEOUT_MINUTES
    assert settings.Settings().low_timeout_minutes is None


# -- asking --------------------------------------------------------------------------------------------------------


def test_a_file_that_nobody_holds_is_free_at_once() -> None:
    team = Team()
    bob = team.agent("Bob")
    answer = bob.negotiate_release(FILE, "need it")
    assert (answer["thread_id"], answer["status"], answer["errors"]) == (None, "free", [])
    assert answer.get("next") == {"tool": "reserve_files", "arguments": {"patterns": [FILE], "reason": "need it"}}


def test_a_request_reaches_the_holder_pinned_to_its_reservation() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    [lease] = ada.reserve_files(["src/**"], "refactoring")["reservations"]
    answer = bob.negotiate_release("./src//app.py", "need it")
    assert answer["status"] == "pending"
    holder = answer.get("holder")
    assert holder is not None
    assert (holder["holder"], holder["held_pattern"], holder["holder_state"]) == ("Ada", "src/**", "alive")
    [message] = ada.fetch_inbox()["messages"]
    assert message["thread_id"] == thread_of(answer)
    assert body(message) == {
        "type": "release-request", "file": FILE, "reason": "need it", "requester": "Bob", "urgency": "normal",
        "thread_id": thread_of(answer), "reservation_id": lease["reservation_id"],
    }  # fmt: skip


def test_an_answer_says_whether_the_holder_has_uncommitted_changes() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    team.dirty[FILE] = True
    holder = bob.negotiate_release(FILE, "need it").get("holder")
    assert holder is not None
    assert holder["dirty"] is True


def test_asking_again_gives_the_same_thread_and_sends_nothing() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files(["src/**"])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert thread_of(bob.negotiate_release(FILE, "still need it")) == thread
    assert thread_of(bob.negotiate_release("src/other.py", "this too")) != thread
    assert thread_of(eve.negotiate_release(FILE, "me too")) != thread
    assert [body(row)["requester"] for row in inbox(ada)] == ["Bob", "Bob", "Eve"]


@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
def test_asking_again_with_more_urgency_raises_importance_and_time_limit(read: bool) -> None:
    team = Team(escalation="advisory")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="low"))
    if read:
        ada.fetch_inbox()
    team.minutes(1)
    assert thread_of(bob.negotiate_release(FILE, "now", urgency="urgent")) == thread
    [message] = ada.fetch_inbox()["messages"]
    assert (message["importance"], message["ack_required"], body(message)["urgency"]) == ("urgent", True, "urgent")
    assert bob.negotiate_release(FILE, "now", urgency="low")["status"] == "pending"
    team.minutes(4.9, ada)
    assert bob.negotiate_release(FILE, "now", urgency="low")["status"] == "pending"
    team.minutes(0.2, ada)
    assert bob.negotiate_release(FILE, "now", urgency="low")["status"] == "timeout"


def test_more_urgency_later_never_gives_the_holder_more_time() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="normal")
    team.minutes(9, ada, bob)
    bob.negotiate_release(FILE, "now", urgency="urgent")
    team.minutes(1, ada, bob)
    assert bob.negotiate_release(FILE, "now")["status"] == "timeout"


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        ({"file": ""}, None, "file"),
        ({"file": None}, "RSV105", "file"),
        ({"file": ["a.py"]}, "RSV105", "file"),
        ({"file": "../a.py"}, "RSV101", "file"),
        ({"file": "/etc/passwd"}, "RSV101", "file"),
        ({"file": "a[.py"}, "RSV102", "file"),
        ({"file": "x" * 10_000}, None, "file"),
        ({"file": "{" * 500}, None, "file"),
        ({"reason": None}, "RSV105", "reason"),
        ({"reason": "x" * 501}, "RSV105", "reason"),
        ({"reason": "\ud800"}, "RSV105", "reason"),
        ({"reason": '"' * 400}, "RSV105", "reason"),
        ({"urgency": "high"}, "RSV105", "urgency"),
        ({"urgency": "URGENT"}, "RSV105", "urgency"),
        ({"urgency": ["low"]}, "RSV105", "urgency"),
        ({"urgency": None}, "RSV105", "urgency"),
        ({"agent_name": ""}, "RSV301", "agent_name"),
        ({"agent_name": ["Ada"]}, "RSV301", "agent_name"),
        ({"agent_name": "Adaa"}, "RSV301", "agent_name"),
        ({"agent_name": 7}, "RSV301", "agent_name"),
        ({"wait_seconds": -1}, "RSV105", "wait_seconds"),
        ({"wait_seconds": 10**9}, "RSV105", "wait_seconds"),
        ({"wait_seconds": float("nan")}, "RSV105", "wait_seconds"),
        ({"wait_seconds": True}, "RSV105", "wait_seconds"),
        ({"wait_seconds": "5"}, "RSV105", "wait_seconds"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_argument_is_refused_at_its_place_and_sends_nothing(
    arguments: dict[str, Any], code: str | None, place: str
) -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    given: dict[str, Any] = {"file": FILE, "reason": "need it"} | arguments
    answer = bob.negotiate_release(**given)
    assert (answer["status"], answer["thread_id"]) == ("refused", None)
    [error] = answer["errors"]
    assert error["place"] == place
    assert error["code"] == code if code else error["code"].startswith("RSV1")
    assert inbox(ada) == []


def test_everything_that_is_wrong_is_said_at_once() -> None:
    bob = Team().agent("Bob")
    answer = bob.negotiate_release("../x", "x" * 600, urgency="now", wait_seconds=-1)
    assert [error["place"] for error in answer["errors"]] == ["file", "reason", "urgency", "wait_seconds"]


def test_a_pattern_too_long_for_a_message_is_refused_and_a_shorter_one_always_fits() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files(["**"])
    full = "why " * 123 + '"' * 8
    names = [char * length for char in ('"', "a", "é") for length in range(10, 1000, 150)]
    answers = [bob.negotiate_release(name, full) for name in names]
    refused = [answer for answer in answers if answer["status"] == "refused"]
    asked = [answer for answer in answers if answer["status"] == "pending"]
    assert refused
    assert asked
    assert {codes(answer)[0] for answer in refused} <= {"RSV302", "RSV103"}
    for answer in asked:
        assert codes(ada.respond_to_release(thread_of(answer), "defer", eta_minutes=1440, reason=full)) == []
    sent = inbox(ada, "release-request") + inbox(bob, "release-defer")
    assert len(sent) == 2 * len(asked)
    assert all(body(message)["file"] for message in sent)


def test_asking_an_agent_that_does_not_hold_it_names_who_does() -> None:
    team = Team()
    ada, bob, _ = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE])
    answer = bob.negotiate_release(FILE, "need it", agent_name="Eve")
    assert codes(answer) == ["RSV303"]
    [error] = answer["errors"]
    assert (error["found"], error["expected"]) == ("Eve", "Ada")
    call = error.get("next")
    assert call is not None
    assert bob.negotiate_release(**call["arguments"])["status"] == "pending"


def test_a_holder_is_named_without_regard_to_case() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    assert bob.negotiate_release(FILE, "need it", agent_name="aDA")["status"] == "pending"


def test_a_file_that_its_named_holder_has_given_up_is_free() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    ada.release_all()
    assert bob.negotiate_release(FILE, "need it", agent_name="Ada")["status"] == "free"


def test_asking_oneself_is_refused() -> None:
    team = Team()
    ada = team.agent("Ada")
    ada.reserve_files(["src/**"])
    answer = ada.negotiate_release(FILE, "mine")
    assert (answer["status"], codes(answer)) == ("refused", ["RSV303"])
    assert inbox(ada) == []


def test_of_several_shared_holders_the_first_is_asked_and_the_others_are_named() -> None:
    team = Team()
    ada, bob, cyd, eve = (team.agent(name) for name in ("Ada", "Bob", "Cyd", "Eve"))
    for calls in (ada, bob, cyd):
        calls.reserve_files([FILE], exclusive=False)
        team.now += 1
    answer = eve.negotiate_release(FILE, "need it")
    holder = answer.get("holder")
    assert holder is not None
    assert (holder["holder"], answer.get("other_holders")) == ("Ada", ["Bob", "Cyd"])
    assert eve.negotiate_release(FILE, "need it", wait_seconds=1).get("other_holders") == ["Bob", "Cyd"]
    second = eve.negotiate_release(FILE, "need it", agent_name="Cyd")
    assert second["thread_id"] != answer["thread_id"]
    assert [len(inbox(calls)) for calls in (ada, bob, cyd)] == [1, 0, 1]


def test_a_holder_whose_process_ended_is_not_asked_but_taken_over() -> None:
    team = Team()
    ada, bob = team.agent("Ada", pid=7), team.agent("Bob")
    ada.reserve_files([FILE], no_force=True)
    team.ended.add(7)
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert answer["status"] == "free"
    call, holder = answer.get("next"), answer.get("holder")
    assert call is not None
    assert holder is not None
    assert holder["holder_state"] == "gone"
    assert bob.reserve_files(**call["arguments"])["errors"] == []


def test_a_silent_holder_with_no_force_is_asked() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], no_force=True)
    team.minutes(6)
    assert bob.negotiate_release(FILE, "need it")["status"] == "pending"


# -- answering -----------------------------------------------------------------------------------------------------


def test_a_release_hands_the_file_to_who_asked() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    [lease] = ada.reserve_files([FILE])["reservations"]
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    answer = ada.respond_to_release(thread, "release")
    assert (answer["status"], answer["released"]) == ("released", [lease["reservation_id"]])
    assert codes(eve.reserve_files([FILE])) == ["RSV201"]
    [ack] = inbox(bob, "release-ack")
    assert (ack["thread_id"], body(ack)["released_by"]) == (thread, "Ada")
    again = bob.negotiate_release(FILE, "need it")
    assert (again["status"], again["thread_id"]) == ("release", thread)
    [claim] = again.get("reservations", [])
    assert (claim["holder"], claim["claim"]) == ("Bob", True)
    [mine] = bob.reserve_files([FILE])["reservations"]
    assert (mine["reservation_id"], mine["claim"]) == (claim["reservation_id"], False)
    assert codes(bob.negotiate_release(FILE, "need it")) == ["RSV303"]


def test_answering_twice_gives_the_same_answer_and_sends_one_message() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    first = ada.respond_to_release(thread, "release")
    assert ada.respond_to_release(thread, "release") == first
    assert len(inbox(bob, "release-ack")) == 1
    assert codes(ada.respond_to_release(thread, "defer", eta_minutes=5)) == ["RSV305"]


def test_answering_twice_does_not_take_what_was_reserved_since() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    ada.respond_to_release(thread, "release")
    bob.release_all()
    ada.reserve_files([FILE])
    ada.respond_to_release(thread, "release")
    assert len(ada.my_reservations()["reservations"]) == 1


def test_a_release_ends_every_lease_of_the_holder_that_is_in_the_way_and_no_other() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    leases = [
        ada.reserve_files([pattern])["reservations"][0]["reservation_id"]
        for pattern in ("src/app*", "src/*.py", "doc/**")
    ]
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert ada.respond_to_release(thread, "release")["released"] == leases[:2]
    assert [row["pattern"] for row in ada.my_reservations()["reservations"]] == ["doc/**"]
    assert bob.negotiate_release(FILE, "need it").get("reservations")


def test_a_reservation_that_ended_meanwhile_is_free_for_both_sides() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    [lease] = ada.reserve_files([FILE])["reservations"]
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    ada.release_files([lease["reservation_id"]])
    for action, eta_minutes in (("release", None), ("defer", 5)):
        answer = ada.respond_to_release(thread, action, eta_minutes=eta_minutes)
        assert (answer["status"], answer["released"], answer["errors"]) == ("free", [], [])
    assert inbox(bob, "release-ack") == []
    assert bob.negotiate_release(FILE, "need it")["status"] == "free"


def test_a_reservation_that_expired_is_free_at_the_next_question() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=3)
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    team.minutes(3)
    assert bob.negotiate_release(FILE, "need it")["status"] == "free"
    assert ada.respond_to_release(thread, "release")["status"] == "free"


def test_a_request_follows_the_holder_into_a_wider_lease() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = bob.request_release("Ada", FILE, "need it")["thread_id"]
    assert ada.reserve_files(["src/**"])["errors"] == []
    asked = bob.negotiate_release(FILE, "need it")
    assert (asked["status"], asked["thread_id"]) == ("pending", thread)
    assert ada.respond_to_release(str(thread), "release")["status"] == "released"
    assert ada.my_reservations()["reservations"] == []


def test_a_deferral_leaves_the_thread_open_and_may_be_given_again() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=60)
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    answer = ada.respond_to_release(thread, "defer", eta_minutes=20, reason="tests run")
    assert (answer["status"], answer.get("eta_minutes"), answer["released"]) == ("deferred", 20, [])
    asked = bob.negotiate_release(FILE, "need it")
    assert (asked["status"], asked.get("eta_minutes"), asked.get("reason")) == ("defer", 20, "tests run")
    assert asked["thread_id"] == thread
    ada.respond_to_release(thread, "defer", eta_minutes=5.0, reason="nearly")
    assert bob.negotiate_release(FILE, "need it").get("eta_minutes") == 5
    assert [body(row)["eta_minutes"] for row in inbox(bob, "release-defer")] == [20, 5]
    assert ada.respond_to_release(thread, "release")["status"] == "released"


@pytest.mark.parametrize("eta", [None, 0, -3, 1441, 2.5, "10", True, float("nan"), float("inf"), [5], 10**400])
def test_a_deferral_without_an_eta_in_whole_minutes_is_refused(eta: Any) -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    answer = ada.respond_to_release(thread, "defer", eta_minutes=eta)
    assert (answer["status"], codes(answer)) == ("refused", ["RSV306"])
    assert inbox(bob) == []
    assert bob.negotiate_release(FILE, "need it")["status"] == "pending"


@pytest.mark.parametrize("eta", [1, 1440])
def test_the_bounds_of_an_eta_are_allowed(eta: int) -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert ada.respond_to_release(thread, "defer", eta_minutes=eta)["status"] == "deferred"


@pytest.mark.parametrize(
    "thread",
    ["", "neg_0000000000000000", "thr_1", None, 7, ["neg"], "\ud800", "x" * 10_000],
    ids=lambda v: str(v)[:12].encode("ascii", "replace").decode(),
)
def test_an_unknown_thread_is_refused(thread: Any) -> None:
    answer = Team().agent("Ada").respond_to_release(thread, "release")
    assert (answer["status"], codes(answer), answer["released"]) == ("refused", ["RSV304"], [])


@pytest.mark.parametrize("action", ["", "Release", "deny", None, 1, ["release"]])
def test_an_unknown_action_is_refused(action: Any) -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert codes(ada.respond_to_release(thread, action)) == ["RSV105"]
    assert len(ada.my_reservations()["reservations"]) == 1


def test_nobody_answers_for_the_holder() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    for calls in (bob, eve):
        assert codes(calls.respond_to_release(thread, "release")) == ["RSV305"]
        assert codes(calls.respond_to_release(thread, "defer", eta_minutes=5)) == ["RSV305"]
    assert len(ada.my_reservations()["reservations"]) == 1
    assert team.agent("ADA").respond_to_release(thread, "release")["status"] == "released"


def test_an_answer_about_another_file_is_refused() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files(["src/**"])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    assert codes(ada.respond_to_release(thread, "release", file="src/other.py")) == ["RSV105"]
    assert codes(ada.respond_to_release(thread, "release", file="../x")) == ["RSV101"]
    assert ada.respond_to_release(thread, "release", file="src/**")["status"] == "released"


def test_a_lease_taken_by_somebody_else_since_is_asked_of_its_new_holder() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE])
    eve.negotiate_release(FILE, "first")
    thread = thread_of(bob.negotiate_release(FILE, "second"))
    ada.release_all()
    again = bob.negotiate_release(FILE, "second")
    holder = again.get("holder")
    assert holder is not None
    assert (again["status"], holder["holder"]) == ("pending", "Eve")
    assert again["thread_id"] != thread


# -- waiting -------------------------------------------------------------------------------------------------------


def asked_of(team: Team, name: str) -> str:
    """Return the thread of the one open request to an agent."""
    with team.store.transaction() as tx:
        [asked] = tx.open_negotiations(holder=name)
    return asked.thread_id


def test_a_wait_ends_with_the_release_and_the_file() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    team.after(3, lambda: ada.respond_to_release(asked_of(team, "Ada"), "release", reason="done"))
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer.get("reason")) == ("release", "done")
    assert [row["holder"] for row in answer.get("reservations", [])] == ["Bob"]
    assert team.now - START < 4
    assert [row["topic"] for row in bob.fetch_inbox()["messages"]] == ["release-ack"]


def test_a_wait_ends_with_a_deferral() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    team.after(3, lambda: ada.respond_to_release(asked_of(team, "Ada"), "defer", eta_minutes=7))
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer.get("eta_minutes")) == ("defer", 7)
    assert team.now - START < 4


def test_a_wait_on_a_deferred_request_ends_with_its_release() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    team.after(5, lambda: ada.respond_to_release(thread, "release"))
    assert bob.negotiate_release(FILE, "need it", wait_seconds=30)["status"] == "release"
    assert team.now - START < 6


def test_a_wait_without_an_answer_ends_in_time() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer["errors"]) == ("timeout", [])
    assert answer["thread_id"] == asked_of(team, "Ada")
    assert 30 <= team.now - START < 31


def test_a_wait_on_a_deferral_that_does_not_change_ends_as_the_deferral() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=10)
    assert (answer["status"], answer.get("eta_minutes")) == ("defer", 7)


@pytest.mark.parametrize("how", ["released by hand", "expired"])
def test_a_wait_ends_when_the_reservation_ends_in_any_other_way(how: str) -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=0.1 if how == "expired" else 15)
    if how == "released by hand":
        team.after(6, ada.release_all)
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert (answer["status"], answer["thread_id"]) == ("free", None)
    assert [row["holder"] for row in answer.get("reservations", [])] == ["Bob"]
    assert team.now - START < 8


def test_a_wait_ends_when_the_process_of_the_holder_ends() -> None:
    team = Team()
    ada, bob = team.agent("Ada", pid=7), team.agent("Bob")
    ada.reserve_files([FILE])
    team.after(6, lambda: team.ended.add(7))
    answer = bob.negotiate_release(FILE, "need it", wait_seconds=30)
    assert answer["status"] == "free"
    assert team.now - START < 8


def test_a_wait_goes_on_with_the_next_holder_when_somebody_was_in_front() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE])
    eve.negotiate_release(FILE, "first")
    team.after(3, ada.release_all)
    team.after(6, eve.release_all)
    answer = bob.negotiate_release(FILE, "second", wait_seconds=30)
    assert answer["status"] == "free"
    assert [row["holder"] for row in answer.get("reservations", [])] == ["Bob"]


# -- time limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("urgency", "minutes"), [("urgent", 5), ("normal", 10)])
def test_advisory_reports_a_request_that_timed_out_and_takes_nothing(urgency: str, minutes: int) -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=60)
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency=urgency))
    team.minutes(minutes - 0.1, ada)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    team.minutes(2.1, ada)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert (late["thread_id"], late["file"], late["holder"]) == (thread, FILE, "Ada")
    assert (late["urgency"], late["state"], late["minutes_over"]) == (urgency, "expired", 2)
    assert late["suggestion"]
    assert len(bob.fetch_inbox()["negotiation_timeouts"]) == 1
    assert bob.negotiate_release(FILE, "need it")["status"] == "timeout"
    assert len(ada.my_reservations()["reservations"]) == 1
    assert [kind for kind, _ in team.events()].count("release_timed_out") == 1
    assert ada.fetch_inbox()["negotiation_timeouts"] == []


def test_a_request_with_low_urgency_never_times_out() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=1440)
    bob.negotiate_release(FILE, "some day", urgency="low")
    team.minutes(600, ada)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    assert bob.negotiate_release(FILE, "some day", urgency="low")["status"] == "pending"


def test_the_time_limits_are_settings() -> None:
    team = Team(urgent_timeout_minutes=1, normal_timeout_minutes=None, low_timeout_minutes=2)
    ada, bob = team.agent("Ada"), team.agent("Bob")
    for name, urgency in (("a", "urgent"), ("b", "normal"), ("c", "low")):
        ada.reserve_files([name], ttl_minutes=60)
        bob.negotiate_release(name, "need it", urgency=urgency)
    team.minutes(30, ada)
    assert [row["file"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["a", "c"]


def test_force_takes_the_lease_and_tells_both() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    [lease] = ada.reserve_files([FILE], ttl_minutes=60)["reservations"]
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="urgent"))
    team.minutes(5, ada)
    assert len(ada.my_reservations()["reservations"]) == 1
    answer = bob.fetch_inbox()
    [late] = answer["negotiation_timeouts"]
    assert (late["thread_id"], late["state"]) == (thread, "forced")
    assert ada.my_reservations()["reservations"] == []
    [ack] = [row for row in answer["messages"] if row["topic"] == "release-ack"]
    assert (ack["thread_id"], body(ack)["reason"], body(ack)["released"]) == (thread, "timeout", True)
    [told] = inbox(ada, "forced")
    assert (told["from"], told["thread_id"], told["importance"]) == ("interlock", thread, "urgent")
    assert lease["reservation_id"] in told["body"]
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    again = bob.negotiate_release(FILE, "need it")
    assert (again["status"], again.get("reason")) == ("release", "timeout")
    assert [row["holder"] for row in again.get("reservations", [])] == ["Bob"]
    assert [kind for kind, _ in team.events()].count("lease_forced") == 1
    assert ada.respond_to_release(thread, "release")["status"] == "free"


def test_force_also_happens_at_the_next_negotiation_and_only_then() -> None:
    team = Team(escalation="force")
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    team.minutes(30, ada, bob)
    eve.fetch_inbox()
    ada.fetch_inbox()
    assert len(ada.my_reservations()["reservations"]) == 1
    assert bob.negotiate_release("other.py", "something else")["status"] == "free"
    assert ada.my_reservations()["reservations"] == []


def test_force_never_takes_a_lease_with_no_force_and_says_so() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=60, no_force=True)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    team.minutes(30, ada, bob)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert (late["state"], late["code"]) == ("expired", "RSV307")
    assert len(ada.my_reservations()["reservations"]) == 1
    assert inbox(ada, "forced") == []


def test_a_deferral_moves_the_time_limit_to_its_eta() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=60)
    thread = thread_of(bob.negotiate_release(FILE, "need it", urgency="urgent"))
    team.minutes(4, ada, bob)
    ada.respond_to_release(thread, "defer", eta_minutes=20)
    team.minutes(19.9, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    team.minutes(0.1, ada, bob)
    assert [row["state"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["forced"]


def test_a_deferral_of_a_request_without_a_limit_sets_none() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=600)
    thread = thread_of(bob.negotiate_release(FILE, "some day", urgency="low"))
    ada.respond_to_release(thread, "defer", eta_minutes=1)
    team.minutes(60, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []


def test_of_two_urgent_requests_the_first_gets_the_file_whoever_calls_first() -> None:
    team = Team(escalation="force")
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "first", urgency="urgent")
    eve.negotiate_release(FILE, "second", urgency="urgent")
    team.minutes(6, ada, bob, eve)
    eve.fetch_inbox()
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]
    assert eve.my_reservations()["reservations"] == []
    answer = eve.negotiate_release(FILE, "second", urgency="urgent")
    holder = answer.get("holder")
    assert holder is not None
    assert (answer["status"], holder["holder"]) == ("pending", "Bob")


def test_a_holder_that_died_is_reported_as_one_to_take_over() -> None:
    team = Team()
    ada, bob = team.agent("Ada", pid=7), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release(FILE, "need it", urgency="urgent")
    team.minutes(6, ada, bob)
    team.ended.add(7)
    [late] = bob.fetch_inbox()["negotiation_timeouts"]
    assert "reserve_files" in late["suggestion"]
    assert bob.reserve_files([FILE])["errors"] == []
    assert bob.fetch_inbox()["negotiation_timeouts"] == []


# -- circles -------------------------------------------------------------------------------------------------------


def test_two_holders_that_ask_each_other_are_both_told_once() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files(["a.py"])
    bob.reserve_files(["b.py"])
    assert "deadlock" not in bob.negotiate_release("a.py", "need it")
    answer = ada.negotiate_release("b.py", "need it", wait_seconds=30)
    assert answer.get("deadlock") == ["Ada", "Bob"]
    assert (answer["status"], team.now) == ("pending", START)
    ada.negotiate_release("b.py", "need it")
    assert len(inbox(bob, "deadlock")) == 1
    assert inbox(ada, "deadlock") == []
    thread = thread_of(answer)
    assert bob.respond_to_release(thread, "release")["status"] == "released"
    assert [row["pattern"] for row in ada.my_reservations()["reservations"]] == ["a.py", "b.py"]


# -- the old call --------------------------------------------------------------------------------------------------


def test_the_old_call_sends_a_request_with_its_pattern() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    answer = bob.request_release("Ada", "src/*.py", "need it")
    assert (answer["sent"], answer["errors"]) == (True, [])
    assert "negotiate_release" in answer["deprecated"]
    [message] = inbox(ada)
    fields = body(message)
    assert (fields["pattern"], fields["thread_id"]) == ("src/*.py", answer["thread_id"])
    assert "file" not in fields
    assert ada.respond_to_release(str(answer["thread_id"]), "release")["status"] == "released"
    assert len(inbox(bob, "release-ack")) == 1


@pytest.mark.parametrize(
    ("name", "pattern", "reason", "code"),
    [
        ("ghost", FILE, "x", "RSV301"),
        ("", FILE, "x", "RSV301"),
        (None, FILE, "x", "RSV301"),
        (["Ada"], FILE, "x", "RSV301"),
        ("Eve", FILE, "x", "RSV303"),
        ("Ada", "free.py", "x", "RSV303"),
        ("Ada", "../x", "x", "RSV101"),
        ("Ada", FILE, None, "RSV105"),
    ],
)
def test_the_old_call_is_refused_like_the_new_one(name: Any, pattern: Any, reason: Any, code: str) -> None:
    team = Team()
    ada, bob, _ = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE])
    answer = bob.request_release(name, pattern, reason)
    assert (answer["sent"], answer["thread_id"], codes(answer)) == (False, None, [code])
    assert inbox(ada) == []


def test_the_old_call_and_the_new_one_share_a_thread_that_then_times_out() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=600)
    thread = bob.request_release("Ada", FILE, "need it")["thread_id"]
    team.minutes(60, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    assert bob.negotiate_release(FILE, "need it")["thread_id"] == thread
    assert bob.request_release("Ada", FILE, "need it")["thread_id"] == thread
    team.minutes(10, ada, bob)
    assert [row["state"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["forced"]


def test_the_old_call_says_that_a_handed_over_file_is_free() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    ada.respond_to_release(thread_of(bob.negotiate_release(FILE, "need it")), "release")
    answer = bob.request_release("Ada", FILE, "need it")
    assert (answer["sent"], answer["thread_id"], codes(answer)) == (False, None, ["RSV303"])


def test_asking_for_more_than_is_held_keeps_others_out_only_until_the_time_limit() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE], ttl_minutes=60)
    bob.negotiate_release("**", "everything")
    assert codes(eve.reserve_files(["other.py"])) == ["RSV201"]
    team.minutes(12, ada, bob, eve)
    assert codes(eve.reserve_files(["other.py"])) == []


def test_asking_for_what_is_held_keeps_the_place_for_as_long_as_the_holder_needs() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files(["src/**"], ttl_minutes=600)
    thread = thread_of(bob.negotiate_release(FILE, "need it"))
    eve.reserve_files([FILE], wait_seconds=1)
    team.minutes(300, ada, bob, eve)
    ada.respond_to_release(thread, "release")
    assert [row["pattern"] for row in bob.my_reservations()["reservations"]] == [FILE]


def test_everything_is_an_event() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files(["a", "b"], ttl_minutes=60)
    first = thread_of(bob.negotiate_release("a", "need it"))
    bob.negotiate_release("b", "need it")
    ada.respond_to_release(first, "defer", eta_minutes=5)
    ada.respond_to_release(first, "release")
    team.minutes(10, ada, bob)
    bob.fetch_inbox()
    found = [kind for kind, _ in team.events() if kind.startswith("release_") or kind == "lease_forced"]
    expected = ["release_requested", "release_requested", "release_deferred", "release_answered", "release_timed_out"]
    assert found == [*expected, "lease_forced"]
