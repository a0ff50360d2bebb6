"""Patterns against brute force: every path over a small alphabet, and a translation into regular expressions."""

import os
import re
from functools import cache
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.core.finding import Finding
from interlock.core.patterns import (
    Pattern,
    ancestors,
    canonical,
    covers,
    matches,
    overlaps,
    relative,
)
from tests.effort import examples

PIECES = ["a", "b", ".", "/", "/", "*", "**", "?", "[ab]", "[!a]", "[!ab]", "[a.]", "/**/", "{a,b}", "{a/,}", "{*,b/a}"]
MOST_CONSUMED = 4
"""A pattern of n pieces that each take a character at least: two of them that share a path share one of 2n."""


class Glob(NamedTuple):
    """A pattern, and the texts without braces that it stands for."""

    text: str
    plain: tuple[str, ...]


def _options(piece: str) -> tuple[str, ...]:
    return tuple(piece[1:-1].split(",")) if piece[0] == "{" else (piece,)


def _glob(pieces: list[str]) -> Glob:
    plain = dict.fromkeys("".join(chosen) for chosen in product(*map(_options, pieces)))
    return Glob("".join(pieces), tuple(plain))


def _reference(text: str) -> re.Pattern[str] | None:
    """Return a regular expression for a text without braces; None for one that is refused."""
    if not text or text[0] == "/":
        return None
    pieces = text.split("/")
    parts = [piece for piece in pieces if piece not in {"", "."}]
    if ".." in parts:
        return None
    if pieces[-1] in {"", "."}:
        parts.append("**")
    expression = ""
    wild = {"*": "[^/]*", "?": "[^/]"}
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if len(part) > 1 and set(part) == {"*"}:
            expression += ".+" if last else "(?:.+/)?"
            continue
        for token in _tokens(part):
            if token[0] == "[":
                expression += token.replace("[!", "[^/") if token[1] == "!" else token
            else:
                expression += wild[token] if token in wild else re.escape(token)
        expression += "" if last else "/"
    return re.compile(expression, re.DOTALL)


@cache
def _paths(alphabet: str, length: int) -> list[str]:
    """Return the paths of exactly this many characters: no part is empty."""
    texts = ("".join(chosen) for chosen in product(alphabet, repeat=length))
    return [text for text in texts if "" not in text.split("/")]


REAL = [path for length in range(1, 6) for path in _paths("ab./", length) if not {".", ".."} & set(path.split("/"))]
"""What the file system can have: `.` and `..` are no names."""


@cache
def _expressions(glob: Glob) -> list[re.Pattern[str]] | None:
    found = [_reference(text) for text in glob.plain]
    return None if None in found else [one for one in found if one is not None]


def _holds(glob: Glob, path: str) -> bool:
    return any(expression.fullmatch(path) for expression in _expressions(glob) or ())


def _consumed(text: str) -> int:
    """Return how many pieces of a plain text take a character at least."""
    return len(_tokens(text)) - text.count("**")


def _tokens(text: str) -> list[str]:
    return [found.group() for found in re.finditer(r"\[!?[^]]+\]|.", text)]


globs = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(_glob)
small = globs.filter(lambda glob: bool(_expressions(glob)) and max(map(_consumed, glob.plain)) <= MOST_CONSUMED)


@settings(max_examples=examples(400), deadline=None)
@given(globs)
def test_a_text_is_accepted_exactly_when_all_it_stands_for_stays_inside(glob: Glob):
    found = canonical(glob.text)
    assert isinstance(found, Pattern) == (_expressions(glob) is not None)


@pytest.mark.long
@settings(max_examples=examples(300), deadline=None)
@given(globs.filter(lambda glob: bool(_expressions(glob))))
@example(_glob(["a", "/**/", "b"]))
@example(_glob(["**", "/", "*", "/", "a"]))
@example(_glob(["{a/,}", "*", "/", "**", "/", "*"]))
def test_the_canonical_form_matches_the_same_paths_and_is_its_own(glob: Glob):
    pattern = canonical(glob.text)
    assert isinstance(pattern, Pattern)
    again = canonical(pattern.text)
    assert again == pattern
    wrong = [path for path in REAL if matches(pattern, path) != _holds(glob, path)]
    assert wrong == []


@settings(max_examples=examples(600), deadline=None)
@given(small, small)
@example(_glob(["**", "/", "a"]), _glob(["b", "a"]))
@example(_glob(["a", "/**/", "b"]), _glob(["a", "/", "a", "b"]))
def test_two_patterns_overlap_exactly_when_brute_force_finds_a_path(a: Glob, b: Glob):
    _check_overlap(a, b)


