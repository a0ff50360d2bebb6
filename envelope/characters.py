"""Bytes and characters: what a response may hold at all, before anything is read from it.

Refused anywhere: control characters but tab and line ends, every other character that breaks a line, and characters
that change the order of a text or do not show. Joiners, direction marks, soft hyphens and variation selectors are
allowed in free text, where scripts and emoji need them; in labels, ids and names, which are closed vocabularies, they
are an unknown value like any other letter.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from interlock.core.text import few
from interlock.envelope.draft import Draft

MAX_BYTES: Final = 1024 * 1024
"""The largest response that is read, in bytes."""

REFUSED: Final = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff"  # controls and other line breaks
    r"\u202a-\u202e\u2066-\u2069"  # what changes the order of a text
    r"\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # what does not show
    "\U000e0000-\U000e007f"
)
"""The refused characters, as the inside of a class that Python, ECMAScript and Rust read; of halves of pairs apart."""
_REFUSED: Final = re.compile(rf"[{REFUSED}\ud800-\udfff]|\r(?!\n)")
_BREAKS: Final = "\x0b\x0c\r\x85\u2028\u2029"
_PLAIN: Final = bytes([9, 10, *range(32, 127)])
"""The bytes that no rule of this module refuses anywhere."""


class Line(NamedTuple):
    """One line to read: its 1-based number in the text as given, and its text without end and refused characters."""

    number: int
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Text:
    """What is left to read of a response.

    Args:
        text: The text as given, decoded; empty when nothing could be decoded.
        draft: What the bytes and characters broke, or None.
        lines: The lines to read; none when reading on would only guess. They are made when they are asked for.
    """

    text: str
    draft: Draft | None = None
    is_read: bool = True

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines to read, without refused characters; none when reading on would only guess."""
        if not self.is_read:
            return ()
        lines = enumerate(self.text.split("\n"), 1)
        if self.draft is None:
            return tuple([Line(number, line.removesuffix("\r")) for number, line in lines])
        return tuple([Line(number, without_refused(line)) for number, line in lines])


def without_refused(line: str) -> str:
    """Return one line without its end and without refused characters; one that breaks a line becomes a blank."""
    return _REFUSED.sub(lambda char: " " if char[0] in _BREAKS else "", line.removesuffix("\r"))


def name(char: str) -> str:
    """Name a character by code point and Unicode name, as in `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    import unicodedata  # noqa: PLC0415  # only a refusal needs names

    kind = "CONTROL CHARACTER" if unicodedata.category(char) == "Cc" else "NO CHARACTER"
    return f"U+{ord(char):04X} {unicodedata.name(char, kind)}"


def read_text(source: str | bytes, max_bytes: int = MAX_BYTES) -> Text:
    """Decode and check a response.

    Args:
        source: The response; bytes are decoded as UTF-8.
        max_bytes: The largest size that is read, in bytes of UTF-8.
    """
    # Most answers are printable ASCII: one pass in C shows that no rule below can be broken.
    plain = _plain(source, max_bytes)
    if plain is not None:
        return Text(plain)
    # Text may hold halves of pairs, which have no UTF-8: they are counted here and refused below.
    size = len(source) if isinstance(source, bytes) else len(source.encode(errors="surrogatepass"))
    if size > max_bytes:
        message = f"The response is larger than {max_bytes} bytes; it was not read."
        return Text(
            "", Draft("ENV101", "", 0, 0, message, f"more than {max_bytes} bytes", f"at most {max_bytes} bytes"), False
        )
    if isinstance(source, bytes):
        try:
            text = source.decode()
        except UnicodeDecodeError as error:
            return Text("", _undecodable(error), False)
    else:
        text = source
    if not text.strip():
        # Blank lines have a first line to point at; an empty answer has none.
        line = 1 if text else 0
        return Text(text, Draft("ENV102", "", line, line, "The response is empty.", "nothing", "an envelope"), False)
    refused = _REFUSED.search(text)
    if refused is None:
        return Text(text)
    # NUL is in no text; the rest of a binary is not worth reading.
    return Text(text, _refused(text, refused), "\0" not in text)


def _plain(source: str | bytes, max_bytes: int) -> str | None:
    """Return a response of plain ASCII lines as text, or None when a longer look is needed."""
    # The length of ASCII text is its size in bytes.
    if not 0 < len(source) <= max_bytes or not source.isascii():
        return None
    raw = source if isinstance(source, bytes) else source.encode("ascii")
    if raw.translate(None, _PLAIN) or raw.isspace():
        return None
    return source if isinstance(source, str) else source.decode("ascii")


def _undecodable(error: UnicodeDecodeError) -> Draft:
    byte = f"0x{error.object[error.start]:02X}"
    before = error.object[: error.start]
    line = before.count(b"\n") + 1
    # Columns count characters, and what comes before the byte may have several bytes each.
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    message = f"Byte {byte} at offset {error.start} is not UTF-8; the response was not read."
    return Draft("ENV103", "", line, column, message, byte, "UTF-8 text without a byte order mark")


def _refused(text: str, first: re.Match[str]) -> Draft:
    """Report refused characters once: the first with its place, the others by name."""
    names = [name(char) for char in dict.fromkeys(_REFUSED.findall(text))]
    # Every line that its fix has to change, beside the one place that is shown.
    lines = tuple([at for at, line in enumerate(text.split("\n"), 1) if _REFUSED.search(line.removesuffix("\r"))])
    at = first.start()
    column = at - text.rfind("\n", 0, at)
    expected = "characters that show, tabs, and line ends written as LF or CRLF"
    message = f"The response holds {few(names)}."
    return Draft("ENV106", "", text.count("\n", 0, at) + 1, column, message, name(first[0]), expected, lines=lines)
