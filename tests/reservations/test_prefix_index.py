"""Many patterns or leases beside a pattern: the same answers as comparing each, for a fraction of the work."""

import threading
from itertools import product

import pytest

from interlock.reservations import patterns
from interlock.reservations.leases import granting
from interlock.reservations.leases.granting import pattern_of
from interlock.reservations.patterns import canonical, matches, overlaps, prefix_index
from interlock.reservations.patterns.prefix_index import Near
from interlock.reservations.settings import Settings
from tests.reservations.world import World, codes
from tests.table import each_row

PARTS = ("a", "b", "ä", "*", "a*", "**", "[ab]", "[[]a]", "{a,b/c}")
PATHS = ("a", "b", "ä", "a\u0308", "[a]", "a/b", "b/c", "a/a/b", "ab", "a/[a]", "c/d/e")


def texts() -> list[str]:
    """Return all patterns of one to three parts, in canonical form, each once."""
    spelled = ("/".join(parts) for size in (1, 2) for parts in product(PARTS, repeat=size))
    more = (f"a/{one}/{two}" for one, two in product(PARTS, repeat=2))
    return list(dict.fromkeys(pattern_of(text).text for text in (*spelled, *more)))


TEXTS = texts()


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch) -> Near[str]:
    monkeypatch.setattr(prefix_index, "MAX_COMPARED", len(TEXTS) ** 2)
    return Near((text, pattern_of(text).prefix, text) for text in TEXTS)


def test_a_path_is_covered_by_what_matches_it(every: Near[str]) -> None:
    for path in PATHS:
        assert sorted(every.covering(path)) == sorted(text for text in TEXTS if matches(text, path)), path


def test_a_pattern_meets_what_overlaps_it(every: Near[str]) -> None:
    for wanted in TEXTS:
        assert sorted(every.meeting(wanted)) == sorted(text for text in TEXTS if overlaps(wanted, text)), wanted


def test_what_cannot_be_read_meets_everything(every: Near[str]) -> None:
    assert len(every.meeting("../x")) == len(every) == len(TEXTS)
    assert Near([("../x", "", "odd")]).covering("a") == ["odd"]
    assert Near([("../x", "", "odd")]).meeting("a*") == ["odd"]


@pytest.mark.long
@pytest.mark.parametrize("form", ["src/{}/x.py", "src/{}/**"])
def test_of_ten_thousand_patterns_no_path_and_no_folder_is_read(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(pattern_of(form.format(number)), number) for number in range(10_000)]
    many = Near((pattern.text, pattern.prefix, number) for pattern, number in rows)
    calls: list[str] = []

    def counted(text: str) -> object:
        calls.append(text)
        return canonical(text)

    monkeypatch.setattr(prefix_index, "canonical", counted)
    assert many.covering("src/7/x.py") == [7]
    assert many.meeting("src/7/**") == [7]
    assert many.meeting("*.py") == many.meeting("lib/**/*.py") == []
    assert len(many.meeting("src/*/x.py")) == len(many.meeting("**/x.py")) == 10_000
    assert len(calls) == 5


def test_more_comparisons_than_are_made_in_a_moment_count_as_met() -> None:
    many = Near((f"src/{number}/*.py", f"src/{number}/", number) for number in range(prefix_index.MAX_COMPARED + 5))
    assert many.meeting("src/**/*.c") == list(range(prefix_index.MAX_COMPARED, prefix_index.MAX_COMPARED + 5))


@pytest.fixture
def world() -> World:
    """Make a world in which ann holds 300 plain files."""
    world = World(settings=Settings(max_patterns=1000))
    world.agent("ann").reserve_files([f"crate{number // 50}/src/m{number}.rs" for number in range(300)])
    return world


def test_plain_leases_are_compared_without_reading_patterns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_what_is_plain_is_known_by_text_and_prefix(text: str, fold_case: bool) -> None:
    pattern = patterns.canonical(text, fold_case=fold_case)
    assert isinstance(pattern, patterns.Pattern)
    plain = pattern.literal and "[" not in pattern.text
    assert patterns.is_plain(pattern.text, pattern.prefix, fold_case=fold_case) is plain
    assert patterns.plain_prefix(pattern.text, fold_case=fold_case) == (pattern.prefix if plain else None)


def test_wide_patterns_beyond_a_bound_are_refused_and_never_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granting, "MAX_COMPARED", 500)
    bob = world.agent("bob")
    wide = ["**/*.a", "**/*.b"]
    assert codes(bob.reserve_files(wide)) == ["RSV104"]
    assert codes(bob.reserve_files(wide, partial=True)) == ["RSV104"]
    assert codes(bob.reserve_files(wide, wait_seconds=1)) == ["RSV104"]
    assert world.waiters() == []
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