def _check_overlap(a: Glob, b: Glob) -> None:
    said = overlaps(a.text, b.text)
    assert overlaps(b.text, a.text) is said
    shared = next((path for path in REAL if _holds(a, path) and _holds(b, path)), None)
    if shared is not None:
        assert said, shared
        one, two = canonical(a.text), canonical(b.text)
        assert isinstance(one, Pattern)
        assert isinstance(two, Pattern)
        assert two.prefix in ancestors(one.prefix) or two.prefix.startswith(one.prefix)
    elif said:
        # `c` stands for all characters that no piece names.
        longer = (path for length in range(1, 2 * MOST_CONSUMED + 1) for path in _paths("abc./", length))
        assert any(_holds(a, path) and _holds(b, path) for path in longer)


@settings(max_examples=examples(500), deadline=None)
@given(globs, globs)
def test_a_pattern_never_seems_to_cover_what_it_does_not(a: Glob, b: Glob):
    if _expressions(a) is None or _expressions(b) is None:
        return
    assert covers(a.text, a.text)
    if covers(a.text, b.text):
        assert [path for path in REAL if _holds(b, path) and not _holds(a, path)] == []
        assert overlaps(a.text, b.text)


@settings(max_examples=examples(400), deadline=None)
@given(globs.filter(lambda glob: bool(_expressions(glob))), st.sampled_from(REAL))
def test_a_pattern_covers_exactly_the_paths_that_it_matches(glob: Glob, path: str):
    assert covers(glob.text, path) is _holds(glob, path)
    assert overlaps(glob.text, path) is _holds(glob, path)
    assert covers("**", glob.text)


MEMBERS = "abcxyzABC019!^-[]{},.*?~ é"


@settings(max_examples=examples(300), deadline=None)
@given(
    st.booleans(),
    st.lists(
        st.one_of(st.sampled_from(MEMBERS), st.tuples(st.sampled_from(MEMBERS), st.sampled_from(MEMBERS))), min_size=1
    ),
)
def test_a_class_of_any_characters_is_written_so_that_it_is_read_the_same(
    negated: bool, items: list[str | tuple[str, str]]
):
    singles = [item for item in items if isinstance(item, str)]
    ranges = [tuple(sorted(item)) for item in items if not isinstance(item, str)]
    # `]` can only come first and `-` only last, `!` and `^` not first; a range begins and ends with neither.
    ranges = [(low, high) for low, high in ranges if not set(low + high) & set("]-")]
    plain = [one for one in singles if one not in "]-!^"]
    late = [one for one in singles if one in "!^"]
    ranges.sort(key=lambda pair: pair[0] in "!^")
    body = "]" * ("]" in singles) + "".join(plain) + "".join(f"{low}-{high}" for low, high in ranges) + "".join(late)
    body += "-" * ("-" in singles)
    if not body or (body[0] in "!^" and not negated) or "[." in body:
        return
    pattern = canonical(f"x[{'!' * negated}{body}]")
    assert isinstance(pattern, Pattern)
    assert canonical(pattern.text) == pattern
    for code in [*range(32, 47), *range(48, 127), ord("é"), ord("日")]:
        character = chr(code)
        inside = character in singles or any(low <= character <= high for low, high in ranges)
        assert matches(pattern, "x" + character) is (inside != negated), (pattern.text, character)


anything = st.text(st.one_of(st.sampled_from("ab/.*?[]{},!^-~\\ \u0301e"), st.characters()), max_size=24)


@settings(max_examples=examples(600), deadline=None)
@given(anything, st.booleans())
def test_any_text_is_a_pattern_with_one_form_or_refused_and_never_an_error(text: str, fold_case: bool):
    found = canonical(text)
    if isinstance(found, Finding):
        assert found.code in {"RSV101", "RSV102"}
        return
    assert canonical(found.text) == found
    assert overlaps(found, found)
    assert covers(found, found.text)
    assert covers("**", found)
    assert found.literal == bool(found.path)
    assert not found.literal or matches(found, found.path)


names = st.one_of(
    st.binary(min_size=1, max_size=12).map(os.fsdecode), st.text(min_size=1, max_size=8), anything
).filter(lambda name: name not in {"", ".", ".."} and not {"/", "\0"} & set(name))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(names, min_size=1, max_size=4))
def test_whatever_a_file_is_called_its_path_is_a_pattern_that_holds_it(parts: list[str]):
    path = "/".join(parts)
    text = relative("/re po/" + path, "/re po")
    assert isinstance(text, str)
    pattern = canonical(text)
    assert isinstance(pattern, Pattern)
    assert matches(pattern, path)
    assert pattern.text == text


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@settings(max_examples=20_000, deadline=None)
@given(small, small)
def test_overlap_against_brute_force_for_long(a: Glob, b: Glob):
    _check_overlap(a, b)
