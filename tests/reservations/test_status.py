"""The current state: agents, leases, the queue, negotiations; joining and leaving."""

import pytest

from interlock.reservations.leases.runtime import Caller
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from tests.reservations.world import HOST, ROOT, START, World, codes, inbox, two

pytestmark = pytest.mark.usefixtures("each_store")


def test_agents_are_listed_with_their_state_and_leases_the_last_seen_first(world: World) -> None:
    ada = world.join("Ada", pid=7)
    ada.reserve_files(["a", "b"])
    world.join("Bob")
    world.minutes(6)
    cyd = world.join("Cyd")
    world.ended.add(7)
    rows = {row["name"]: row for row in cyd.list_agents()["agents"]}
    assert next(iter(rows)) == "Cyd"
    assert {name: (row["state"], row["leases"]) for name, row in rows.items()} == {
        "Cyd": ("alive", 0),
        "Bob": ("silent", 0),
        "Ada": ("gone", 2),
    }
    assert rows["Bob"]["last_seen_seconds"] == 360
    assert set(rows["Ada"]) == {"name", "kind", "state", "last_seen", "last_seen_seconds", "leases"}


def test_an_agent_of_days_ago_is_listed_only_while_it_holds_something() -> None:
    world = World(settings=Settings(max_ttl_minutes=10_000))
    world.join("Ada").reserve_files(["a"], ttl_minutes=5000)
    world.join("Bob")
    world.minutes(2 * 1440)
    assert [row["name"] for row in world.join("Cyd").list_agents()["agents"]] == ["Cyd", "Ada"]


def test_the_current_state_has_leases_with_their_holders_and_the_queue_in_order(world: World) -> None:
    ada, bob, cyd = world.join("Ada", pid=7), world.join("Bob"), world.join("Cyd")
    ada.reserve_files(["src/**"], "refactoring", no_force=True)
    bob.negotiate_release("src/a.py", "need it")
    world.minutes(1, ada, bob)
    cyd.negotiate_release("src/b.py", "me too")
    shown = cyd.current_state()
    [lease] = shown["leases"]
    assert (lease["holder"], lease["pattern"]) == ("Ada", "src/**")
    assert (lease["no_force"], lease["reason"]) == (True, "refactoring")
    assert (lease["holder_state"], lease["age_seconds"], lease["last_seen_seconds"]) == ("alive", 60, 0)
    queue = [(row["position"], row["agent"], row["patterns"], row["waiting_seconds"]) for row in shown["waiters"]]
    assert queue == [(1, "Bob", ["src/a.py"], 60), (2, "Cyd", ["src/b.py"], 0)]


def test_an_open_negotiation_shows_who_asks_whom_for_what_and_for_how_long_however_old_it_is() -> None:
    world, ada, bob = two()
    ada.reserve_files(["src/**"], ttl_minutes=1440)
    thread = bob.negotiate_release("src/a.py", "need it", urgency="urgent")["thread_id"]
    world.minutes(3, ada, bob)
    [row] = bob.current_state()["negotiations"]
    found = {key: row[key] for key in ("thread_id", "requester", "holder", "pattern", "file", "urgency", "state")}
    assert found == {
        "thread_id": thread,
        "requester": "Bob",
        "holder": "Ada",
        "pattern": "src/**",
        "file": "src/a.py",
        "urgency": "urgent",
        "state": "pending",
    }
    assert (row["age_minutes"], row["minutes_left"], row["expired"], row["resolved"]) == (3, 2, False, False)
    world.minutes(4, ada, bob)
    [row] = bob.current_state()["negotiations"]
    assert (row["age_minutes"], row["minutes_left"], row["expired"]) == (7, -2, True)
    world.minutes(293, ada, bob)
    assert [row["age_minutes"] for row in bob.current_state()["negotiations"]] == [300]


def test_a_deferred_negotiation_shows_its_eta_and_what_is_left_of_it() -> None:
    world, ada, bob = two()
    ada.reserve_files(["a"], ttl_minutes=60)
    thread = bob.negotiate_release("a", "need it")["thread_id"]
    ada.respond_to_release(str(thread), "defer", eta_minutes=20, reason="tests run")
    world.minutes(5, ada, bob)
    [row] = bob.current_state()["negotiations"]
    assert (row["state"], row["eta_minutes"], row["minutes_left"], row["note"]) == ("deferred", 20, 15, "tests run")


