"""Texts for people: what somebody else wrote made safe to print, and what was probably meant."""

from collections.abc import Iterable, Sequence, Sized
from typing import Final

_MAX_CHARS: Final = 100
"""So much of a word is compared."""
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, *, keep: str = "", ascii_only: bool = False) -> str:
    r"""Return text in which nothing drives a terminal, hides, or breaks a line; such is written `\n` or `\u{202E}`.

    Args:
        text: What somebody else wrote.
        keep: Characters that stay although they do not show, such as newlines.
        ascii_only: Whether letters beyond ASCII are written so as well, where a look-alike would mislead.
    """
    if text.isprintable() and (not ascii_only or text.isascii()):
        return text
    shows = str.isascii if ascii_only else str.isprintable
    return "".join(char if char in keep or (char.isprintable() and shows(char)) else _escape(char) for char in text)


def _escape(char: str) -> str:
    return _SHORT.get(char) or f"\\u{{{ord(char):04X}}}"


def shown(value: object, limit: int = 400, *, keep: str = "") -> str:
    """Return a text, or any value as Python writes it, `visible`: `limit` characters at most, and `…` where cut off."""
    # Cut before every character is looked at; the one character more tells that there was more.
    plain = visible((value if isinstance(value, str) else _ascii(value))[: limit + 1], keep=keep)
    return plain if len(plain) <= limit else f"{plain[:limit]}…"


def _ascii(value: object) -> str:
    """Return a value as ASCII; what is nested too deep, or a number with too many digits, by its type alone."""
    try:
        return ascii(value)
    except (RecursionError, ValueError):
        return f"a {type(value).__name__} that is too large to show"


def one_line(text: str) -> str:
    """Return text as one line in which nothing drives a terminal, for a table or a list."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def count(items: int | Sized, noun: str, several: str = "") -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    number = items if isinstance(items, int) else len(items)
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """Return the first of some names in a line, and how many more there are: `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def money_text(usd: float) -> str:
    """Return US dollars to the cent; what is less, with two digits that say something."""
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.2g}"


def closest(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the choice most like a word, or nothing when none is near enough: `cutoff` is from 0 to 1, equal.

    Of a long word the beginning counts.
    """
    return next(iter(nearest(word, choices, 1, cutoff)), "")


def nearest(word: str, choices: Iterable[str], count: int, cutoff: float = 0.6) -> list[str]:
    """Return at most `count` choices that are like a word, the most alike first; `closest` has the arguments."""
    import difflib  # noqa: PLC0415 - only a refusal needs a guess

    return difflib.get_close_matches(word[:_MAX_CHARS], list(choices), count, cutoff)


def whole(value: object, otherwise: int = 0) -> int:
    """Return a whole number of up to nine digits, or `otherwise`."""
    text = str(value) if type(value) in (int, str) else ""
    # `isdecimal` alone would take the digits of every script.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else otherwise
