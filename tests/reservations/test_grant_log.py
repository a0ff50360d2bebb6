"""Who held a file before: an agent that comes back learns who had it since."""

from collections.abc import Sequence

import pytest

from interlock.reservations.leases import calls, grant_log
from interlock.reservations.leases.grant_log import Missed
from interlock.reservations.patterns import FOLD_CASE
from tests.reservations.world import START, World, codes, ids
from tests.table import each_row

FILE = "src/app/a.py"


def turns(world: World, *rows: tuple[str, str]) -> None:
    """Let agents hold patterns one after the other, a minute each."""
    for name, pattern in rows:
        agent = world.agent(name)
        granted = ids(agent.reserve_files([pattern], partial=True))
        assert granted, (name, pattern)
        world.now += 60
        agent.release_files(granted)


def missed(world: World, name: str, path: str = FILE) -> Missed | None:
    with calls.entered(world.agent(name)) as entry:
        return grant_log.missed(entry, path)


@each_row("rows", [
    [],
    [("ann", FILE)],
    [("bob", FILE)],
    [("bob", FILE), ("ann", FILE)],
    [("ann", FILE), ("bob", "src/app/b.py"), ("bob", "docs/**")],
    [("ann", "src/app/b.py"), ("bob", FILE)],
])  # fmt: skip
def test_an_agent_that_missed_nothing_gets_no_report(rows: Sequence[tuple[str, str]]) -> None:
    world = World()
    turns(world, *rows)
    assert missed(world, "ann") is None


@each_row("mine", [FILE, "src/app/**", "src/**", "**"])
@each_row("theirs", [FILE, "src/app/**", "**"])
def test_who_held_it_since_is_named_whether_by_its_name_or_by_a_folder(mine: str, theirs: str) -> None:
    world = World()
    turns(world, ("ann", mine), ("bob", theirs))
    assert missed(world, "ann") == Missed(("bob",), START + 60, None)
    assert missed(world, "bob") is None


def test_everybody_since_is_named_in_order_and_once(world: World) -> None:
    turns(world, ("bob", FILE), ("ann", FILE), ("cid", FILE), ("bob", FILE), ("cid", FILE))
    assert missed(world, "ann") == Missed(("cid", "bob"), START + 120, None)


def test_when_it_came_back_is_known_and_renewing_does_not_move_it(world: World) -> None:
    turns(world, ("ann", FILE), ("bob", FILE), ("ann", FILE), ("ann", FILE), ("ann", "src/**"))
    assert missed(world, "ann") == Missed(("bob",), START + 60, START + 120)


@pytest.mark.parametrize("how", ["expired", "taken over"])
def test_it_does_not_matter_how_the_lease_ended(world: World, how: str) -> None:
    world.agent("ann").reserve_files([FILE], ttl_minutes=10)
    world.now += 60 if how == "taken over" else 660
    if how == "taken over":
        world.end_process("ann")
    begun = world.now
    assert codes(world.agent("bob").reserve_files([FILE])) == []
    assert missed(world, "ann") == Missed(("bob",), begun, None)


def test_only_the_last_changes_of_hands_are_kept(world: World) -> None:
    turns(world, ("ann", FILE), *((f"a{number}", FILE) for number in range(grant_log.KEPT)))
    assert missed(world, "ann") is None
    assert missed(world, "a0") is not None


@pytest.mark.skipif(FOLD_CASE, reason="here both are one file")
def test_another_spelling_is_another_file(world: World) -> None:
    turns(world, ("ann", FILE), ("bob", FILE.upper()))
    assert missed(world, "ann") is None
