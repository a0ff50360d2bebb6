"""Characters that look like ASCII: one way to read them, for every comparison of a label, an id, a status or a name.

A person, and often a model, takes `GATE-A11Y` written with U+2011 for the gate; a program does not. Each comparison
reads a text with `fold` and refuses what the fold changed, with the name of the character. Folded are, in this order:
what has no width of its own (marks, joiners, variation selectors), digits, blanks and hyphens of every script, letters
of other scripts with the shape of a Latin one, compatibility forms (NFKD), and letters whose Unicode name says which
Latin letter they are.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from interlock.envelope.characters import name

_SHAPES: Final = {
    "(": "\u2768\u2772\u3014\ufd3e",
    ")": "\u2769\u2773\u3015\ufd3f",
    ",": "\u201a\ua4f9",
    "-": "\u02d7\u2043\u2212\u2796\u2cba",
    ".": "\ua4f8\ua60e\U0001d16d",
    "/": "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u2cc6\u3033\u30ce\u31d3\u4e3f\U0001d23a",
    ":": "\u02d0\u02f8\u0589\u0903\u0a83\u16ec\u1803\u1809\u205a\u2236\ua4fd\ua789",
    "A": "\u0391\u0410\u13aa\u15c5\ua4ee\U000102a0\U00016f40",
    "B": "\u0392\u0412\u13f4\u15f7\ua4d0\ua7b4\U00010282\U000102a1\U00010301",
    "C": "\u03f9\u0421\u13df\u2ca4\ua4da\U000102a2\U00010302\U00010415\U0001051c\U000118f2\U0001f74c",
    "D": "\u13a0\u15de\u15ea\ua4d3",
    "E": "\u0395\u0415\u13ac\u22ff\u2d39\ua4f0\U00010286\U000118a6\U000118ae",
    "F": "\u03dc\u15b4\ua4dd\ua798\U00010287\U000102a5\U00010525\U000118a2\U000118c2\U0001d213",
    "G": "\u050c\u13c0\u13f3\ua4d6",
    "H": "\u0397\u041d\u13bb\u157c\u2c8e\ua4e7\U000102cf",
    "I": (
        "\u0196\u01c0\u0399\u0406\u04c0\u16c1\u2223\u23fd\u2c92\u2d4f\ua4f2\uffe8\U0001028a\U00010309"
        "\U00010320\U00016f28"
    ),
    "J": "\u037f\u0408\u13ab\u148d\ua4d9\ua7b2",
    "K": "\u039a\u041a\u13e6\u16d5\u2c94\ua4d7\U00010518",
    "L": "\u13de\u14aa\u2cd0\ua4e1\U0001041b\U00010526\U000118a3\U000118b2\U00016f16\U0001d22a",
    "M": "\u039c\u03fa\u041c\u13b7\u15f0\u16d6\u2c98\ua4df\U000102b0\U00010311",
    "N": "\u039d\u2c9a\ua4e0\U00010513",
    "O": (
        "\u039f\u041e\u0555\u0b20\u12d0\u2c9e\u2d54\u3007\ua4f3\U00010292\U000102ab\U00010404\U000104c2"
        "\U00010516\U000118b5"
    ),
    "P": "\u03a1\u0420\u13e2\u146d\u2ca2\ua4d1\U00010295",
    "Q": "\u2d55",
    "R": "\u01a6\u13a1\u13d2\u1587\ua4e3\U000104b4\U00016f35\U0001d216",
    "S": "\u0405\u054f\u13d5\u13da\ua4e2\U00010296\U00010420\U00016f3a",
    "T": ("\u03a4\u0422\u13a2\u22a4\u27d9\u2ca6\ua4d4\U00010297\U000102b1\U00010315\U000118bc\U00016f0a\U0001f768"),
    "U": "\u054d\u1200\u144c\u222a\u22c3\ua4f4\U000104ce\U000118b8\U00016f42",
    "V": "\u0474\u13d9\u142f\u2d38\ua4e6\ua6df\U0001051d\U000118a0\U00016f08\U0001d20d",
    "W": "\u051c\u13b3\u13d4\ua4ea\U000118ef",
    "X": (
        "\u03a7\u0425\u166d\u16b7\u2573\u2cac\u2d5d\ua4eb\ua7b3\U00010290\U000102b4\U00010317\U00010322"
        "\U00010527\U000118ec"
    ),
    "Y": "\u03a5\u0423\u04ae\u13a9\u13bd\u2ca8\ua4ec\U000102b2\U000118a4\U00016f43",
    "Z": "\u0396\u13c3\ua4dc\U000102f5\U000118a9",
    "a": "\u0251\u03b1\u0430\u237a",
    "b": "\u0184\u042c\u13cf\u1472\u15af",
    "c": "\u03f2\u0441\u1d04\u2ca5\uabaf\U0001043d",
    "d": "\u0501\u13e7\u146f\ua4d2",
    "e": "\u0435\u04bd\u212e\uab32",
    "f": "\u0584\u1e9d\ua799\uab35",
    "g": "\u018d\u0261\u0581\u1d83",
    "h": "\u04bb\u0570\u13c2",
    "i": "\u0131\u0269\u026a\u03b9\u0456\u04cf\u13a5\u2373\ua647\uab75\U000118c3",
    "j": "\u03f3\u0458",
    "n": "\u0578\u057c",
    "o": (
        "\u03bf\u03c3\u043e\u0585\u0c02\u0c82\u0d02\u0d20\u0d82\u101d\u10ff\u1d0f\u1d11\u2c9f\uab3d\U0001042c"
        "\U000104ea\U000118c8\U000118d7"
    ),
    "p": "\u03c1\u0440\u2374\u2ca3",
    "q": "\u051b\u0563\u0566",
    "r": "\u0433\u1d26\u2c85\uab47\uab48\uab81",
    "s": "\u01bd\u0455\ua731\uabaa\U00010448\U000118c1",
    "u": "\u028b\u03c5\u057d\u1d1c\ua79f\uab4e\uab52\U000104f6\U000118d8",
    "v": "\u03bd\u0475\u1d20\u2228\u22c1\uaba9\U00011706\U000118c0",
    "w": "\u026f\u0461\u051d\u0561\u1d21\uab83\U0001170a\U0001170e\U0001170f",
    "x": "\u00d7\u0445\u1541\u157d\u166e\u292b\u292c\u2a2f",
    "y": "\u0263\u028f\u03b3\u0443\u04af\u10e7\u1d8c\u1eff\uab5a\U000118dc",
    "z": "\u1d22\uab93\U000118c4",
}
"""ASCII to the characters of its shape that no other step folds. Chosen from Unicode's confusables (UTS #39)."""
_SHAPE_OF: Final = {odd: plain for plain, odds in _SHAPES.items() for odd in odds}
_BY_CATEGORY: Final = {"Mn": "", "Me": "", "Cf": "", "Zs": " ", "Pd": "-", "Pc": "_"}
_BLANK: Final = "\u2800"
_NAMED: Final = re.compile(
    r"(?:LATIN (CAPITAL |SMALL )?LETTER|LATIN LETTER SMALL CAPITAL|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER"
    r"|REGIONAL INDICATOR SYMBOL LETTER) ([A-Z])(?: WITH .*)?"
)


