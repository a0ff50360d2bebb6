"""The acceptance lines of the Negotiation PRD, F1 to F5: one test for each; `docs/negotiation-prd.md` says which."""

import time
from collections import Counter
from pathlib import Path

from interlock.reservations.hooks import release_requests
from interlock.reservations.leases.runtime import Caller
from interlock.reservations.messages.negotiation import NORMAL_TIMEOUT_MINUTES, URGENT_TIMEOUT_MINUTES
from interlock.reservations.service import Reservations
from interlock.reservations.store.records import replace
from interlock.reservations.store.sqlite import SqliteStore
from tests.reservations.team import Team, body, codes, inbox
from tests.sources import lines

FILE = "src/app.py"


def asked(team: Team, urgency: str = "normal", *, no_force: bool = False) -> str:
    """Let Ada hold a file and Bob ask for it; return the thread."""
    team.agent("Ada").reserve_files([FILE], ttl_minutes=120, no_force=no_force)
    answer = team.agent("Bob").negotiate_release(FILE, "need it", urgency=urgency)
    assert answer["status"] == "pending"
    return str(answer["thread_id"])


# -- F1 ------------------------------------------------------------------------------------------------------------


def test_f1_an_ack_says_what_was_released_by_whom() -> None:
    team = Team()
    thread = asked(team)
    team.agent("Ada").respond_to_release(thread, "release")
    [ack] = inbox(team.agent("Bob"), "release-ack")
    assert body(ack) == {"type": "release-ack", "file": FILE, "released": True, "released_by": "Ada"}


def test_f1_a_defer_says_when_and_why() -> None:
    team = Team()
    thread = asked(team)
    team.agent("Ada").respond_to_release(thread, "defer", eta_minutes=7, reason="tests run")
    [deferral] = inbox(team.agent("Bob"), "release-defer")
    assert body(deferral) == {
        "type": "release-defer", "file": FILE, "released": False, "eta_minutes": 7, "reason": "tests run",
    }  # fmt: skip


def test_f1_answers_stand_on_the_thread_of_the_request() -> None:
    team = Team()
    thread = asked(team)
    ada = team.agent("Ada")
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    ada.respond_to_release(thread, "release")
    with team.store.transaction() as tx:
        topics = [message.topic for message in tx.thread(thread)]
    assert topics == ["release-request", "release-defer", "release-ack"]


def test_f1_the_old_request_carries_its_thread() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    thread = bob.request_release("Ada", FILE, "need it")["thread_id"]
    [request] = inbox(ada, "release-request")
    assert body(request)["thread_id"] == request["thread_id"] == thread


def test_f1_both_answers_are_plain_json_for_the_reader() -> None:
    team = Team()
    thread = asked(team)
    ada = team.agent("Ada")
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    ada.respond_to_release(thread, "release")
    found = [body(row) for row in inbox(team.agent("Bob")) if row["thread_id"] == thread]
    assert [(row["type"], row["file"], row["released"]) for row in found] == [
        ("release-defer", FILE, False),
        ("release-ack", FILE, True),
    ]


# -- F2, beside the tests of the hooks ------------------------------------------------------------------------------


def test_f2_looking_for_requests_costs_the_hook_less_than_200_ms(tmp_path: Path) -> None:
    team = Team()
    runtime = replace(team.runtime, store=SqliteStore(str(tmp_path / "reservations.sqlite")))
    calls = {name: Reservations(runtime, Caller(name, "agent", str(tmp_path), "hook")) for name in ("Ada", "Bob")}
    for number in range(10):
        calls["Ada"].reserve_files([f"src/{number}.py"])
        calls["Bob"].negotiate_release(f"src/{number}.py", "need it")
    for number in range(30):
        calls["Bob"].send_message("Ada", f"message {number}")
    took: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        waiting = release_requests.look(runtime, calls["Ada"].caller)
        release_requests.handle(runtime, calls["Ada"].caller, waiting, "1")
        took.append(time.perf_counter() - begin)
        assert len(waiting.open) == 10
    assert min(took) < 0.2


# -- F3 ------------------------------------------------------------------------------------------------------------


def test_f3_a_request_has_one_of_three_urgencies() -> None:
    for urgency in ("low", "normal", "urgent"):
        team = Team()
        asked(team, urgency)
        assert body(inbox(team.agent("Ada"))[0])["urgency"] == urgency
    assert codes(Team().agent("Bob").negotiate_release(FILE, "need it", urgency="high")) == ["RSV105"]


