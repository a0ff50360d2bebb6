"""Texts for people: what was probably meant, and what somebody else wrote made safe to print."""

from collections.abc import Iterable
from typing import Final

_MAX_CHARS: Final = 100


def closest(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the choice most like a word, or nothing when none is near.

    Args:
        word: What was written; of a long text the beginning counts.
        choices: What could have been meant.
        cutoff: How alike the two must be, from 0 to 1.
    """
    return next(iter(nearest(word, choices, 1, cutoff)), "")


def nearest(word: str, choices: Iterable[str], count: int, cutoff: float = 0.6) -> list[str]:
    """Return at most `count` choices that are like a word, the most alike first; `closest` has the arguments."""
    import difflib  # noqa: PLC0415 - only a refusal needs a guess

    return difflib.get_close_matches(word[:_MAX_CHARS], list(choices), count, cutoff)
