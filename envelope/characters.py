"""Bytes and characters: what a response may hold at all, before anything is read from it.

Refused anywhere: control characters but tab and line ends, every other line-breaking character, bidirectional
overrides, embeddings and isolates (they make a reader see another order), and invisible characters that carry no
meaning in prose.
Joiners, direction marks, soft hyphens and variation selectors are allowed in free text, where scripts and emoji need
them; outside of emoji one warning names them. Fixed values and labels are ASCII, which a rule of its own checks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from interlock.envelope.draft import Draft, Op, Patch

MAX_BYTES: Final = 1024 * 1024
"""The largest response that is read, in bytes."""

_CONTROL: Final = r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff"
_BREAK: Final = r"\x0b\x0c\x85\u2028\u2029"
_BIDI: Final = r"\u202a-\u202e\u2066-\u2069"
_HIDDEN: Final = (
    r"\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
_SURROGATE: Final = r"\ud800-\udfff"
_ASCII_BAD: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_BAD: Final = re.compile(rf"[{_CONTROL}{_BREAK}{_BIDI}{_HIDDEN}{_SURROGATE}]|\r(?!\n)")
_NEW_LINE_WANTED: Final = re.compile(r"[ \t]*(?:[A-Z_]{4,}:|- |[0-9]+\. |$)")
_PLAIN: Final = bytes([9, 10, *range(32, 127)])
"""The bytes that no rule of this module refuses anywhere."""
_MAX_OPS: Final = 40
_MAX_KINDS: Final = 24

_KINDS: Final = (
    ("ENV107", re.compile(rf"[\r{_BREAK}]")),
    ("ENV108", re.compile(f"[{_BIDI}]")),
    ("ENV105", re.compile(r"\A\ufeff")),
    ("ENV109", re.compile(f"[{_HIDDEN}]")),
    ("ENV103", re.compile(r"[\udc80-\udcff]")),
    ("ENV111", re.compile(f"[{_SURROGATE}]")),
    ("ENV106", re.compile(".", re.DOTALL)),
)
_WORDS: Final = {
    "ENV103": ("is a byte that is not UTF-8", "UTF-8 text"),
    "ENV105": ("is a byte order mark", "`STATUS:` as the first characters of the response"),
    "ENV106": ("is a control character", "printable characters, tabs and line ends"),
    "ENV107": ("breaks a line for some readers and not for others", "line ends written as LF or CRLF"),
    "ENV108": ("changes the order in which a reader sees the text", "text in its plain order"),
    "ENV109": ("is invisible", "characters that a reader can see"),
    "ENV111": ("is half of a character pair", "whole characters"),
}


_ENCODINGS: Final = (
    (b"\xff\xfe\0\0", "UTF-32 (little endian)"),
    (b"\0\0\xfe\xff", "UTF-32 (big endian)"),
    (b"\xff\xfe", "UTF-16 (little endian)"),
    (b"\xfe\xff", "UTF-16 (big endian)"),
)


class Line(NamedTuple):
    """One line to read.

    Args:
        number: 1-based line of the text as given.
        text: Its text without its end and without refused characters.
        origin: For a line that lost characters, the 1-based column of each remaining one and of the end.
    """

    number: int
    text: str
    origin: tuple[int, ...] | None = None

    def column(self, index: int) -> int:
        """Return the 1-based column in the text as given of the character at `index`."""
        return index + 1 if self.origin is None else self.origin[index]


@dataclass(frozen=True, eq=False, repr=False)
class Text:
    """What is left to read of a response.

    Args:
        text: The text as given, decoded; empty when nothing could be decoded.
        drafts: What the bytes and characters broke.
        cleaned: For a text with refused characters, its lines without them; empty when reading on would only guess.
    """

    text: str
    drafts: tuple[Draft, ...] = ()
    cleaned: tuple[Line, ...] | None = None

    @property
    def clean(self) -> bool:
        """Whether the text holds no refused character."""
        return not self.drafts

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines to read."""
        return tuple(split_lines(self.text)) if self.cleaned is None else self.cleaned


