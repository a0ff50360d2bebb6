"""Leases: granted or refused in one transaction, renewed and never stacked, ended in one way."""

from typing import Any

import pytest

from interlock.reservations.service import Reservations
from interlock.reservations.store.records import replace
from tests.reservations.world import World, codes, ids

pytestmark = pytest.mark.usefixtures("each_store")

# -- granting ------------------------------------------------------------------------------------------------------


def test_a_free_pattern_is_granted_with_a_token_and_an_expiry(world: World) -> None:
    (lease,) = world.agent("ann").reserve_files(["src/a.py"], "fixing")["reservations"]
    assert (lease["pattern"], lease["holder"], lease["exclusive"], lease["claim"]) == ("src/a.py", "ann", True, False)
    assert (lease["token"], lease["expires_in_seconds"], lease["reason"]) == (1, 900, "fixing")


def test_a_second_holder_is_refused_until_the_lease_expires(world: World) -> None:
    world.agent("ann").reserve_files(["src/a.py"], ttl_minutes=2)
    error: Any = world.agent("bob").reserve_files(["src/*"])["errors"][0]
    assert (error["code"], error["place"]) == ("RSV201", "patterns[0]")
    assert (error["conflict"]["holder"], error["conflict"]["held_pattern"]) == ("ann", "src/a.py")
    world.now += 119.9
    assert codes(world.agent("bob").reserve_files(["src/*"])) == ["RSV201"]
    world.now += 0.1
    assert codes(world.agent("bob").reserve_files(["src/*"])) == []


def test_a_refusal_names_the_next_call_with_arguments_that_work(world: World) -> None:
    world.agent("ann").reserve_files(["src/a.py"])
    error: Any = world.agent("bob").reserve_files(["src/a.py"])["errors"][0]
    assert error["next"]["tool"] == "negotiate_release"
    assert world.agent("bob").negotiate_release(**error["next"]["arguments"])["status"] == "pending"


def test_a_lease_about_to_end_is_waited_for_and_not_negotiated(world: World) -> None:
    world.agent("ann").reserve_files(["src/a.py"], ttl_minutes=0.5)
    error: Any = world.agent("bob").reserve_files(["src/a.py"])["errors"][0]
    assert error["next"]["tool"] == "reserve_files"
    assert codes(world.agent("bob").reserve_files(**error["next"]["arguments"])) == []


