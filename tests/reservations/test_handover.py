"""Unsaved work that changes hands: both sides get a report, and no report says what is not so."""

from collections.abc import Callable
from typing import Any

import pytest

from interlock.reservations.leases import calls
from interlock.reservations.leases.handover import MAX_LISTED, review_command
from interlock.reservations.leases.runtime import Caller
from interlock.reservations.service import Reservations
from interlock.reservations.store.records import replace
from interlock.reservations.truncation import MAX_ANSWER_BYTES, bounded, size
from tests.reservations.world import HOST, ROOT, World, codes, ids
from tests.table import each_row

pytestmark = pytest.mark.usefixtures("each_store")

FILE = "src/login.py"


@pytest.fixture
def world() -> World:
    """Give a world in which a file has unsaved work."""
    return World(unsaved={FILE})


def thread(world: World, requester: str) -> str:
    found = world.agent(requester).negotiate_release(FILE, "need it")["thread_id"]
    assert found is not None
    return found


def unsaved(answer: Any) -> list[str]:
    """Return the patterns with unsaved work that an answer reports."""
    return answer["unsaved"]["patterns"]


GIVING: dict[str, Callable[[World, str], Any]] = {
    "by id": lambda world, own: world.agent("ann").release_files([own]),
    "all": lambda world, _: world.agent("ann").release_all(),
    "by request": lambda world, _: world.agent("ann").respond_to_release(thread(world, "bob"), "release"),
}


@pytest.mark.parametrize("how", GIVING)
def test_an_agent_that_gives_up_unsaved_work_learns_which_and_what_to_do(how: str, world: World) -> None:
    _, own = ids(world.agent("ann").reserve_files([FILE, "docs/a.md"]))
    answer = GIVING[how](world, own)
    assert answer["unsaved"]["patterns"] == [FILE]
    assert FILE in answer["unsaved"]["note"]
    assert "interlock commit" in answer["unsaved"]["note"]
    assert answer["unsaved"]["next"] == {"tool": "reserve_files", "arguments": {"patterns": [FILE]}}


@pytest.mark.parametrize("how", GIVING)
def test_giving_up_what_is_committed_reports_nothing(how: str) -> None:
    world = World(unsaved={"docs/a.md"})
    [own] = ids(world.agent("ann").reserve_files([FILE]))
    assert "unsaved" not in GIVING[how](world, own)


def test_who_still_holds_a_file_by_another_lease_or_only_shared_it_has_given_nothing_away() -> None:
    world = World(unsaved={FILE, "shared.md"})
    ann = world.agent("ann")
    [narrow] = ids(ann.reserve_files([FILE]))
    thread(world, "bob")
    with world.store.transaction() as tx:
        for waiter in tx.waiters():
            tx.drop_waiter(waiter.waiter_id)
    ann.reserve_files(["src/**"])
    [shared] = ids(ann.reserve_files(["shared.md"], exclusive=False))
    answer = ann.release_files([narrow, shared])
    assert (answer["released"], "unsaved" in answer) == ([narrow, shared], False)


def test_git_is_not_asked_by_those_who_give_up_what_they_know_to_be_clean(world: World) -> None:
    [own] = ids(world.agent("ann").reserve_files([FILE]))
    assert "unsaved" not in calls.release(world.agent("ann"), [own], report_unsaved=False)


def released(world: World) -> None:
    world.agent("ann").release_all()


def ran_out(world: World) -> None:
    world.now += 16 * 60


def died(world: World) -> None:
    world.end_process("ann")


@pytest.mark.parametrize("ends", [released, ran_out, died])
def test_who_gets_unsaved_work_of_another_learns_whose_it_is_and_how_to_see_it(ends: Callable[[World], None]) -> None:
    world = World(unsaved={FILE})
    world.agent("ann").reserve_files([FILE])
    ends(world)
    answer: dict[str, Any] = dict(world.agent("bob").reserve_files([FILE, "docs/a.md"]))
    assert unsaved(answer) == [FILE]
    assert "ann" in answer["unsaved"]["note"]
    assert answer["unsaved"]["next"] == {"command": f"git status -vv -- {FILE}"}
    assert "unsaved" not in world.agent("bob").reserve_files([FILE])


