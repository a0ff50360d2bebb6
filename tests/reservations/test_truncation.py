"""How long an answer may be: nothing is lost without being counted, and what fits comes as it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.reservations.settings import Settings
from interlock.reservations.truncation import FULL, MAX_ANSWER_BYTES, bounded, page_of_agents, page_of_leases, size
from tests.reservations.world import World

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=2000)
CONFLICTS = st.fixed_dictionaries({"pattern": TEXTS, "holder": TEXTS, "reason": TEXTS})
REFUSALS = st.fixed_dictionaries(
    {"code": st.just("RSV201"), "place": TEXTS, "found": TEXTS}, optional={"conflict": CONFLICTS}
)
LEASES = st.fixed_dictionaries({"reservation_id": TEXTS, "pattern": TEXTS, "reason": TEXTS})
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "errors": st.lists(REFUSALS, max_size=40),
        "reservations": st.lists(LEASES, max_size=40),
        "clear": st.lists(TEXTS, max_size=40),
        "conflicts": st.lists(CONFLICTS, max_size=40),
        "holder": CONFLICTS,
        "more": st.integers(1, 10**6),
    },
)


@given(ANSWERS)
def test_an_answer_fits_and_every_row_that_it_leaves_out_is_counted(answer: dict[str, Any]) -> None:
    fitted: dict[str, Any] = bounded(answer)
    assert size(fitted) <= MAX_ANSWER_BYTES
    rest = fitted.get("rest", {})
    for name in ("errors", "reservations", "clear", "conflicts"):
        rows, shown = answer.get(name, []), fitted.get(name, [])
        left_out = rest.get(name, {"more": 0, "brief": []})
        before = answer.get("more", 0) if name == "conflicts" else 0
        assert (shown, len(shown) + left_out["more"]) == (rows[: len(shown)], len(rows) + before)
        assert len(left_out.get("brief", [])) <= left_out["more"]
        assert not left_out["more"] or left_out["how"]


@given(ANSWERS)
def test_an_answer_that_fits_comes_as_it_is(answer: dict[str, Any]) -> None:
    answer.pop("more", None)
    if size(answer) <= MAX_ANSWER_BYTES:
        assert bounded(answer) is answer


def test_the_first_refusals_come_in_full_and_the_others_with_pattern_and_holder(world: World) -> None:
    patterns = [f"packages/number_{number:03}/{'x' * 150}.py" for number in range(100)]
    world.join("ann").reserve_files(patterns, "refactoring")
    answer = world.join("bob").reserve_files(patterns)
    fitted = bounded(answer)
    assert fitted["errors"] == answer["errors"][:FULL]
    brief = fitted["rest"]["errors"]["brief"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    assert brief[0] == {"code": "RSV201", "pattern": patterns[FULL], "holder": "ann"}
    assert fitted["rest"]["errors"]["more"] == 100 - FULL  # pyright: ignore[reportTypedDictNotRequiredAccess]


def test_every_id_of_a_large_grant_is_in_the_answer(world: World) -> None:
    answer = world.join("ann").reserve_files([f"src/a_package/module_{number:03}.py" for number in range(100)])
    fitted: dict[str, Any] = dict(bounded(answer))
    ids = [row["reservation_id"] for row in [*fitted["reservations"], *fitted["rest"]["reservations"]["brief"]]]
    assert ids == [row["reservation_id"] for row in answer["reservations"]]


def test_pages_of_leases_list_each_once_though_some_are_released_in_between() -> None:
    world = World(settings=Settings(max_leases=300))
    ann = world.join("ann")
    for part in range(3):
        ann.reserve_files([f"part_{part}/module_{number:03}.py" for number in range(100)], "x" * 500)
    seen: list[str] = []
    cursor = 0
    while True:
        page: dict[str, Any] = dict(page_of_leases(ann.my_reservations(), cursor))
        assert size(page) <= MAX_ANSWER_BYTES
        ids = [row["reservation_id"] for row in page["reservations"]]
        seen += ids
        ann.release_files(ids)
        if "rest" not in page:
            break
        assert page["rest"]["reservations"]["more"] == 300 - len(seen)
        cursor = int(page["rest"]["reservations"]["how"].rstrip(".").split()[-1])
    assert len(seen) == len(set(seen)) == 300
    assert ann.my_reservations()["reservations"] == []


def test_pages_of_agents_list_all_of_them_the_one_seen_last_first(world: World) -> None:
    for number in range(150):
        world.now += 1
        world.join(f"{number:03}" + "ä" * 97)
    whole = world.join("150").list_agents()
    seen: list[str] = []
    cursor = 0
    while True:
        page: dict[str, Any] = dict(page_of_agents(whole, cursor))
        assert size(page) <= MAX_ANSWER_BYTES
        seen += [row["name"] for row in page["agents"]]
        if "rest" not in page:
            break
        cursor = int(page["rest"]["agents"]["how"].rstrip(".").split()[-1])
    assert (seen, len(seen)) == ([row["name"] for row in whole["agents"]], 151)


@pytest.mark.parametrize("cursor", [-1, 10**15])
def test_a_cursor_from_nowhere_is_answered_with_what_is_after_it(cursor: int) -> None:
    world = World()
    ann = world.join("ann")
    ann.reserve_files(["a"])
    expected = 1 if cursor < 0 else 0
    assert len(page_of_leases(ann.my_reservations(), cursor)["reservations"]) == expected
    assert len(page_of_agents(ann.list_agents(), cursor)["agents"]) == expected


def test_patterns_that_alone_are_longer_than_an_answer_are_cut() -> None:
    long = '"' * 4096
    answer: dict[str, Any] = {"holder": {"pattern": long, "held_pattern": long}, "next": {"file": long}, "errors": []}
    assert size(answer) > MAX_ANSWER_BYTES >= size(bounded(answer))
