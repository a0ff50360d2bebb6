"""Labels: the exact form that the grammar takes, and the near misses that a reader still recognises."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from interlock.core.text import closest
from interlock.envelope.lookalikes import fold, folded
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


class LabelLine(NamedTuple):
    """A line that is, or is meant to be, a label.

    Args:
        label: The label meant; empty for one that the protocol does not know.
        written: The text there.
        exact: Whether it reads as the grammar takes it; look-alike characters are read as ASCII.
        value_at: 0-based index at which its value may begin.
    """

    label: str
    written: str
    exact: bool
    value_at: int


def find_label(text: str, taken: Collection[str], keys: Collection[str] = ()) -> LabelLine | None:
    """Return the label that a line is meant to be, or None.

    Args:
        text: The line; look-alike characters in it are read as ASCII.
        taken: Labels that the text holds exactly, or that were found before; a near miss is never one of these.
        keys: Words that are not labels in this place (the keys of EVIDENCE).
    """
    read = folded(text)
    text = read.text
    exact = EXACT.match(text)
    if exact:
        return LabelLine(exact[1], exact[1], True, read.end(exact.end()))
    near = _NEAR.match(text)
    if near is None:
        return None
    value_at = read.end(near.end())
    word = re.sub(r"[ \-]+", "_", near[1].strip("_ -").upper())
    if word in LABELS:
        shouted = near[1].isupper() and not text[:1].isspace()
        return LabelLine(word, near[0], False, value_at) if word not in taken or shouted else None
    if near[1].lower() in keys or (keys and near[1].islower()):
        return None
    guess = closest(word, [label for label in LABELS if label not in taken], 0.8)
    if guess:
        return LabelLine(guess, near[0], False, value_at)
    unknown = _UNKNOWN.match(text)
    return LabelLine("", unknown[1], False, read.end(unknown.end())) if unknown else None


def written_label(text: str) -> str:
    """Return the label that a line begins with, in the case in which it is written, whatever its mark-up."""
    near = _NEAR.match(fold(text[:60]))
    word = re.sub(r"[ \-]+", "_", near[1].strip("_ -")) if near else ""
    return word if word.upper() in LABELS else ""


def label_in_output(text: str) -> str:
    """Return the label that a line of OUTPUT begins with, for a program or for a person; nothing when there is none.

    Capitals make the label: `Status:` is a word. Of a letter that only looks Latin, both cases count.
    """
    exact = IN_OUTPUT.match(text)
    if exact or text.isascii():
        return exact[1] if exact else ""
    head = text[: next((index + 1 for index, char in enumerate(text) if ":" in fold(char)), 0)]
    match = IN_OUTPUT.match(fold(head).upper())
    return match[1] if match and not any("a" <= char <= "z" for char in head) else ""
