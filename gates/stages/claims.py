"""What evidence items say about one subject, over all sources: a claim has one value, and numbers are compared."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.gates.stages.case import Case, fit_text, items_at
from interlock.gates.stages.grounding import REPO
from interlock.gates.stages.rules import issue, listed, shown

_MAX_NUMBERS: Final = 20
_MAX_PAIRS: Final = 20_000
_MAX_NAMED: Final = 4
_MAX_WORDS_CHARS: Final = 40
_NEAR: Final = 3
_TOKEN: Final = re.compile(r"(?<![\w.-])[0-9]+(?:[.,][0-9]+)*(?=[A-Za-z%]{0,3}\b|\W|$)|[^\W\d_]{2,}")
"""A number by itself or with a unit behind it, none that is part of a name; or a word, also one of a name."""
_EMPTY: Final = re.compile(
    r"an|and|are|as|at|be|by|for|from|has|have|in|is|it|its|no|not|of|on|or|per|than|that|the|this|to|was|with"
)


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in the snippet of an item, with the words beside it that carry meaning, in lower case."""

    at: int
    repo: bool
    locator: str
    value: str
    words: frozenset[str]


def one_value(case: Case) -> Iterator[Finding]:
    """Yield a claim whose subject has another value in an item before it, whatever the sources are."""
    first: dict[str, tuple[int, str]] = {}
    for at, item in items_at(case.payload, "evidence_items"):
        given: object = item.get("claim")
        claim: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
        subject, value = (fit_text(claim.get(name)) for name in ("subject", "value"))
        key = " ".join(subject.split()).casefold()
        if not key or not value.strip():
            continue
        before, other = first.setdefault(key, (at, value))
        if _plain(other) != _plain(value):
            message = f"evidence_items[{before}] and evidence_items[{at}] claim different values for {shown(subject)}."
            fix = "Ask the user which of the two holds, then begin a new run; give each subject a name of its own."
            found = f"{shown(other)} and {shown(value)}"
            yield issue("STG402", f"evidence_items[{at}].claim", message, found, fix=fix)


def same_numbers(case: Case) -> Iterator[Finding]:
    """Yield one note about items with different numbers beside the same words, such as `30 seconds`, `60 seconds`."""
    by_word: dict[str, list[_Number]] = defaultdict(list)
    for at, item in items_at(case.payload, "evidence_items"):
        for number in _numbers(at, item):
            for word in number.words:
                by_word[word].append(number)
    pairs = islice((pair for numbers in by_word.values() for pair in combinations(numbers, 2)), _MAX_PAIRS)
    found = {(one.at, two.at): (one, two) for one, two in pairs if one.at != two.at and _differ(one, two)}
    if found:
        place, message = next(iter(found))[1], "Evidence items have different numbers beside the same words."
        pairs = listed([_named(*pair) for pair in found.values()], _MAX_NAMED)
        yield issue("STG403", f"evidence_items[{place}].snippet", message, pairs, "one number for one thing")


def _plain(value: str) -> str:
    return " ".join(value.split()).casefold()


def _numbers(at: int, item: Mapping[str, Any]) -> Iterator[_Number]:
    """Yield the first numbers of a snippet with the words near them, those of the same line."""
    found, repo, locator = 0, fit_text(item.get("source_type")) == REPO, fit_text(item.get("locator")).strip()
    for line in fit_text(item.get("snippet")).splitlines():
        tokens = [token.casefold() for token in _TOKEN.findall(line)]
        for place, token in enumerate(tokens):
            if token[0].isdigit():
                around = (*tokens[max(0, place - _NEAR) : place], *tokens[place + 1 : place + 1 + _NEAR])
                words = frozenset(word for word in around if not (word[0].isdigit() or _EMPTY.fullmatch(word)))
                if words:
                    yield _Number(at, repo, locator, token, words)
                found += 1
                if found == _MAX_NUMBERS:
                    return


def _differ(one: _Number, two: _Number) -> bool:
    """Return whether two numbers differ and are about the same: two words in common, or all of one.

    Two of the repository are not compared: files hold different numbers for good reason. Nor are two of one place,
    whose texts are compared whole.
    """
    both = one.words & two.words
    return (
        one.value != two.value
        and one.locator != two.locator
        and not (one.repo and two.repo)
        and (len(both) > 1 or both in (one.words, two.words))
    )


def _named(one: _Number, two: _Number) -> str:
    words = shown(" ".join(sorted(one.words & two.words)), _MAX_WORDS_CHARS)
    return f"[{one.at}] {one.value} and [{two.at}] {two.value} beside {words}"
