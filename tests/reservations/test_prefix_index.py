"""Many patterns or leases beside a pattern: the same answers as comparing each, for a fraction of the work."""

import threading
from itertools import product

import pytest

from interlock.core import patterns
from interlock.core.patterns import matches
from interlock.reservations.git.near import Near
from interlock.reservations.leases import granting
from interlock.reservations.leases.granting import pattern_of
from interlock.reservations.settings import Settings
from tests.reservations.world import World

PARTS = ("a", "b", "ä", "*", "a*", "**", "[ab]", "[[]a]", "{a,b/c}")
PATHS = ("a", "b", "ä", "a\u0308", "[a]", "a/b", "b/c", "a/a/b", "ab", "a/[a]", "c/d/e")


def texts() -> list[str]:
    """Return all patterns of one to three parts, in canonical form, each once."""
    spelled = ("/".join(parts) for size in (1, 2) for parts in product(PARTS, repeat=size))
    more = (f"a/{one}/{two}" for one, two in product(PARTS, repeat=2))
    return list(dict.fromkeys(pattern_of(text).text for text in (*spelled, *more)))


TEXTS = texts()


@pytest.fixture
def every() -> Near[str]:
    return Near((text, pattern_of(text).prefix, text) for text in TEXTS)


def test_a_path_is_covered_by_what_matches_it(every: Near[str]) -> None:
    for path in PATHS:
        assert sorted(every.covering(path)) == sorted(text for text in TEXTS if matches(text, path)), path


def test_what_cannot_be_read_meets_everything() -> None:
    assert Near([("../x", "", "odd")]).covering("a") == ["odd"]


@pytest.fixture
def world() -> World:
    """Make a world in which ann holds 300 plain files."""
    world = World(settings=Settings(max_patterns=1000))
    world.agent("ann").reserve_files([f"crate{number // 50}/src/m{number}.rs" for number in range(300)])
    return world


def test_leases_near_several_patterns_are_read_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    near = granting.near

    def counted(entry: granting.Entry, pattern: patterns.Pattern) -> list[granting.Lease]:
        if threading.get_ident() == mine:  # runs of other tests may still renew what they hold
            asked.append(pattern.prefix)
        return near(entry, pattern)

    mine = threading.get_ident()
    monkeypatch.setattr(granting, "near", counted)
    world.agent("bob").check_conflicts([f"**/*{number}.go" for number in range(20)] + ["lib/*"])
    assert sorted(asked) == ["", "lib/"]
