"""Overlap, matching and covering, on named pairs; the same against brute force: tests/property/test_overlap.py."""

from collections.abc import Callable

import pytest

from interlock.core.patterns import Pattern, canonical, covers, matches, overlaps
from tests.table import each_row


@each_row(
    ("a", "b", "overlap"),
    [
        ("src/", "src/x/y/z", True),
        ("src/", "srcs/app.py", False),
        ("*.py", "a.pyc", False),
        ("**", ".git/config", True),
        ("a/*/**", "a/b", False),
        ("**/node_modules/**", "node_modules/x/index.js", True),
        ("a**b", "a/b", False),
        ("[A-Z]*", "README", True),
        ("[!a]", "é", True),
        ("[!a]", "[a]", False),
        ("a[.-0]b", "a/b", False),
        ("[!]]", "[]]", False),
        ("{[,],x}", ",", True),
        ("a[b].py", "a[[]b[]].py", False),
        ("[{]a,b[}]", "a", False),
        ("app/*/page.tsx", "app/[[]slug[]]/page.tsx", True),
        ("é", "e\u0301", False),
        ("😀", "??", False),
        ("src/**/[a-m]*.{ts,tsx}", "src/app/*/index.tsx", True),
        ("**/*_test.go", "pkg/**/a*.go", True),
        ("{a,b}/**/x*", "*/c/*x", True),
        ("**/[!.]*/*", ".git/config", False),
    ],
)
def test_two_patterns_overlap_exactly_when_some_path_matches_both(a: str, b: str, overlap: bool):
    assert overlaps(a, b) is overlap
    assert overlaps(b, a) is overlap


def test_patterns_as_records_and_as_texts_are_compared_alike():
    one, two = canonical("src/*.py"), canonical("src/a*")
    assert isinstance(one, Pattern)
    assert isinstance(two, Pattern)
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
        ("**", ".git/config", True),
        ("*", ".env", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("**/x", "x", True),
        ("**/x", "ax", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/xb", False),
        ("*.py", "a\nb.py", True),
        ("*.py", "a\udcff.py", True),
        ("a?b", "a\\b", True),
        ("[!a]", "\udcff", True),
        ("é", "e\u0301", False),
        ("a[[]b[]].py", "a[b].py", True),
        ("a[b].py", "a[b].py", False),
        ("**", "", False),
        ("**", "/", False),
        ("a/**", "a/", False),
        ("a/**", "a//b", False),
        ("**", "/a", False),
    ],
)
def test_a_pattern_matches_paths_as_the_file_system_has_them(pattern: str, path: str, expected: bool):
    assert matches(pattern, path) is expected


@each_row(
    ("a", "b"),
    [
        ("src/app.py", "./src/app.py"),
        ("**", "**"),
        ("**", "a"),
        ("**", "a/**"),
        ("**", "**/*.{py,ts}"),
        ("src/**", "src/app.py"),
        ("src/**", "src/*.py"),
        ("src/**", "src/**/*.py"),
        ("src/**", "src/app/**"),
        ("src/**", "src/{a,b}/c"),
        ("src/**", "src/*/**"),
        ("src/*", "src/*.py"),
        ("src/*", "src/?"),
        ("src/*.py", "src/test_*.py"),
        ("*.{py,ts}", "*.py"),
        ("*.{py,ts}", "a*.{ts,py}"),
        ("{src,lib}/**", "lib/a/*"),
        ("[a-z]", "[b-d]"),
        ("?", "[!a]"),
        ("[!a]", "[b-d]"),
        ("[!a]", "[!a-c]"),
        ("**/b", "a/**/b"),
        ("**/b", "b"),
        ("**/b", "**/a/**/b"),
        ("**/*.py", "src/**/test_*.py"),
        ("**/a/**", "a/b/**"),
        ("a/**/b", "a/*/b"),
        ("a/**/*.py", "a/*.py"),
        ("a/**/*.py", "a/**/b/**/*.py"),
        ("a/**/b/**", "a/b/**"),
        ("a/**/b", "a/*/**/b"),
        ("**/*b", "**/b"),
        ("a*b", "a*c*b"),
        ("*/**", "a/b"),
        ("a/*/**", "a/b/**"),
        ("app/**", "app/[[]slug[]]/page.tsx"),
    ],
)
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


HEAVY = ["*a" * 511 + "*b", "?" * 512 + "a" * 511, "*" + "a" * 1000, "**/a/" * 200 + "b", "**/?*/a/" * 120 + "b*"]


@pytest.mark.parametrize("text", HEAVY, ids=range(len(HEAVY)))
def test_no_path_and_no_pair_of_the_longest_patterns_takes_long(text: str):
    pattern = canonical(text)
    assert isinstance(pattern, Pattern)
    assert not matches(pattern, "a" * 2000 + "/a" * 500 + "c")
    assert overlaps(pattern, pattern)
    assert not overlaps(pattern, "x" + "?" * 500 + "/**/c" + "?" * 500)
    assert covers(pattern, pattern)
