"""Wide patterns among thousands of leases: compared without reading each, and never for longer than a bound."""

import threading

import pytest

from interlock.reservations import patterns
from interlock.reservations.leases import granting
from interlock.reservations.settings import Settings
from tests.reservations.world import World, codes
from tests.table import each_row


@pytest.fixture
def world() -> World:
    """Make a world in which ann holds 300 plain files."""
    world = World(settings=Settings(max_patterns=1000))
    world.agent("ann").reserve_files([f"crate{number // 50}/src/m{number}.rs" for number in range(300)])
    return world


def test_plain_leases_are_compared_without_reading_their_patterns(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> patterns.Pattern:
        raise AssertionError(text)

    monkeypatch.setattr(granting, "pattern_of", read)
    bob = world.agent("bob")
    answer = bob.check_conflicts(["**/*.rs", "**/*.go"])
    assert (len(answer["conflicts"]), answer.get("more"), answer["clear"]) == (100, 200, ["**/*.go"])
    assert codes(bob.reserve_files(["**/m?.rs"])) == ["RSV201"]
    assert codes(bob.reserve_files(["**"])) == ["RSV201"]


@each_row("fold_case", [False, True])
@each_row("text", ["a.py", "src/A.py", "src/é/B", "a[[]b", "src/**", "**", "*", "[ab]", "{a,b}", "src/*", "[~]/a"])
def test_what_is_plain_is_told_by_text_and_prefix(text: str, fold_case: bool) -> None:
    pattern = patterns.canonical(text, fold_case=fold_case)
    assert isinstance(pattern, patterns.Pattern)
    plain = pattern.literal and "[" not in pattern.text
    assert patterns.is_plain(pattern.text, pattern.prefix, fold_case=fold_case) is plain
    assert patterns.plain_prefix(pattern.text, fold_case=fold_case) == (pattern.prefix if plain else None)


def test_several_wide_patterns_beyond_the_bound_are_refused_and_one_never_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(granting, "MAX_COMPARED", 500)
    bob = world.agent("bob")
    wide = ["**/*.a", "**/*.b"]
    assert codes(bob.reserve_files(wide)) == ["RSV104"]
    assert codes(bob.reserve_files(wide, partial=True)) == ["RSV104"]
    assert codes(bob.reserve_files(wide, wait_seconds=1)) == ["RSV104"]
    assert world.line() == []
    answer = bob.check_conflicts([*wide, "\0"])
    assert (codes(answer), answer["conflicts"], answer["clear"]) == (["RSV102", "RSV104"], [], [])
    assert codes(bob.reserve_files(["**/*.a"])) == []
    assert codes(bob.reserve_files([f"lib/{number}" for number in range(200)])) == []
    monkeypatch.setattr(granting, "MAX_COMPARED", 100)
    assert codes(bob.reserve_files(["**/*.b"])) == []


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