def test_f3_urgency_sets_the_importance_of_the_request() -> None:
    found: dict[str, str] = {}
    threads: set[str] = set()
    for urgency in ("low", "normal", "urgent"):
        team = Team()
        threads.add(asked(team, urgency))
        [request] = inbox(team.agent("Ada"), "release-request")
        found[urgency] = request["importance"]
    assert found == {"low": "low", "normal": "normal", "urgent": "urgent"}
    assert len(threads) == 3


def test_f3_the_thread_leads_to_the_answer_in_the_inbox() -> None:
    team = Team()
    thread = asked(team)
    bob = team.agent("Bob")
    assert bob.fetch_inbox()["messages"] == []
    team.agent("Ada").respond_to_release(thread, "release")
    assert [row["topic"] for row in bob.fetch_inbox()["messages"] if row["thread_id"] == thread] == ["release-ack"]


def test_f3_the_old_request_still_works() -> None:
    team = Team()
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE])
    answer = bob.request_release("Ada", FILE, "need it")
    assert answer["sent"]
    assert ada.respond_to_release(str(answer["thread_id"]), "release")["status"] == "released"


def test_f3_an_urgent_request_is_to_be_acknowledged() -> None:
    for urgency in ("low", "normal", "urgent"):
        team = Team()
        thread = asked(team, urgency)
        with team.store.transaction() as tx:
            [before] = tx.thread(thread)
        assert (before.ack_required, before.acked_at) == (urgency == "urgent", None)
        team.now += 5
        team.agent("Ada").respond_to_release(thread, "defer", eta_minutes=3)
        with team.store.transaction() as tx:
            assert tx.thread(thread)[0].acked_at == team.now


def test_f3_whom_is_asked_exists_and_holds_the_file() -> None:
    team = Team()
    ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
    ada.reserve_files([FILE])
    assert codes(bob.negotiate_release(FILE, "need it", agent_name="Nobody")) == ["RSV301"]
    assert codes(bob.negotiate_release(FILE, "need it", agent_name="Eve")) == ["RSV303"]
    assert bob.negotiate_release("free.py", "need it", agent_name="Ada")["status"] == "free"
    assert inbox(ada) == inbox(eve) == []
    assert bob.negotiate_release(FILE, "need it", agent_name="Ada")["status"] == "pending"
    assert len(inbox(ada)) == 1


# -- F4 ------------------------------------------------------------------------------------------------------------


def test_f4_each_shows_who_asks_whom_for_what_how_urgently_and_since_when() -> None:
    team = Team()
    asked(team, "urgent")
    team.minutes(3)
    [row] = team.agent("Bob").standing()["negotiations"]
    assert (row["requester"], row["holder"], row["pattern"], row["urgency"]) == ("Bob", "Ada", FILE, "urgent")
    assert (row["age_minutes"], row["state"]) == (3, "pending")


def test_f4_a_resolved_one_is_marked_for_an_hour_and_then_gone() -> None:
    team = Team()
    thread = asked(team)
    ada = team.agent("Ada")
    ada.respond_to_release(thread, "release")
    [row] = ada.standing()["negotiations"]
    assert (row["state"], row["resolved"]) == ("released", True)
    team.minutes(61)
    assert ada.standing()["negotiations"] == []


def test_f4_a_deferred_one_shows_its_eta() -> None:
    team = Team()
    thread = asked(team)
    ada = team.agent("Ada")
    ada.respond_to_release(thread, "defer", eta_minutes=7)
    [row] = ada.standing()["negotiations"]
    assert (row["state"], row["eta_minutes"], row["resolved"]) == ("deferred", 7, False)


# -- F5 ------------------------------------------------------------------------------------------------------------


def timed_out_after(team: Team, urgency: str, most: int = 60) -> int | None:
    """Return after how many minutes a request is reported as timed out; None for not at all."""
    asked(team, urgency)
    ada, bob = team.agent("Ada"), team.agent("Bob")
    for minute in range(1, most + 1):
        team.minutes(1, ada)
        if bob.fetch_inbox()["negotiation_timeouts"]:
            return minute
    return None


