"""The text of a pattern, read into alternatives of parts and written back in one form."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from interlock.core.finding import Finding, FindingError
from interlock.reservations.patterns.charsets import LAST, NAME, STAR, Item, Ranges, complement, one, single, union
from interlock.reservations.patterns.overlap import DOUBLE, Part

Alternative: TypeAlias = tuple[Part, ...]

MAX_CHARACTERS: Final = 2048
"""Of a pattern as it was given, and in canonical form."""
MAX_BYTES: Final = 4096
"""The same in UTF-8: as long as Linux lets a path be."""
MAX_PARTS: Final = 256
"""Of one alternative."""
MAX_ALTERNATIVES: Final = 64
"""After braces are written out."""
MAX_NESTING: Final = 8
"""Of braces in braces."""
MAX_EXPANDED: Final = 4096
"""Characters of all alternatives together."""
MAX_WILDCARDS: Final = 256
"""Stars, question marks and classes of all alternatives together."""
MAX_CLASSES: Final = 16
"""Different ones; comparing two patterns compares each class of one with each of the other."""
SPECIAL: Final = frozenset("[]{}*?")
"""What a real name writes in brackets."""

_RUN_ENDS: Final = frozenset("[{},")
_NEGATION: Final = ("!", "^")
_WILD: Final[dict[str, Item]] = {"*": STAR, "?": NAME}
_REAL: Final = "Between brackets a character stands for itself: `[[]`, `[]]`, `[{]`, `[}]`, `[*]`, `[?]`."

_SEEN: Final = "Name it as seen from the repository root; in a shell, as seen from the current folder."


def outside(message: str, found: str, fix: str = _SEEN) -> FindingError:
    """Return the error of a pattern that leaves the repository."""
    expected = "a path or pattern below the repository root, such as `src/app.py` or `src/**`"
    return FindingError(Finding("RSV101", "error", "", message, found, expected, fix))


def malformed(message: str, found: str, expected: str, fix: str) -> FindingError:
    """Return the error of a pattern that is not well formed."""
    return FindingError(Finding("RSV102", "error", "", message, found, expected, fix))


def too_large(what: str, count: int, limit: int) -> FindingError:
    """Return the error of a pattern beyond a bound."""
    message = f"The pattern has {count} {what}; {limit} is the most."
    fix = "Reserve several smaller patterns in one call, or the folder that holds them."
    return FindingError(Finding("RSV103", "error", "", message, f"{count} {what}", f"at most {limit} {what}", fix))


def read(text: str) -> list[Alternative]:
    """Return the alternatives of a pattern, each simplified."""
    check_text(text)
    expanded = expand(text)
    count = sum(map(len, expanded))
    if count > MAX_EXPANDED:
        raise too_large("characters with its braces written out", count, MAX_EXPANDED)
    alternatives = list(dict.fromkeys(_alternative(each) for each in dict.fromkeys(expanded)))
    wildcards = [item for parts in alternatives for part in parts for item in part if single(item) is None]
    if len(wildcards) > MAX_WILDCARDS:
        raise too_large("wildcards", len(wildcards), MAX_WILDCARDS)
    classes = len({*wildcards} - {STAR, NAME})
    if classes > MAX_CLASSES:
        raise too_large("different classes", classes, MAX_CLASSES)
    return alternatives


def check_text(text: str) -> None:
    """Refuse what no pattern has in it, and what is too long."""
    if not text:
        raise malformed("The pattern is empty.", "", "a path or pattern", "Name a file, a folder or a pattern.")
    if len(text) > MAX_CHARACTERS:
        raise too_large("characters", len(text), MAX_CHARACTERS)
    if "\\" in text:
        fix = f"Write `/` between parts; a backslash escapes nothing. {_REAL}"
        raise malformed("A pattern has no backslash.", "\\", "parts separated by `/`", fix)
    if not text.isprintable():
        for character in text:
            if not is_allowed(character):
                fix = "Leave it out; a name that really has it is matched by `?`."
                message = f"A pattern has no control character such as U+{ord(character):04X}."
                raise malformed(message, ascii(character)[1:-1], "printable characters", fix)
    size = len(text.encode())
    if size > MAX_BYTES:
        raise too_large("bytes", size, MAX_BYTES)


def is_allowed(character: str) -> bool:
    """Return whether a pattern can have a character: no backslash, control, half of a surrogate pair, or U+10FFFF."""
    code = ord(character)
    return character != "\\" and not (code < 32 or 127 <= code < 160 or 0xD800 <= code < 0xE000 or code == LAST)


def expand(text: str) -> list[str]:
    """Return the texts that a pattern with braces expands to; classes are left as they are."""
    texts, at = _sequence(text, 0, 0)
    assert at == len(text), at
    return texts


def expand_braces(text: str) -> list[str] | Finding:
    """Return the texts that a pattern expands to, or why it is not a pattern; see `expand`."""
    try:
        return expand(text)
    except FindingError as error:
        return error.finding


def _sequence(text: str, at: int, depth: int) -> tuple[list[str], int]:
    """Expand from `at` up to the `,` or `}` that ends this alternative, or to the end of the text."""
    texts = [""]
    while at < len(text):
        character = text[at]
        if character == "{":
            options, at = _group(text, at, depth + 1)
            texts = [head + option for head in texts for option in options]
            if len(texts) > MAX_ALTERNATIVES:
                raise too_large("alternatives", len(texts), MAX_ALTERNATIVES)
            if sum(map(len, texts)) > MAX_EXPANDED:
                raise too_large("characters with its braces written out", sum(map(len, texts)), MAX_EXPANDED)
            continue
        if depth and character in ",}":
            break
        if character == "}":
            raise malformed("`}` closes nothing.", text[at : at + 20], "braces in pairs", _REAL)
        start = at
        if character == "[":
            at = class_end(text, at)
        else:
            at += 1
            while at < len(text) and text[at] not in _RUN_ENDS:
                at += 1
        texts = [head + text[start:at] for head in texts]
    return texts, at


def _group(text: str, start: int, depth: int) -> tuple[list[str], int]:
    """Expand the braces at `start`; return the alternatives and the place behind them."""
    if depth > MAX_NESTING:
        raise too_large("braces in braces", depth, MAX_NESTING)
    options, at = _sequence(text, start + 1, depth)
    alone = text[at : at + 1] == "}"
    while text[at : at + 1] == ",":
        more, at = _sequence(text, at + 1, depth)
        options += more
        if len(options) > MAX_ALTERNATIVES:
            raise too_large("alternatives", len(options), MAX_ALTERNATIVES)
    if at == len(text):
        raise malformed("`{` is not closed.", text[start : start + 20], "`{one,other}`", f"Add `}}`. {_REAL}")
    if alone:
        message = "Braces hold alternatives, and here is one alone."
        raise malformed(message, text[start : at + 1][:20], "`{one,other}`", f"Write it without braces. {_REAL}")
    return options, at + 1


def class_end(text: str, start: int) -> int:
    """Return the place behind the class that begins at `start`; a `]` that comes first is a member."""
    first = start + 1
    if text.startswith(_NEGATION, first):
        first += 1
    end = text.find("]", first + 1)
    slash = text.find("/", start)
    if end < 0 or 0 <= slash < end:
        fix = f"Add `]`; a class is one character and has no `/`. {_REAL}"
        raise malformed("`[` is not closed in its part.", text[start : start + 20], "`[abc]`, `[a-z]` or `[!a-z]`", fix)
    if any(name in text[start + 1 : end] for name in ("[:", "[.", "[=")):
        fix = "Write the characters out, such as `[A-Za-z]`; move the `[` to the end of the class if it is a member."
        raise malformed("Classes have no names.", text[start : end + 1], "`[abc]`, `[a-z]` or `[!a-z]`", fix)
    return end + 1


def _alternative(text: str) -> Alternative:
    text = normal(text)
    if not text:
        message = "One alternative of the pattern is empty."
        raise malformed(message, "{,…}", "alternatives that name something", "Leave the empty alternative out.")
    if text[0] == "/":
        raise outside("An absolute path is taken in a shell alone, and below the repository root.", text)
    if text == "~" or text.startswith("~/"):
        raise outside("A pattern is relative to the repository root; `~` leads to a home folder.", text)
    pieces = text.split("/")
    if len(pieces) > MAX_PARTS:
        raise too_large("parts", len(pieces), MAX_PARTS)
    parts = [_part(piece) for piece in pieces if piece]
    dot = one(46)
    is_folder = not pieces[-1] or parts[-1] == (dot,)
    if (dot, dot) in parts:
        raise outside("A pattern stays inside the repository; `..` leads out of its folder.", text)
    parts = [part for part in parts if part != (dot,)]
    return tuple(_folders([*parts, DOUBLE] if is_folder else parts))


def _part(text: str) -> Part:
    """Return the items of one part: each run of `?` and `*` as its `?` and then one star."""
    items: list[Item] = []
    at = 0
    while at < len(text):
        end = class_end(text, at) if text[at] == "[" else at + 1
        items.append(_read_item(text[at:end]))
        at = end
    if len(items) > 1 and set(items) == {STAR}:
        return DOUBLE
    ordered: list[Item] = []
    for is_wild, run in groupby(items, key=lambda item: item in {STAR, NAME}):
        found = list(run)
        ordered += [NAME] * found.count(NAME) + [STAR] * (STAR in found) if is_wild else found
    return (STAR,) if ordered == [NAME, STAR] else tuple(ordered)


def _read_item(text: str) -> Item:
    if text in _WILD:
        return _WILD[text]
    return _class(text[1:-1]) if len(text) > 1 else one(ord(text))


def _folders(parts: Sequence[Part]) -> Iterator[Part]:
    """Write each run of `*` and `**` parts in one way: its `*` first, and then one `**`."""
    stars = doubles = 0
    for number, part in enumerate([*parts, ()]):
        if part == (STAR,):
            stars += 1
        elif part == DOUBLE:
            doubles += 1
        else:
            if doubles and not part:
                # At the end `**` is one part or more: `**/*` and `**` are the same.
                stars -= parts[number - 1] == (STAR,)
            yield from [(STAR,)] * stars
            if doubles:
                yield DOUBLE
            stars = doubles = 0
            if part:
                yield part


def _class(body: str) -> Ranges:
    negated = body[0] in _NEGATION
    members = body[1:] if negated else body
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(members):
        is_range = members[at + 1 : at + 2] == "-" and at + 2 < len(members)
        low, high = members[at], members[at + 2 if is_range else at]
        if high < low:
            found = members[at : at + 3]
            raise malformed(f"The range `{found}` goes backwards.", f"[{body}]", f"`{high}-{low}`", "Turn it round.")
        ranges.append((ord(low), ord(high)))
        at += 3 if is_range else 1
    characters = union(ranges)
    return complement(characters) if negated else characters


def normal(text: str) -> str:
    """Return a text in Unicode form NFC, in which the same letters are the same characters."""
    if text.isascii():
        return text
    import unicodedata  # noqa: PLC0415 - a hook rarely needs it

    return unicodedata.normalize("NFC", text)


def write(alternatives: Sequence[Alternative]) -> str:
    """Return the text of alternatives: sorted, with what they begin and end with outside of the braces."""
    ordered = sorted(set(alternatives), key=lambda parts: _joined(parts, in_braces=False))
    if len(ordered) == 1:
        return tilde(_joined(ordered[0], in_braces=False))
    head = shared(ordered)
    tail = shared([parts[head:][::-1] for parts in ordered])
    first = ordered[0]
    middles = [_joined(parts[head : len(parts) - tail], in_braces=True) for parts in ordered]
    middles = middles if head else [tilde(middle) for middle in middles]
    braces = "{" + ",".join(middles) + "}"
    before = tilde(_joined(first[:head], in_braces=False))
    after = _joined(first[len(first) - tail :] if tail else (), in_braces=False)
    return "/".join(piece for piece in (before, braces, after) if piece)


def shared(alternatives: Sequence[Alternative]) -> int:
    """Return how many parts all alternatives begin with, so that each has one more."""
    most = min(map(len, alternatives)) - 1
    count = 0
    while count < most and len({parts[count] for parts in alternatives}) == 1:
        count += 1
    return count


def tilde(text: str) -> str:
    """Write a first part `~` in brackets: bare it would be a home folder."""
    return f"[~]{text[1:]}" if text == "~" or text.startswith("~/") else text


def _joined(parts: Alternative, *, in_braces: bool) -> str:
    return "/".join("".join(_item(item, in_braces=in_braces) for item in part) for part in parts)


def _item(item: Item, *, in_braces: bool) -> str:
    if item is None:
        return "*"
    code = single(item)
    if code is not None:
        return quoted(chr(code), in_braces=in_braces)
    return "?" if item == NAME else _written_class(item)


def quote(path: str) -> str:
    """Return a relative path as the text of the pattern that is it alone, as far as `patterns.relative` says."""
    pieces = (quoted(character) if is_allowed(character) else "?" for character in normal(path))
    return tilde("".join(pieces))


def quoted(name: str, *, in_braces: bool = False) -> str:
    """Return a real name as a pattern of it alone."""
    return "".join(
        f"[{character}]" if character in SPECIAL or (in_braces and character == ",") else character
        for character in name
    )  # fmt: skip


def _written_class(characters: Ranges) -> str:
    """Write a class in one way: `]` first, `^`, `!` and `-` last, three characters in a row as a range."""
    negated = characters[-1][1] == LAST
    ranges = list(complement(characters) if negated else characters)
    first, middle, last = "", "", set[str]()
    while ranges:
        low, high = ranges.pop(0)
        if chr(low) == "]":
            first = "]"
        elif chr(low) in "^!-":
            last.add(chr(low))
        elif high - low == 1 and chr(high) == "-":
            middle += chr(low)
            last.add("-")
            continue
        else:
            middle += chr(low) + "-" * (high - low > 1) + chr(high) * (high > low)
            continue
        if low < high:
            ranges.insert(0, (low + 1, high))
    tail = "".join(character for character in "^!-" if character in last)
    return f"[{'!' * negated}{first}{middle}{tail}]"
