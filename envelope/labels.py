"""Labels: the exact form that the grammar takes, and the near misses that a reader can still tell."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from interlock.envelope.protocol import LABELS

_ANY: Final = "|".join(LABELS)
EXACT: Final = re.compile(rf"({_ANY}):")
"""A label as the grammar takes it."""
IN_OUTPUT: Final = re.compile(rf"({_ANY})[ \t]*+:")
"""What may not begin a line of OUTPUT."""
_NEAR: Final = re.compile(
    r"[ \t]*+(?>(?:\#{1,6}[ \t]++|>[ \t]*+)?)[*_`]{0,3}"
    r"([A-Za-z][A-Za-z0-9_ \-]{1,23}?)"
    r"[*_`]{0,3}[ \t]*+[:=][*_`]{0,3}"
)
_UNKNOWN: Final = re.compile(r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*):")

_PAIRS: Final = (
    # Cyrillic
    ("\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425", "ABESIJKMHOPCTYX"),
    ("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u04bb\u0501\u051b\u051d", "aeopcyxisjhdqw"),
    # Greek
    ("\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf", "ABEZHIKMNOPTYXo"),
    # other letters
    ("\u0131\u2160\u2164\u2169", "iIVX"),
    # dashes
    ("\u2010\u2011\u2012\u2013\u2014\u2212\ufe58", "-------"),
    # punctuation
    ("\uff1a\u2236\ua789\u2024\u201a\uff0f\u2215\u2044\uff3b\uff3d\uff3f", ":::.,///[]_"),
    # blanks
    ("\u00a0\u2000\u2001\u2002\u2003\u2007\u202f\u3000", "        "),
)
_LOOK_ALIKE: Final = {odd: plain for odds, plains in _PAIRS for odd, plain in zip(odds, plains, strict=True)}


class LabelLine(NamedTuple):
    """A line that is, or is meant to be, a label.

    Args:
        label: The label meant; empty for one that the protocol does not know.
        written: What stands there.
        exact: Whether the grammar takes it as it stands.
        value_at: 0-based index at which its value may begin.
    """

    label: str
    written: str
    exact: bool
    value_at: int


def fold(text: str) -> str:
    """Put ASCII in place of letters that look like it, one for one; other characters stay."""
    if text.isascii():
        return text
    return "".join(_fold_one(char) for char in text)


def _fold_one(char: str) -> str:
    if char.isascii():
        return char
    if "\uff01" <= char <= "\uff5e":
        return chr(ord(char) - 0xFEE0)
    return _LOOK_ALIKE.get(char, char)


def find_label(text: str, taken: Collection[str], keys: Collection[str] = ()) -> LabelLine | None:
    """Tell which label a line of the head is meant to be.

    Args:
        text: The line, folded.
        taken: Labels that stand in the text exactly, or were found before; a near miss is never one of these.
        keys: Words that are not labels where the line stands (the keys of EVIDENCE).
    """
    exact = EXACT.match(text)
    if exact:
        return LabelLine(exact[1], exact[1], True, exact.end())
    near = _NEAR.match(text)
    if near is None:
        return None
    word = re.sub(r"[ \-]+", "_", near[1].strip("_ -").upper())
    if word in LABELS:
        shouted = near[1].isupper() and not text[:1].isspace()
        return LabelLine(word, near[0], False, near.end()) if word not in taken or shouted else None
    if near[1].lower() in keys or (keys and near[1].islower()):
        return None
    guess = closest(word, [label for label in LABELS if label not in taken], 0.8)
    if guess:
        return LabelLine(guess, near[0], False, near.end())
    unknown = _UNKNOWN.match(text)
    return LabelLine("", unknown[1], False, unknown.end()) if unknown else None


def closest(word: str, choices: Collection[str], cutoff: float = 0.6) -> str:
    """Return the choice most like a word, or nothing when none is near."""
    if not 2 <= len(word) <= 64:
        return ""
    import difflib  # noqa: PLC0415  # only a refusal needs a guess

    return next(iter(difflib.get_close_matches(word, list(choices), 1, cutoff)), "")