class Folded(NamedTuple):
    """A folded text and where each of its characters was.

    Args:
        text: The folded text.
        origin: For each character of it, the 0-based index in the text as given; then the length of that.
    """

    text: str
    origin: tuple[int, ...]

    def end(self, index: int) -> int:
        """Return the index in the text as given behind the folded characters before `index`."""
        return self.origin[index - 1] + 1 if index else 0


def fold(text: str) -> str:
    """Put ASCII in place of characters that look like it, and take out what has no width; other characters stay."""
    return text if text.isascii() else "".join(map(fold_character, text))


def folded(text: str) -> Folded:
    """Fold a text and keep the places of its characters."""
    if text.isascii():
        return Folded(text, tuple(range(len(text) + 1)))
    pieces = [(piece, index) for index, char in enumerate(text) for piece in fold_character(char)]
    return Folded("".join(piece for piece, _ in pieces), (*(index for _, index in pieces), len(text)))


@lru_cache(4096)
def fold_character(char: str) -> str:
    """Fold one character; the result has any length."""
    if char.isascii():
        return char
    import unicodedata  # noqa: PLC0415  # only a text beyond ASCII needs it

    category = unicodedata.category(char)
    if category in _BY_CATEGORY:
        return _BY_CATEGORY[category]
    if char == _BLANK:
        return " "
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if char in _SHAPE_OF:
        return _SHAPE_OF[char]
    parts = unicodedata.normalize("NFKD", char)
    if parts != char:
        made = fold(parts)
        return made if made.isascii() and made else char
    named = _NAMED.fullmatch(unicodedata.name(char, ""))
    if named:
        return named[2].lower() if named[1] == "SMALL " else named[2]
    # A small letter of another script has the shape of a small capital.
    upper = char.upper()
    if len(upper) == 1 and upper != char and (shape := fold_character(upper)).isascii():
        return shape
    return char


def plain(text: str) -> str:
    """Read characters that look like ASCII as what they look like, without blanks around them."""
    return text if text.isascii() else fold(text).strip(" \t")


def non_ascii(text: str) -> str:
    """Name the first character that is not ASCII, as a sentence with a blank before it; nothing when there is none."""
    char = next((char for char in text if not char.isascii()), "")
    if not char:
        return ""
    return f" It holds {name(char)}, which {looks(char)}." if fold(char) != char else f" It holds {name(char)}."


def looks(char: str) -> str:
    """Return what a character looks like, as the end of a sentence."""
    shape = fold_character(char)
    return f"looks like `{shape}`" if shape.strip() else "looks like a blank" if shape else "has no width"


def changes(text: str) -> Iterator[tuple[int, str]]:
    """Yield index and fold of each character that the fold changes."""
    return ((index, fold_character(char)) for index, char in enumerate(text) if fold_character(char) != char)
