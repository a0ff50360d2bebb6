"""Overlap, matching and covering, on named pairs; the same against brute force: tests/property/test_overlap.py."""

import sys
from collections.abc import Callable
from itertools import combinations_with_replacement
from types import FrameType

import pytest

from interlock.core.finding import Finding
from interlock.reservations import patterns
from interlock.reservations.patterns import ancestors, canonical, covers, index_prefix, matches, overlaps
from interlock.reservations.patterns.overlap import Automaton, automaton
from tests.reservations.pattern_pairs import PAIRS, Pair
from tests.table import each_row

MOST_CALLS = 250_000
"""This many calls are some 50 ms of work; of a pair that explodes there are millions."""


@each_row("pair", PAIRS, ids=str)
def test_two_patterns_overlap_exactly_when_some_path_matches_both(pair: Pair):
    assert overlaps(pair.a, pair.b, fold_case=False) is pair.overlap
    assert overlaps(pair.b, pair.a, fold_case=False) is pair.overlap


@each_row("pair", [pair for pair in PAIRS if pair.overlap], ids=str)
def test_the_index_finds_what_overlaps(pair: Pair):
    a, b = index_prefix(pair.a), index_prefix(pair.b)
    assert b in ancestors(a) or b.startswith(a)
    assert a in ancestors(b) or a.startswith(b)


@each_row(
    ("a", "b", "overlap"),
    [
        ("README", "readme", True), ("Src/**", "src/App.py", True), ("*.PY", "a.py", True), ("[A-C]x", "bX", True),
        ("[a-c]x", "BX", True), ("[A-C]x", "dx", False), ("[!a]", "A", False), ("[!A]", "a", False),
        ("[!A]", "b", True), ("[!a-c]", "[A-C]", False), ("?", "A", True), ("É*", "éa", True), ("[À-Þ]", "é", True),
        ("[!À-Þ]", "é", False), ("ẞ", "ß", True), ("ß", "ss", False), ("Σ", "ς", True), ("İ", "i", False),
        ("𐐀", "𐐨", True), ("a", "b", False),
    ],
)  # fmt: skip
def test_without_case_two_names_of_one_file_overlap(a: str, b: str, overlap: bool):
    assert overlaps(a, b, fold_case=True) is overlap
    assert overlaps(b, a, fold_case=True) is overlap
    assert covers(a, a, fold_case=True)


def test_case_counts_where_file_systems_distinguish_it():
    assert not overlaps("README", "readme", fold_case=False)
    assert not overlaps("[A-C]", "b", fold_case=False)


def test_the_index_prefix_has_no_case_where_paths_have_none():
    assert index_prefix("Src/App/*.py", fold_case=True) == "src/app/"
    assert index_prefix("Src/App/*.py", fold_case=False) == "Src/App/"


def test_patterns_as_records_and_as_texts_are_compared_alike():
    one, two = canonical("src/*.py"), canonical("src/a*")
    assert isinstance(one, patterns.Pattern)
    assert isinstance(two, patterns.Pattern)
    assert overlaps(one, two)
    assert overlaps(one, "src/a*")
    assert covers("src/**", one)


@pytest.mark.parametrize("call", [overlaps, covers])
def test_a_text_that_is_no_pattern_is_never_compared_as_one(call: Callable[[str, str], bool]):
    with pytest.raises(ValueError, match="absolute"):
        call("/etc/passwd", "src/**")


@each_row(
    ("pattern", "path", "expected"),
    [
        ("**", ".git/config", True), ("*", ".env", True), ("a/**", "a/b/c", True), ("a/**", "a", False),
        ("**/x", "x", True), ("**/x", "ax", False), ("a/**/b", "a/b", True), ("a/**/b", "a/xb", False),
        ("*.py", "a\nb.py", True), ("*.py", "a\udcff.py", True), ("a?b", "a\\b", True), ("[!a]", "\udcff", True),
        ("é", "e\u0301", True), ("a[[]b[]].py", "a[b].py", True), ("a[b].py", "a[b].py", False), ("**", "", False),
        ("**", "/", False), ("a/**", "a/", False), ("a/**", "a//b", False), ("**", "/a", False),
    ],
)  # fmt: skip
def test_a_pattern_matches_paths_as_the_file_system_has_them(pattern: str, path: str, expected: bool):
    assert matches(pattern, path, fold_case=False) is expected