def test_f5_the_time_limits_are_five_and_ten_minutes_and_none_and_can_be_set() -> None:
    assert (URGENT_TIMEOUT_MINUTES, NORMAL_TIMEOUT_MINUTES) == (5, 10)
    assert {urgency: timed_out_after(Team(), urgency) for urgency in ("urgent", "normal", "low")} == {
        "urgent": 5,
        "normal": 10,
        "low": None,
    }
    changed = {"urgent_timeout_minutes": 2, "normal_timeout_minutes": None, "low_timeout_minutes": 30}
    assert {urgency: timed_out_after(Team(**changed), urgency) for urgency in ("urgent", "normal", "low")} == {
        "urgent": 2,
        "normal": None,
        "low": 30,
    }


def test_f5_time_limits_are_looked_at_by_the_requesters_next_call_alone() -> None:
    for look in ("fetch_inbox", "negotiate_release"):
        team = Team(escalation="force")
        asked(team)
        ada, bob, eve = team.agent("Ada"), team.agent("Bob"), team.agent("Eve")
        team.minutes(20, ada, bob, eve)
        for calls in (ada, eve):
            calls.fetch_inbox()
            calls.list_agents()
            calls.standing()
        bob.my_reservations()
        assert len(ada.my_reservations()["reservations"]) == 1
        if look == "fetch_inbox":
            bob.fetch_inbox()
        else:
            bob.negotiate_release(FILE, "need it")
        assert ada.my_reservations()["reservations"] == []


def test_f5_a_time_out_takes_the_reservation_with_an_ack() -> None:
    team = Team(escalation="force")
    thread = asked(team)
    ada, bob = team.agent("Ada"), team.agent("Bob")
    team.minutes(10, ada)
    answer = bob.fetch_inbox()
    assert [row["state"] for row in answer["negotiation_timeouts"]] == ["forced"]
    [ack] = [row for row in answer["messages"] if row["topic"] == "release-ack"]
    assert ack["thread_id"] == thread
    assert (body(ack)["file"], body(ack)["released"], body(ack)["reason"]) == (FILE, True, "timeout")
    assert ada.my_reservations()["reservations"] == []
    assert [row["holder"] for row in bob.my_reservations()["reservations"]] == ["Bob"]


def test_f5_without_force_a_time_out_is_reported_and_nothing_taken() -> None:
    team = Team()
    thread = asked(team)
    ada, bob = team.agent("Ada"), team.agent("Bob")
    team.minutes(10, ada)
    answer = bob.fetch_inbox()
    assert [(row["thread_id"], row["state"]) for row in answer["negotiation_timeouts"]] == [(thread, "expired")]
    assert answer["messages"] == []
    assert len(ada.my_reservations()["reservations"]) == 1


def test_f5_the_holder_is_told() -> None:
    team = Team(escalation="force")
    thread = asked(team)
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.fetch_inbox()
    team.minutes(10, ada)
    bob.fetch_inbox()
    [told] = ada.fetch_inbox()["messages"]
    assert (told["topic"], told["thread_id"], told["from"]) == ("forced", thread, "interlock")
    assert FILE in told["body"]


def test_f5_the_old_request_never_times_out() -> None:
    team = Team(escalation="force")
    ada, bob = team.agent("Ada"), team.agent("Bob")
    ada.reserve_files([FILE], ttl_minutes=1440)
    bob.request_release("Ada", FILE, "need it")
    team.minutes(600, ada, bob)
    assert bob.fetch_inbox()["negotiation_timeouts"] == []
    assert len(ada.my_reservations()["reservations"]) == 1


def test_f5_no_force_is_respected() -> None:
    team = Team(escalation="force")
    asked(team, "urgent", no_force=True)
    ada, bob = team.agent("Ada"), team.agent("Bob")
    team.minutes(30, ada, bob)
    assert [row["code"] for row in bob.fetch_inbox()["negotiation_timeouts"]] == ["RSV307"]
    assert len(ada.my_reservations()["reservations"]) == 1


# -- the page ------------------------------------------------------------------------------------------------------


def test_every_test_of_a_feature_holds_a_line_of_the_page() -> None:
    found = [row for row in lines("negotiation-prd") if row.source == "Negotiation PRD"]
    assert Counter(row.heading[:2] for row in found) == {"F1": 5, "F2": 6, "F3": 6, "F4": 5, "F5": 6}
    assert {name for name in globals() if name.startswith("test_f")} <= {name for row in found for name in row.tests}
