"""Sets of characters as ranges of code points, and characters without case."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""A set of characters: code points from, to (both in it), ascending, not adjacent."""
Item: TypeAlias = Ranges | None
"""One character of a set, or a star."""

STAR: Final[Item] = None
LAST: Final = 0x10FFFF
SLASH: Final[Ranges] = ((47, 47),)
NAME: Final[Ranges] = ((0, 46), (48, LAST))
"""Every character that a part can have."""
EVERY: Final[Ranges] = ((0, LAST),)
LAST_CASED: Final = 0x1E943
"""No character behind it has another case."""

_MEMO: Final = 4096
"""At most this many sets are remembered."""


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the characters of all ranges, without `/`."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return _without_slash(merged)


def complement(ranges: Ranges) -> Ranges:
    """Return the characters of a part that are not in a set."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if start < low:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return _without_slash(gaps)


def _without_slash(ranges: Sequence[tuple[int, int]]) -> Ranges:
    kept: list[tuple[int, int]] = []
    for low, high in ranges:
        if low <= 47 <= high:
            kept += [(start, end) for start, end in ((low, 46), (48, high)) if start <= end]
        else:
            kept.append((low, high))
    return tuple(kept)


@lru_cache(_MEMO)
def one(code: int) -> Ranges:
    """Return the set of one character, the same object each time: texts are full of them."""
    return ((code, code),)


def single(item: Item) -> int | None:
    """Return the code point of an item that is one character; None for a star and a larger set."""
    return item[0][0] if item is not None and item[0][0] == item[-1][1] else None


def meet(a: Ranges, b: Ranges) -> bool:
    """Return whether two sets share a character."""
    few, many = (a, b) if len(a) < len(b) else (b, a)
    for low, high in few:
        at = bisect_right(many, (high, LAST))
        if at and low <= many[at - 1][1]:
            return True
    return False


def within(a: Ranges, b: Ranges) -> bool:
    """Return whether every character of `a` is in `b`."""
    for low, high in a:
        at = bisect_right(b, (low, LAST))
        if not at or high > b[at - 1][1]:
            return False
    return True


def fold(text: str) -> str:
    """Return a text without case, character by character, so that `?` still stands for one."""
    return text.lower() if text.isascii() else "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


@lru_cache(_MEMO)
def fold_set(ranges: Ranges) -> Ranges:
    """Return a set without case; what a negated set leaves out, it leaves out in every case."""
    if ranges[-1][1] == LAST:
        return complement(fold_set(complement(ranges))) if ranges != NAME else NAME
    code = single(ranges)
    if code is not None:
        return one(ord(_fold_character(chr(code))))
    uppers, lowers = _cases(ascii_only=ranges[-1][1] < 128)
    folded = list(ranges)
    taken: list[int] = []
    for low, high in ranges:
        some = slice(bisect_left(uppers, low), bisect_right(uppers, high))
        taken += uppers[some]
        folded += [(code, code) for code in lowers[some]]
    return tuple(_minus(union(folded), taken))


def _minus(ranges: Ranges, taken: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges without the code points that are taken, ascending ones."""
    for low, high in ranges:
        start = low
        for code in taken[bisect_left(taken, low) : bisect_right(taken, high)]:
            if start < code:
                yield start, code - 1
            start = code + 1
        if start <= high:
            yield start, high


@cache
def _cases(*, ascii_only: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the code points that case changes, ascending, and what it makes of them."""
    codes = range(65, 91) if ascii_only else range(65, LAST_CASED + 1)
    pairs = [(code, ord(lower)) for code in codes if (lower := _fold_character(chr(code))) != chr(code)]
    return tuple(code for code, _ in pairs), tuple(lower for _, lower in pairs)