def name(char: str) -> str:
    """Name a character by code point and Unicode name, as in `U+041E CYRILLIC CAPITAL LETTER O`."""
    import unicodedata  # noqa: PLC0415  # only a refusal needs names

    fallback = {0: "NULL", 9: "TAB", 10: "LINE FEED", 11: "LINE TABULATION", 12: "FORM FEED", 13: "CARRIAGE RETURN"}
    fallback |= {27: "ESCAPE", 127: "DELETE", 0x85: "NEXT LINE", 0xFEFF: "BYTE ORDER MARK"}
    point = ord(char)
    kind = "SURROGATE" if 0xD800 <= point <= 0xDFFF else "CONTROL CHARACTER"
    return f"U+{point:04X} {fallback.get(point) or unicodedata.name(char, kind)}"


def _plain(source: str | bytes, max_bytes: int) -> str | None:
    """Return a response of plain ASCII lines as text, or None when a longer look is needed."""
    if not 0 < len(source) <= max_bytes or not source.isascii():
        return None
    raw = source if isinstance(source, bytes) else source.encode("ascii")
    if raw.translate(None, _PLAIN) or raw.isspace():
        return None
    return source if isinstance(source, str) else source.decode("ascii")


def read_text(source: str | bytes, max_bytes: int = MAX_BYTES) -> Text:
    """Decode and check a response.

    Args:
        source: The response; bytes are decoded as UTF-8.
        max_bytes: The largest size that is read, in bytes of UTF-8.
    """
    plain = _plain(source, max_bytes)
    if plain is not None:
        return Text(plain)
    refused = _size(source, max_bytes) or _encoding(source)
    if refused:
        return Text("", (refused,), ())
    if isinstance(source, bytes):
        try:
            text = source.decode()
        except UnicodeDecodeError as error:
            if b"\0" in source or source.count(b"\xff") > 8:
                return Text("", (_undecodable(error),), ())
            text = source.decode(errors="surrogateescape")
    else:
        text = source
    if text.isspace() or not text:
        blank = Draft(
            "ENV102", "", 1 if text else 0, 1 if text else 0, "The response is empty.", "nothing", "an envelope"
        )
        return Text(text, (blank,), ())
    if "\0" in text:
        return Text(text, (_nul(text),), ())
    if (_ASCII_BAD if text.isascii() else _BAD).search(text) is None:
        return Text(text)
    return _clean(text, isinstance(source, bytes))


def report_unseen(text: str) -> Iterator[Draft]:
    """Name the characters of a text that nobody sees and that are not refused, with their first places, once."""
    chars = [] if text.isascii() else [char for char in sorted(set(text)) if not char.isascii() and _is_unseen(char)]
    base = rf"[^\w\s\x00-\x7f{''.join(chars)}][\ufe0e\ufe0f]?"
    emoji = rf"{base}(?>(?:\u200d{base})*)|[0-9#*]\ufe0f\u20e3"
    places: dict[str, list[tuple[int, int]]] = {}
    for number, line in enumerate(text.split("\n"), 1) if chars else ():
        for found in re.finditer(rf"{emoji}|([{''.join(chars)}])", line):
            if found[1]:
                places.setdefault(found[1], []).append((number, found.start() + 1))
    if places:
        shown = {char: ", ".join(f"{line}:{column}" for line, column in at[:3]) for char, at in places.items()}
        named = [f"{name(char)} at {where}{' …' if len(places[char]) > 3 else ''}" for char, where in shown.items()]
        message = f"Nobody sees {'; '.join(named[:4])}{'; and others' if len(named) > 4 else ''}."
        line, column = min(at[0] for at in places.values())
        count = f"{sum(map(len, places.values()))} characters that do not show"
        yield Draft("ENV112", "", line, column, message, count, "characters that a reader can see")


def _is_unseen(char: str) -> bool:
    import unicodedata  # noqa: PLC0415  # only a text beyond ASCII needs it

    unseen = unicodedata.category(char) in {"Cc", "Cf"} or "VARIATION SELECTOR" in unicodedata.name(char, "")
    return unseen and not _BAD.match(char)