@pytest.mark.parametrize(
    ("first", "second", "granted"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_shared_leases_overlap_each_other_alone(world: World, first: bool, second: bool, granted: bool) -> None:
    world.agent("ann").reserve_files(["src/**"], exclusive=first)
    assert (not codes(world.agent("bob").reserve_files(["src/a.py"], exclusive=second))) is granted


def test_several_patterns_are_granted_together_or_not_at_all(world: World) -> None:
    world.agent("ann").reserve_files(["b"])
    answer = world.agent("bob").reserve_files(["a", "b", "c"])
    assert (answer["reservations"], codes(answer)) == ([], ["RSV201"])
    assert answer["errors"][0]["place"] == "patterns[1]"
    assert [lease.pattern for lease in world.leases()] == ["b"]


def test_tokens_rise_with_every_grant_and_stay_with_a_renewal(world: World, ann: Reservations) -> None:
    first = ann.reserve_files(["a"])["reservations"][0]
    again = ann.reserve_files(["a"])["reservations"][0]
    other = ann.reserve_files(["b"])["reservations"][0]
    assert (again["reservation_id"], again["token"]) == (first["reservation_id"], first["token"])
    assert other["token"] > first["token"]


def test_an_own_lease_that_expired_is_granted_anew_with_a_new_token(world: World, ann: Reservations) -> None:
    first = ann.reserve_files(["a"], ttl_minutes=1)["reservations"][0]
    world.now += 60
    second = ann.reserve_files(["a"])["reservations"][0]
    assert second["reservation_id"] != first["reservation_id"]
    assert second["token"] > first["token"]


# -- renewing ------------------------------------------------------------------------------------------------------


def test_reserving_again_renews_and_never_stacks_nor_shortens(world: World, ann: Reservations) -> None:
    first = ann.reserve_files(["src/**"])
    for patterns in (["src/**"], ["src/a.py"], ["./src//a.py", "src/b/*.py"]):
        world.now += 10
        assert ids(ann.reserve_files(patterns)) == ids(first)
    for minutes, expires_at in ((15, world.now + 900), (60, world.now + 3600), (1, world.now + 3600)):
        ann.reserve_files(["src/**"], ttl_minutes=minutes)
        assert [lease.expires_at for lease in world.leases()] == [expires_at]


def test_narrow_leases_fall_into_a_wider_one(world: World, ann: Reservations) -> None:
    ann.reserve_files(["src/a.py", "src/b.py", "docs/c"])
    (wide,) = ann.reserve_files(["src/**"])["reservations"]
    assert sorted(lease.pattern for lease in world.leases()) == ["docs/c", "src/**"]
    assert wide["token"] == 4
    assert {event["into"] for event in world.events("lease_released")} == {wide["reservation_id"]}


def test_the_events_of_a_lease_have_its_reason_and_whether_it_may_be_forced(world: World) -> None:
    ann = world.agent("ann")
    held = ids(ann.reserve_files(["a"], "first"))
    ann.reserve_files(["a"], "second", no_force=True)
    ann.release_files(held)
    rows = [world.events(f"lease_{kind}")[0] for kind in ("granted", "renewed", "released")]
    assert [(row["reason"], row["no_force"]) for row in rows] == [("first", False), ("second", True), ("second", True)]


def test_a_pattern_and_what_it_covers_in_one_call_is_one_lease(world: World) -> None:
    answer = world.agent("ann").reserve_files(["src/a.py", "src/**", "src/**/a.py", "src/a.py"])
    assert [row["pattern"] for row in answer["reservations"]] == ["src/**"]
    assert len(world.leases()) == 1


def test_an_exclusive_lease_does_not_fall_into_a_shared_one(world: World, ann: Reservations) -> None:
    ann.reserve_files(["src/a.py"])
    ann.reserve_files(["src/**"], exclusive=False)
    assert sorted((each.pattern, each.exclusive) for each in world.leases()) == [("src/**", False), ("src/a.py", True)]


def test_a_lease_that_is_asked_for_stays_beside_the_wider_one(world: World, ann: Reservations) -> None:
    (asked_for, _) = ids(ann.reserve_files(["src/a.py", "src/b.py"]))
    thread = world.agent("bob").request_release("ann", "src/a.py", "please")["thread_id"]
    ann.reserve_files(["src/**"])
    assert [lease.pattern for lease in world.leases()] == ["src/a.py", "src/**"]
    with world.store.transaction() as tx:
        (asked,) = tx.open_negotiations(holder="ann")
    assert (asked.thread_id, asked.reservation_id) == (thread, asked_for)


def test_a_request_goes_on_when_its_holder_gives_up_one_of_two_leases_on_the_file(world: World) -> None:
    """A request is answered when the file is free, and not by half of it."""
    ann, bob = world.agent("ann"), world.agent("bob")
    first, second = ids(ann.reserve_files(["*.py", "a*"]))
    world.now += 1
    thread = bob.negotiate_release("a.py", "please")["thread_id"]
    ann.release_files([first])
    with world.store.transaction() as tx:
        (asked,) = tx.open_negotiations(holder="ann")
    assert (asked.thread_id, asked.reservation_id, asked.pattern) == (thread, second, "a*")
    assert bob.negotiate_release("a.py", "please")["thread_id"] == thread
    assert ann.respond_to_release(str(thread), "release")["released"] == [second]


def test_a_shared_lease_is_raised_in_place_with_a_new_token_as_soon_as_no_other_shares(world: World) -> None:
    ann, bob = world.agent("ann"), world.agent("bob")
    shared = ann.reserve_files(["a"], exclusive=False)["reservations"][0]
    bob.reserve_files(["a"], exclusive=False)
    assert codes(ann.reserve_files(["a"])) == ["RSV201"]
    assert [lease.exclusive for lease in world.leases()] == [False, False]
    bob.release_all()
    raised = ann.reserve_files(["a"])["reservations"][0]
    assert raised["reservation_id"] == shared["reservation_id"]
    assert (raised["exclusive"], raised["token"] > shared["token"]) == (True, True)


def test_raising_does_not_queue_behind_whoever_waits_for_the_shared_lease_itself(world: World) -> None:
    ann = world.agent("ann")
    ann.reserve_files(["a"], exclusive=False)
    world.agent("bob").reserve_files(["a"], wait_seconds=0.01)
    assert codes(ann.reserve_files(["a"])) == []


def test_a_narrow_lease_with_no_force_falls_into_a_wider_one_that_gets_it_too(world: World, ann: Reservations) -> None:
    ann.reserve_files(["src/**"])
    ann.reserve_files(["src/a"], no_force=True)
    assert len(world.leases()) == 2
    ann.reserve_files(["src/**"], no_force=True)
    assert [(lease.pattern, lease.no_force) for lease in world.leases()] == [("src/**", True)]


def test_reserving_the_same_pattern_again_adds_no_force_and_takes_nothing_away(world: World, ann: Reservations) -> None:
    ann.reserve_files(["a"])
    for exclusive, no_force in ((True, True), (False, False)):
        (lease,) = ann.reserve_files(["a"], exclusive=exclusive, no_force=no_force)["reservations"]
        assert (lease["exclusive"], lease["no_force"], lease["token"], len(world.leases())) == (True, True, 1, 1)


def test_an_agent_is_the_same_in_any_case_of_its_name(world: World) -> None:
    world.agent("Ann").reserve_files(["a"])
    (lease,) = world.agent("ANN").reserve_files(["a"])["reservations"]
    assert (lease["holder"], lease["token"]) == ("Ann", 1)


# -- takeover ------------------------------------------------------------------------------------------------------


def test_a_holder_whose_process_ended_is_taken_over_and_notified(world: World) -> None:
    world.agent("ann").reserve_files(["a"], no_force=True)
    world.end_process("ann")
    answer = world.agent("bob").reserve_files(["a"])
    assert "taken_over" in answer
    assert [(row["holder"], row["holder_state"]) for row in answer["taken_over"]] == [("ann", "gone")]
    assert [lease.agent for lease in world.leases()] == ["bob"]
    assert len(world.messages("ann", "taken-over")) == 1
    assert len(world.events("lease_taken_over")) == 1


def test_a_silent_holder_without_a_process_is_taken_over_unless_its_lease_has_no_force(world: World) -> None:
    ann, cid = world.join("Ann"), world.agent("cid")
    cid.reserve_files(["c"])
    ann.reserve_files(["a"])
    ann.reserve_files(["b"], no_force=True)
    world.now += 300
    assert codes(world.agent("bob").reserve_files(["a"])) == ["RSV201"]
    world.now += 1
    assert codes(world.agent("bob").reserve_files(["a"])) == []
    for pattern in ("b", "c"):
        error: Any = world.agent("bob").reserve_files([pattern])["errors"][0]
        assert error["conflict"]["holder_state"] == "silent"


def test_a_silent_person_keeps_its_leases(world: World) -> None:
    world.agent("me@host", "person").reserve_files(["a"])
    world.now += 800
    assert codes(world.agent("bob").reserve_files(["a"])) == ["RSV201"]


def test_whoever_waits_in_front_for_the_file_of_the_dead_comes_first(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    world.agent("bob").reserve_files(["a"], wait_seconds=0.01)
    world.end_process("ann")
    assert codes(world.agent("cid").reserve_files(["a"])) == ["RSV201"]
    assert codes(world.agent("bob").reserve_files(["a"])) == []


def test_a_place_of_the_dead_does_not_keep_the_file_of_the_dead_from_the_living(world: World) -> None:
    world.agent("ann").reserve_files(["a"], ttl_minutes=600)
    world.agent("bob").negotiate_release("a", "please")
    world.end_process("ann")
    assert codes(world.agent("cid").reserve_files(["a"])) == ["RSV201"]
    world.now += 301
    answer = world.agent("cid").reserve_files(["a"])
    assert [row["holder"] for row in answer.get("taken_over", [])] == ["ann"]


def test_nothing_is_taken_from_the_dead_when_the_call_is_refused_for_another_pattern(world: World) -> None:
    world.agent("ann").reserve_files(["a"])
    world.agent("cid").reserve_files(["b"])
    world.end_process("ann")
    assert codes(world.agent("bob").reserve_files(["a", "b"])) == ["RSV201"]
    assert sorted(lease.agent for lease in world.leases()) == ["ann", "cid"]


# -- releasing and looking -----------------------------------------------------------------------------------------


def test_only_the_holder_releases_and_each_slip_has_its_own_refusal(world: World) -> None:
    own = ids(world.agent("ann").reserve_files(["a"]))
    foreign = ids(world.agent("bob").reserve_files(["b"]))
    answer = world.agent("ann").release_files([*own, *foreign, "rsv_0", *own])
    assert answer["released"] == own
    assert [(row["code"], row["place"]) for row in answer["errors"]] == [
        ("RSV202", "reservation_ids[1]"),
        ("RSV202", "reservation_ids[2]"),
    ]
    assert [lease.agent for lease in world.leases()] == ["bob"]
    assert codes(world.agent("ann").release_files(own)) == ["RSV202"]


def test_a_release_without_a_list_of_ids_is_refused(world: World) -> None:
    answer = world.agent("ann").release_files([])
    assert answer["released"] == []
    assert codes(answer) == ["RSV105"]


def test_an_expired_lease_is_none_of_ones_own_and_cannot_be_released(world: World, ann: Reservations) -> None:
    own = ids(ann.reserve_files(["a"], ttl_minutes=1))
    ann.reserve_files(["b"])
    world.now += 61
    assert [row["pattern"] for row in ann.my_reservations()["reservations"]] == ["b"]
    assert codes(ann.release_files(own)) == ["RSV202"]
    assert len(world.events("lease_expired")) == 1


def test_release_all_counts_what_it_released(world: World, ann: Reservations) -> None:
    ann.reserve_files(["a", "b"])
    world.agent("bob").reserve_files(["c"])
    assert ann.release_all() == {"released_count": 2}
    assert ann.release_all() == {"released_count": 0}
    assert [lease.agent for lease in world.leases()] == ["bob"]


def test_a_check_reserves_nothing_and_gives_back_the_patterns_as_they_came(world: World) -> None:
    world.agent("ann").reserve_files(["src/**"])
    answer = world.agent("bob").check_conflicts(["./src/a.py", "docs/", "../x", "./lib//b"])
    assert [(row["pattern"], row["holder"]) for row in answer["conflicts"]] == [("./src/a.py", "ann")]
    assert (answer["clear"], codes(answer)) == (["docs/", "./lib//b"], ["RSV101"])
    assert world.agent("ann").check_conflicts(["src/a.py", "**"])["clear"] == ["src/a.py", "**"]
    assert len(world.leases()) == 1


def test_dirtiness_is_asked_once_after_the_transaction_and_only_about_conflicts(world: World) -> None:
    asked: list[tuple[str, ...]] = []

    def dirty(_root: str, patterns: tuple[str, ...]) -> dict[str, bool | None]:
        with world.store.transaction():  # it would not open within another one
            asked.append(patterns)
        return {"src/**": True}

    world.agent("ann").reserve_files(["src/**", "docs/**"])
    bob = world.agent("bob")
    bob.runtime = replace(world.runtime, dirty=dirty)
    assert bob.reserve_files(["free"])["errors"] == []
    answer = bob.check_conflicts(["src/a", "docs/b", "src/c"])
    assert [row["dirty"] for row in answer["conflicts"]] == [True, None, True]
    assert asked == [("docs/**", "src/**")]


# -- ending --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["release", "expiry", "takeover"])
def test_whatever_ends_a_lease_frees_the_requests_for_it(world: World, how: str) -> None:
    own = ids(world.agent("ann").reserve_files(["a"]))
    thread = world.agent("bob").negotiate_release("a", "please")["thread_id"]
    if how == "release":
        world.agent("ann").release_files(own)
    elif how == "expiry":
        world.now += 901
        world.look()
    else:
        world.end_process("ann")
        world.agent("bob").reserve_files(["a"])
    with world.store.transaction() as tx:
        asked: Any = tx.negotiation(str(thread))
    assert (asked.state, asked.resolved_at) == ("free", world.now)


@pytest.mark.parametrize(("away", "kept"), [(3600, True), (3601, False)])
def test_an_agent_that_comes_back_has_old_rows_removed(world: World, away: float, kept: bool) -> None:
    world.look("ann")
    with world.store.transaction() as tx:
        tx.remember("ann", "old", "{}", world.now - 8 * 24 * 3600)
    world.now += away
    world.look("ann")
    with world.store.transaction() as tx:
        assert (tx.remembered("ann", "old") is not None) is kept


def test_a_call_registers_its_agent_once(world: World) -> None:
    for _ in range(3):
        world.now += 10
        world.agent("ann").my_reservations()
    assert [event["agent"] for event in world.events("agent_joined")] == ["ann"]


def test_what_git_does_not_know_of_a_silent_holder_counts_as_unsaved(world: World) -> None:
    world.agent("ann").reserve_files(["a"], ttl_minutes=60)
    bob = world.agent("bob")

    def dirty(_root: str, patterns: tuple[str, ...]) -> dict[str, bool | None]:
        return dict.fromkeys(patterns)

    bob.runtime = replace(bob.runtime, dirty=dirty)
    world.now += 400
    assert codes(bob.reserve_files(["a"])) == ["RSV201"]
    world.end_process("ann")
    assert codes(bob.reserve_files(["a"])) == []