@pytest.mark.parametrize("how", ["released", "forced", "free", "withdrawn"])
def test_a_resolved_negotiation_is_marked_with_how_and_fades_after_the_hour(how: str) -> None:
    world, ada, bob = two(escalation="force")
    ada.reserve_files(["a"], ttl_minutes=60)
    thread = str(bob.negotiate_release("a", "need it")["thread_id"])
    if how == "released":
        ada.respond_to_release(thread, "release")
    elif how == "forced":
        world.minutes(10, ada)
        bob.fetch_inbox()
    elif how == "free":
        ada.release_all()
    else:
        bob.leave()
    [row] = ada.current_state()["negotiations"]
    assert (row["state"], row["resolved"]) == (how, True)
    assert row["how"]
    assert row["resolved_at"]
    assert row["minutes_left"] is None
    world.minutes(61)
    assert ada.current_state()["negotiations"] == []
    assert len(ada.current_state(24 * 60)["negotiations"]) == 1


def test_joining_returns_what_concerns_the_agent(ada: Reservations, bob: Reservations) -> None:
    assert ada.join() == {"name": "Ada", "kind": "agent", "leases": [], "unread": 0, "requests": [], "waiting_for": []}
    ada.reserve_files(["a"])
    thread = bob.negotiate_release("a", "need it")["thread_id"]
    joined = ada.join()
    assert [row["pattern"] for row in joined["leases"]] == ["a"]
    assert (joined["unread"], [row["thread_id"] for row in joined["requests"]]) == (1, [thread])
    assert [(row["position"], row["patterns"]) for row in bob.join()["waiting_for"]] == [(1, ["a"])]


def test_joining_under_another_spelling_keeps_the_first_name(world: World) -> None:
    world.join("Ada")
    assert world.agent("ADA").join()["name"] == "Ada"
    assert len(world.join("ada").list_agents()["agents"]) == 1


def test_leaving_gives_back_everything_and_keeps_the_agent_and_its_messages(world: World) -> None:
    ada, bob, cyd = world.join("Ada", pid=7), world.join("Bob"), world.join("Cyd")
    ada.reserve_files(["a"])
    bob.reserve_files(["b"])
    ada.negotiate_release("b", "need it")
    cyd.negotiate_release("a", "need it")
    bob.send_message("Ada", "bye")
    assert ada.leave() == {"name": "Ada", "released_count": 1, "withdrawn": 1}
    assert [row["pattern"] for row in cyd.my_reservations()["reservations"]] == ["a"]
    bob.release_all()
    assert codes(cyd.reserve_files(["b"])) == []
    assert ("Ada", 0) in [(row["name"], row["leases"]) for row in bob.list_agents()["agents"]]
    assert any(row["body"] == "bye" for row in inbox(ada))
    assert [row["agent"] for row in world.events("agent_left")] == ["Ada"]


def test_leaving_unbinds_the_process(world: World) -> None:
    ada = world.join("Ada", pid=7)
    with world.store.transaction() as tx:
        assert tx.agent_of_process(HOST, 7, "once") == "Ada"
    ada.leave()
    with world.store.transaction() as tx:
        assert not tx.agent_of_process(HOST, 7, "once")
    ada.leave()
    assert ada.join()["name"] == "Ada"


def test_a_caller_without_a_process_may_leave(world: World) -> None:
    calls = Reservations(world.runtime, Caller("web", "agent", ROOT, "http"))
    calls.reserve_files(["a"])
    assert calls.leave()["released_count"] == 1
    assert world.now == START


def test_open_negotiations_are_shown_before_resolved_ones(world: World, ada: Reservations, bob: Reservations) -> None:
    ada.reserve_files(["old", "new"])
    bob.negotiate_release("old", "why")
    world.minutes(1, ada, bob)
    thread = bob.negotiate_release("new", "why")["thread_id"]
    ada.respond_to_release(str(thread), "release")
    assert [row["file"] for row in bob.current_state()["negotiations"]] == ["old", "new"]


def test_a_look_registers_nobody_and_writes_nothing_unless_something_is_due(world: World) -> None:
    world.join("Ada").reserve_files(["a"], ttl_minutes=1)
    before = world.store.stamp()
    stranger = Reservations(world.runtime, Caller("Stranger", "agent", ROOT, "cli"))
    assert len(stranger.current_state()["leases"]) == 1
    assert world.store.stamp() == before
    world.minutes(2)
    assert stranger.current_state()["leases"] == []
    assert [row["name"] for row in world.join("Ada").list_agents()["agents"]] == ["Ada"]