def split_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a text; only LF and CRLF end a line."""
    *ended, last = text.split("\n")
    number = 0
    for number, line in enumerate(ended, 1):
        yield Line(number, line.removesuffix("\r"))
    yield Line(number + 1, last)


def _size(source: str | bytes, max_bytes: int) -> Draft | None:
    size = len(source)
    if size <= max_bytes and isinstance(source, str) and not source.isascii():
        size = len(source.encode(errors="surrogatepass"))
    if size <= max_bytes:
        return None
    message = f"The response is larger than {max_bytes} bytes; it was not read."
    return Draft("ENV101", "", 0, 0, message, f"at least {size} bytes", f"at most {max_bytes} bytes")


def _encoding(source: str | bytes) -> Draft | None:
    """Name UTF-16 and UTF-32, by mark or by the NUL in every second byte."""
    if isinstance(source, str):
        return None
    head = source[:64]
    found = next((label for mark, label in _ENCODINGS if head.startswith(mark)), "")
    half = len(head) // 2
    if not found and half >= 4:
        even, odd = head[0 : half * 2 : 2], head[1 : half * 2 : 2]
        if odd.count(0) >= half * 0.8 and even.count(0) <= half * 0.2:
            found = "UTF-16 (little endian, without a mark)"
        elif even.count(0) >= half * 0.8 and odd.count(0) <= half * 0.2:
            found = "UTF-16 (big endian, without a mark)"
    if not found:
        return None
    return Draft("ENV104", "", 1, 1, f"The response is encoded as {found}.", found, "UTF-8 without a byte order mark")


def _undecodable(error: UnicodeDecodeError) -> Draft:
    message = f"Byte 0x{error.object[error.start]:02X} at offset {error.start} is not UTF-8; the response looks binary."
    before = error.object[: error.start]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return Draft("ENV103", "", line, column, message, f"0x{error.object[error.start]:02X}", "UTF-8 text")


def _nul(text: str) -> Draft:
    """Report NUL, which text never holds; the rest of a binary is not worth reading."""
    at = text.index("\0")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    row = _Kind("ENV106", "\0", line, column, at, [Patch(line, column, column + 1, "")])
    return _draft(row, text.count("\0"), text)


class _Kind(NamedTuple):
    code: str
    char: str
    line: int
    column: int
    offset: int
    ops: list[Op]


def _clean(text: str, from_bytes: bool) -> Text:
    """Find every refused character and take it out, so that the rest can be read in the same turn."""
    kinds: dict[str, _Kind] = {}
    counts: dict[str, int] = {}
    lines: list[Line] = []
    splits = "\n" not in text and "\r" in text
    offset = 0
    for line in split_lines(text):
        kept: list[int] = []
        shown: list[str] = []
        at = 0
        for match in _BAD.finditer(line.text):
            start, char = match.start(), match.group()
            code = _code(char, offset + start, from_bytes)
            instead = _instead(code, line.text, start, splits)
            splits = splits or instead == "\n"
            counts[char] = counts.get(char, 0) + 1
            if char in kinds or len(kinds) < _MAX_KINDS:
                row = kinds.setdefault(char, _Kind(code, char, line.number, start + 1, offset + start, []))
                if len(row.ops) < _MAX_OPS:
                    row.ops.append(Patch(line.number, start + 1, start + 2, instead))
            kept.extend(range(at + 1, start + 1 + bool(instead)))
            shown += (line.text[at:start], instead)
            at = start + 1
        if at:
            kept.extend(range(at + 1, len(line.text) + 2))
            lines.append(Line(line.number, "".join(shown) + line.text[at:], tuple(kept)))
        else:
            lines.append(line)
        offset = text.find("\n", offset) + 1
    drafts = tuple(_draft(row, counts[row.char], text) for row in kinds.values())
    return Text(text, drafts, () if splits else tuple(lines))


def _code(char: str, offset: int, from_bytes: bool) -> str:
    for code, kind in _KINDS:
        if kind.match(char) and (code != "ENV105" or offset == 0):
            return "ENV111" if code == "ENV103" and not from_bytes else code
    return "ENV106"


def _instead(code: str, line: str, at: int, splits: bool) -> str:
    if code == "ENV107":
        return "\n" if splits or _NEW_LINE_WANTED.match(line, at + 1) else " "
    return "?" if code in {"ENV103", "ENV111"} else ""


def _draft(row: _Kind, count: int, text: str) -> Draft:
    what, expected = _WORDS[row.code]
    if row.code == "ENV103":
        offset = len(text[: row.offset].encode(errors="surrogateescape"))
        subject = f"Byte 0x{ord(row.char) - 0xDC00:02X} at offset {offset}"
    else:
        subject = name(row.char)
    places = ", ".join(f"{op.line}:{op.start}" for op in row.ops[:3] if isinstance(op, Patch))
    times = f" It occurs {count} times in the text: {places}{' …' if count > 3 else ''}." if count > 1 else ""
    message = f"{subject} {what}.{times}"
    ops = tuple(row.ops) if count <= len(row.ops) else ()
    return Draft(row.code, "", row.line, row.column, message, subject, expected, ops)