@each_row(
    ("a", "b"),
    [
        ("src/app.py", "./src/app.py"), ("**", "**"), ("**", "a"), ("**", "a/**"), ("**", "**/*.{py,ts}"),
        ("src/**", "src/app.py"), ("src/**", "src/*.py"), ("src/**", "src/**/*.py"), ("src/**", "src/app/**"),
        ("src/**", "src/{a,b}/c"), ("src/**", "src/*/**"), ("src/*", "src/*.py"), ("src/*", "src/?"),
        ("src/*.py", "src/test_*.py"), ("*.{py,ts}", "*.py"), ("*.{py,ts}", "a*.{ts,py}"), ("{src,lib}/**", "lib/a/*"),
        ("[a-z]", "[b-d]"), ("?", "[!a]"), ("[!a]", "[b-d]"), ("[!a]", "[!a-c]"), ("**/b", "a/**/b"), ("**/b", "b"),
        ("**/b", "**/a/**/b"), ("**/*.py", "src/**/test_*.py"), ("**/a/**", "a/b/**"), ("a/**/b", "a/*/b"),
        ("a/**/*.py", "a/*.py"), ("a/**/*.py", "a/**/b/**/*.py"), ("a/**/b/**", "a/b/**"), ("a/**/b", "a/*/**/b"),
        ("**/*b", "**/b"), ("a*b", "a*c*b"), ("*/**", "a/b"), ("a/*/**", "a/b/**"),
        ("app/**", "app/[[]slug[]]/page.tsx"),
    ],
)  # fmt: skip
def test_a_pattern_covers_what_lies_inside_it(a: str, b: str):
    assert covers(a, b)


@each_row(
    ("a", "b"),
    [
        ("a", "b"),
        ("src/app.py", "src/*.py"),
        ("src/*", "src/**"),
        ("src/**", "src"),
        ("src/**", "**"),
        ("src/**", "s*/**"),
        ("*.py", "**/*.py"),
        ("*.py", "*.{py,ts}"),
        ("a/*/**", "a/**"),
        ("a/*/b", "a/**/b"),
        ("**/a/**", "**/a"),
        ("[a-c]", "[a-d]"),
        ("[!a]", "?"),
        ("?", "*"),
        ("a*b", "a*"),
        ("a[[]b]", "a[b]"),
        # These cover in truth; `covers` need not see it.
        ("{a,b}/*", "[ab]/*"),
        ("{?,??*}", "*"),
    ],
)
def test_a_pattern_covers_nothing_that_is_not_seen_to_lie_inside_it(a: str, b: str):
    assert not covers(a, b)


def _han(start: int, count: int) -> str:
    return "".join(chr(0x4E00 + start + number) for number in range(count))


HEAVY = {
    "stars": "*a" * 255 + "*b", "questions": "?" * 256 + "a" * 1700, "one star, long": "*" + "a" * 1900,
    "stars, long": "*a" * 250 + "a" * 1500, "different letters": _han(0, 1300) + "*",
    "other letters": _han(0x1000, 1300) + "*",
    "negated classes": "".join(f"[!{one}{two}]" for one, two in zip(_han(0, 16), _han(128, 16), strict=True)) * 9 + "*",
    "wide classes": "".join(f"[{chr(256 + 2 * n)}-{chr(1156 + 2 * n)}]" for n in range(16)) + "*" + _han(0, 1200),
    "folders": "**/a/" * 120 + "b", "folders and stars": "**/?*/a/" * 63 + "b*",
    "alternatives": "{" + ",".join(f"*{chr(97 + n % 26)}{chr(97 + n // 26)}*{'x' * 24}" for n in range(64)) + "}",
    "doubled alternatives": "{a,b}{a,b}{a,b}{a,b}/**/*{a,b}*",
}  # fmt: skip


def _calls(call: Callable[[], object]) -> int:
    """Return how many functions are called: what a clock would say on a machine of its own."""
    count = 0

    def record(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.long
@pytest.mark.parametrize("fold_case", [False, True])
def test_no_pair_that_is_accepted_is_slow(fold_case: bool):
    read = {name: canonical(text, fold_case=fold_case) for name, text in HEAVY.items()}
    assert [name for name, pattern in read.items() if not isinstance(pattern, patterns.Pattern)] == []
    slow: list[tuple[str, str, int]] = []
    for (one, a), (two, b) in combinations_with_replacement(read.items(), 2):
        assert isinstance(a, patterns.Pattern)
        assert isinstance(b, patterns.Pattern)
        for call in (Automaton.meets, Automaton.includes):
            made = [automaton(each.alternatives, fold_case=fold_case) for each in (a, b)]
            calls = _calls(lambda call=call, made=made: call(*made))
            slow += [(one, two, calls)] if calls > MOST_CALLS else []
    assert slow == []


@each_row(
    "text",
    ["a" * 10_000, "*" * 10_000, "a*" * 5_000, "{" * 10_000, "[" * 10_000, "{a," * 3_000, "{a,b}" * 400, "a/" * 1_000,
     "{" + ",".join("ab" for _ in range(500)) + "}", "{" * 8 + "a,b}" * 8 + "{c,d}" * 300, "é" * 2_049, "?" * 2_000],
)  # fmt: skip
def test_what_could_be_slow_is_refused_at_once(text: str):
    found: list[object] = []
    assert _calls(lambda: found.append(canonical(text))) < MOST_CALLS
    (problem,) = found
    assert isinstance(problem, Finding)
    assert problem.code == "RSV103"