def test_unsaved_work_that_was_taken_by_force_is_reported_too(world: World) -> None:
    world.settings = replace(world.settings, escalation="force")
    world.agent("ann").reserve_files([FILE], ttl_minutes=60)
    thread(world, "bob")
    world.now += 11 * 60
    [late] = world.agent("bob").fetch_inbox()["negotiation_timeouts"]
    assert late["state"] == "forced"
    assert unsaved(world.agent("bob").reserve_files([FILE])) == [FILE]


def test_coming_back_to_own_unsaved_work_reports_nothing() -> None:
    world = World(unsaved={FILE, "src/**"})
    ann = world.agent("ann")
    ann.reserve_files([FILE])
    ann.release_all()
    assert "unsaved" not in ann.reserve_files([FILE])
    ann.release_all()
    ann.reserve_files(["src/**"])
    world.now += 16 * 60
    assert "unsaved" not in ann.reserve_files(["src/cart.py", FILE])


def test_an_agent_that_waited_for_it_learns_it_in_the_same_answer(world: World) -> None:
    world.agent("ann").reserve_files([FILE])
    world.pauses = [lambda: world.agent("ann").release_all()]
    answer = world.agent("bob").reserve_files([FILE], wait_seconds=10)
    assert unsaved(answer) == [FILE]


def test_whose_lease_ran_out_with_unsaved_work_hears_who_has_it_now_and_once(world: World) -> None:
    world.agent("ann").reserve_files([FILE, "docs/a.md"])
    world.now += 16 * 60
    world.agent("bob").reserve_files([FILE, "docs/a.md"])
    world.agent("bob").reserve_files([FILE])
    [notice] = world.messages("ann", "ran-out")
    assert FILE in notice.body
    assert "bob" in notice.body


def test_an_agent_that_released_it_is_not_notified_again(world: World) -> None:
    world.agent("ann").reserve_files([FILE])
    world.agent("ann").release_all()
    world.agent("bob").reserve_files([FILE])
    assert world.messages("ann", "ran-out") == []


@pytest.mark.parametrize("via", ["hook", "run", "git"])
def test_a_hook_asks_git_only_about_what_another_had(via: str) -> None:
    world = World(unsaved={FILE, "new.py"})
    asked: list[tuple[str, ...]] = []

    def changed(_root: str, patterns: tuple[str, ...]) -> dict[str, bool | None]:
        asked.append(patterns)
        return dict.fromkeys(patterns, True)

    bob = Reservations(replace(world.runtime, changed_here=changed), Caller("bob", "agent", ROOT, via, HOST, 7, "x"))
    world.agent("ann").reserve_files([FILE])
    world.agent("ann").release_all()
    assert "unsaved" not in bob.reserve_files(["new.py"])
    assert asked == []
    assert unsaved(bob.reserve_files([FILE])) == [FILE]
    assert asked == [(FILE,)]


def test_a_shared_lease_and_a_refusal_report_nothing(world: World) -> None:
    assert "unsaved" not in world.agent("bob").reserve_files([FILE], exclusive=False)
    answer = world.agent("ann").reserve_files([FILE])
    assert (codes(answer), "unsaved" in answer) == (["RSV201"], False)


@each_row(
    ("patterns", "expected"),
    [
        (["src/a.py"], "git status -vv -- src/a.py"),
        (["src/[[]id]/page.tsx"], "git status -vv -- 'src/[id]/page.tsx'"),
        (["src/**", "src/*.py"], "git status -vv -- src/"),
        (["**"], "git status -vv -- ."),
    ],
)
def test_the_command_names_paths_that_git_understands(patterns: list[str], expected: str) -> None:
    assert review_command(patterns) == expected


def test_the_command_works_from_elsewhere() -> None:
    assert review_command(["a.py"], "../") == "git status -vv -- ../a.py"
    assert review_command(["**"], "../") == "git status -vv -- ../"
    assert review_command(["a b"], root="/r") == "git -C /r status -vv -- 'a b'"


def test_unsaved_work_that_changed_hands_is_reported_within_the_bound_of_an_answer() -> None:
    names = [f"{number:02}" + "x" * 250 for number in range(99)]
    world = World(unsaved=set(names))
    got = world.agent("ann").reserve_files(names)
    given = world.agent("ann").release_all()
    for answer in (got, given):
        fitted: dict[str, Any] = dict(bounded(answer))
        assert size(fitted) <= MAX_ANSWER_BYTES
        assert (len(unsaved(fitted)), fitted["unsaved"]["more"]) == (MAX_LISTED, 99 - MAX_LISTED)
