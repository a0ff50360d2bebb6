"""Path patterns: their canonical form, what they match, and which of them overlap.

A path is relative to the repository root: parts of at least one character, separated by `/`. `*` and `?` stay inside
a part and match dot-files too, since a lease must cover them; `**` as a whole part stands for any number of parts, at
the end for everything below: `a/**` does not match `a` itself, `**/a` matches `a`. `[a-z]`, `[!a-z]` (also `[^a-z]`)
is one character, `{a,b}` are alternatives, which may have `/` and no braces of their own. A character in brackets
stands for itself, and there is no other escape. Names are what the file system has: neither case nor the Unicode form
is ignored.

How it works. A pattern is read into alternatives (its braces written out), an alternative into parts, a part into
atoms: `*`, `?`, a class in brackets, or one character (in brackets where bare it would mean something else), so that
the canonical text is the atoms joined. A path is matched by a regular expression that never goes back behind a star
which found its next characters, which is right since the leftmost place leaves most for the rest. Two patterns are
laid side by side twice with the same few lines (`_side_by_side`): their parts, where `**` takes any number, and the
atoms of two parts, where `*` does. The time is the product of their lengths, which `MAX_CHARACTERS` bounds.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

from interlock.core.finding import Finding, FindingError
from interlock.core.record import Record

MAX_CHARACTERS: Final = 1024
"""Of a pattern as it was given, and of all its alternatives together."""
SPECIAL: Final = frozenset("[]{}*?")
"""What a real name writes in brackets."""

Part: TypeAlias = tuple[str, ...]
"""The atoms between two `/`."""
Alternative: TypeAlias = tuple[Part, ...]

STAR: Final = "*"
ANY_NAME: Final[Part] = (STAR,)
DOUBLE: Final[Part] = ("**",)
"""Any number of parts; at the end of a pattern, one at least."""

# A class ends with the first `]` of its part that is not its first member. A `!` or `^` before that is never
# given back (`?+`), so that `[!]` is no class of its own: `[!]]` is every character but `]`.
_ATOM: Final = re.compile(r"\[[!^]?+[^/][^]/]*\]|.", re.DOTALL)
_LAST: Final = 0x10FFFF
_REAL: Final = "Between brackets a character stands for itself: `[[]`, `[]]`, `[{]`, `[}]`, `[*]`, `[?]`."
_SEEN: Final = "Name it as seen from the repository root; in a shell, as seen from the current folder."


class Pattern(Record):
    """A pattern in canonical form.

    Args:
        text: The canonical text.
        prefix: Its literal beginning up to the last `/` before the first wildcard; of one path, all of it. It is not
            quoted: it is for the index. If two patterns overlap, the prefix of one is among the `ancestors` of the
            other's, or begins with it.
        literal: Whether it is one path.
        path: That path; empty for what is not one.
        alternatives: The parts of each alternative.
    """

    text: str
    prefix: str
    literal: bool
    path: str
    alternatives: tuple[Alternative, ...]


def canonical(
    text: str,
    *,
    is_folder: Callable[[str], bool] | None = None,
    exists: Callable[[str], bool] | None = None,
    real: Callable[[str], Sequence[str]] | None = None,
) -> Pattern | Finding:
    """Return the canonical form of a pattern, or why it is not one (RSV101, RSV102).

    Args:
        text: As somebody wrote it.
        is_folder: Returns whether a path (relative, not quoted) is a folder; a literal that is one becomes `…/**`.
        exists: Returns whether a path is there. With it, a part with brackets or braces that is the name of something,
            such as `app/[slug]`, is that name and no class. Never asked about `*` or `?`.
        real: With `is_folder`, says by which names a path is held, that of what it really is last; more than one of a
            symbolic link, which is held itself as well. An absolute one is out of the project. What comes before the
            first wildcard takes that name.
    """
    try:
        pattern = _read(text if exists is None else _with_real_names(text, exists))
        if is_folder is None:
            return pattern
        held = [each for parts in pattern.alternatives for each in _held(parts, is_folder, real)]
        return pattern if tuple(held) == pattern.alternatives else _read(_written(held))
    except FindingError as error:
        return error.finding


def overlaps(a: Pattern | str, b: Pattern | str) -> bool:
    """Return whether some path matches both. A text that is no pattern is a `ValueError`, here and below."""
    one, other = _pattern(a), _pattern(b)
    # One path is looked up; only two patterns with wildcards are laid side by side.
    if one.literal:
        return matches(other, one.path)
    if other.literal:
        return matches(one, other.path)
    return any(_alternatives_meet(left, right) for left in one.alternatives for right in other.alternatives)


def covers(a: Pattern | str, b: Pattern | str) -> bool:
    """Return whether every path of `b` is one of `a`: True is always right, False may mean "hard to know".

    It is exact where `b` is one path, and knows folders, stars and classes in each other. It does not see what two
    alternatives of `a` together cover: that `{a,b}/*` covers `[ab]/*`.
    """
    outer, inner = _pattern(a), _pattern(b)
    if outer == inner:
        return True
    if inner.literal:
        return matches(outer, inner.path)
    return all(any(_alternative_covers(left, right) for left in outer.alternatives) for right in inner.alternatives)


def matches(pattern: Pattern | str, path: str) -> bool:
    """Return whether a pattern matches a path as the file system has it: not quoted, relative, without `.`, `//`."""
    read = _pattern(pattern)
    return path == read.path if read.literal else _expression(read.text).fullmatch(path) is not None


def may_match(text: str, path: str) -> bool:
    """Return whether a pattern matches a path, or cannot be read: what is not understood is not let through."""
    pattern = canonical(text)
    return isinstance(pattern, Finding) or matches(pattern, path)


def ancestors(prefix: str) -> tuple[str, ...]:
    """Return the prefixes of leases that may overlap a prefix from above: `""`, `src/`, `src/app/`, `src/app/x.py`."""
    cuts = [index + 1 for index, character in enumerate(prefix) if character == "/"]
    if prefix and not prefix.endswith("/"):
        cuts.append(len(prefix))
    return ("", *(prefix[:cut] for cut in cuts))


def relative(path: str, root: str) -> str | Finding:
    """Return a path of a tool call, absolute or relative to the root, as the text of a literal pattern.

    Lexical: `..` and `.` are resolved in the text, and nothing is looked up. Where links lead is the caller's
    matter; a caller whose root may be reached by several names resolves both first.

    What a pattern cannot have (control characters, a backslash, a byte that is no UTF-8 and comes as half of a
    surrogate pair) is written as `?`: the file is held, and with it those whose names differ there alone.
    """
    try:
        if not path or "\0" in path:
            message = "The path is empty or has a NUL character."
            raise _malformed(message, ascii(path)[1:-1], "a path", "Give the path of the file.")
        base = os.path.normpath(root).rstrip("/") + "/"
        # POSIX keeps two slashes at the beginning, where they may mean something else than one.
        full = "/" + os.path.normpath(os.path.join(base, path)).lstrip("/")
        if not full.startswith(base) or full == base:
            raise _outside("The path is not below the repository root.", path, "Name a file below it.")
        return quote(full[len(base) :])
    except FindingError as error:
        return error.finding


def quote(path: str) -> str:
    """Return a relative path as the text of the pattern that is it alone, as far as `relative` says."""
    return _tilde("".join(_quoted(character) if _is_allowed(character) else "?" for character in path))


def expand(text: str) -> list[str]:
    """Return the texts that a pattern with braces stands for; classes are left as they are.

    Raises:
        FindingError: Where braces are not in pairs, hold braces or one alternative, or the texts are too many.
    """
    if "{" not in text and "}" not in text:
        return [text]
    texts, options = [""], list[str]()
    for atom in _ATOM.findall(text):
        if atom == "{" and not options:
            options = [""]
        elif atom == "}" and len(options) > 1:
            texts = [f"{begun}{option}" for begun in texts for option in options]
            options = []
            if sum(map(len, texts)) > MAX_CHARACTERS:
                raise _too_large("characters with its braces written out")
        elif atom in "{}":
            fix = f"Write alternatives like `{{one,other}}`, without braces in braces. {_REAL}"
            raise _malformed(f"`{atom}` does not begin or end alternatives.", text[:40], "braces in pairs", fix)
        elif not options:
            texts = [begun + atom for begun in texts]
        elif atom == ",":
            options.append("")
        else:
            options[-1] += atom
    if options:
        raise _malformed("`{` is not closed.", text[:40], "`{one,other}`", f"Add `}}`. {_REAL}")
    return list(dict.fromkeys(texts))


def alternatives_of(text: str) -> tuple[Alternative, ...]:
    """Return the alternatives of a pattern, each as its parts.

    Raises:
        FindingError: Where the text is no pattern.
    """
    _check_text(text)
    return tuple(dict.fromkeys(_alternative(each) for each in expand(text)))


def name_expression(part: Part) -> re.Pattern[str]:
    """Return the regular expression of the names that a part other than `**` matches."""
    return re.compile(_name(part), re.DOTALL)


# --- Reading and writing


def _outside(message: str, text: str, fix: str = _SEEN) -> FindingError:
    """Return the error of a pattern that leaves the repository."""
    expected = "a path or pattern below the repository root, such as `src/app.py` or `src/**`"
    return FindingError(Finding("RSV101", "error", "", message, text, expected, fix))


def _malformed(message: str, text: str, expected: str, fix: str) -> FindingError:
    """Return the error of a pattern that is not well formed."""
    return FindingError(Finding("RSV102", "error", "", message, text, expected, fix))


def _too_large(what: str) -> FindingError:
    """Return the error of a pattern beyond the bound."""
    fix = "Reserve several smaller patterns in one call, or the folder that holds them."
    return _malformed(f"The pattern has more than {MAX_CHARACTERS} {what}.", "a longer one", "a short pattern", fix)


def _pattern(value: Pattern | str) -> Pattern:
    """Return a pattern; a text that is not one is the caller's mistake."""
    if isinstance(value, Pattern):
        return value
    try:
        return _read(value)
    except FindingError as error:
        raise ValueError(error.finding.message) from error


@lru_cache(1024)
def _read(text: str) -> Pattern:
    """Read a text until it stays as it is: what is written must be read the same."""
    while True:
        alternatives = alternatives_of(text)
        written = _written(alternatives)
        if written == text:
            break
        text = written
    path = _path_of(alternatives[0]) if len(alternatives) == 1 else None
    if path is not None:
        return Pattern(text, path, True, path, alternatives)
    prefix = ""
    for part in alternatives[0][: _shared(alternatives)]:
        name = _name_of(part)
        if name is None:
            break
        prefix += f"{name}/"
    return Pattern(text, prefix, False, "", alternatives)


def _check_text(text: str) -> None:
    """Refuse what no pattern has in it, and what is too long."""
    if not text:
        raise _malformed("The pattern is empty.", "", "a path or pattern", "Name a file, a folder or a pattern.")
    if len(text) > MAX_CHARACTERS:
        raise _too_large("characters")
    for character in text:
        if not _is_allowed(character):
            message = f"A pattern has no backslash and no control character, such as U+{ord(character):04X}."
            fix = f"Write `/` between parts, and `?` for such a character in a real name. {_REAL}"
            raise _malformed(message, ascii(character)[1:-1], "printable characters", fix)


def _is_allowed(character: str) -> bool:
    """Return whether a pattern can have a character: no backslash, control, or half of a surrogate pair."""
    code = ord(character)
    return character != "\\" and not (code < 32 or 127 <= code < 160 or 0xD800 <= code < 0xE000)


def _alternative(text: str) -> Alternative:
    """Read a text without braces into its parts."""
    if not text:
        message = "One alternative of the pattern is empty."
        raise _malformed(message, "{,…}", "alternatives that name something", "Leave the empty alternative out.")
    if text[0] == "/":
        raise _outside("An absolute path is taken in a shell alone, and below the repository root.", text)
    if text == "~" or text.startswith("~/"):
        raise _outside("A pattern is relative to the repository root; `~` leads to a home folder.", text)
    pieces = text.split("/")
    parts = [_part(piece) for piece in pieces if piece]
    if (".", ".") in parts:
        raise _outside("A pattern stays inside the repository; `..` leads out of its folder.", text)
    # `src/` and `src/.` are everything below the folder.
    if pieces[-1] == "" or parts[-1] == (".",):
        parts.append(DOUBLE)
    kept: list[Part] = []
    for part in parts:
        if part != (".",) and not (part == DOUBLE and kept and kept[-1] == DOUBLE):
            kept.append(part)
    return tuple(kept)


def _part(text: str) -> Part:
    """Read what is between two `/`: a run of stars is one, and `**` where nothing else is there."""
    if len(text) > 1 and set(text) == {STAR}:
        return DOUBLE
    atoms: list[str] = []
    for written in _ATOM.findall(text):
        if written == "[":
            raise _malformed("`[` is not closed.", text[:40], "`[abc]`", f"Add `]`. {_REAL}")
        atom = "[]]" if written == "]" else _class(written) if len(written) > 1 else written
        # A star beside a star takes nothing more, and would only make the match longer.
        if not (atom == STAR and atoms and atoms[-1] == STAR):
            atoms.append(atom)
    return tuple(atoms)


def _class(atom: str) -> str:
    """Return a class as an atom: as it was written, and the character alone of one that is in brackets for nothing."""
    if any(name in atom[1:] for name in ("[:", "[.", "[=")):
        fix = "Write the characters out, such as `[A-Za-z]`; move the `[` to the end of the class if it is a member."
        raise _malformed("Classes have no names.", atom, "`[abc]`, `[a-z]` or `[!a-z]`", fix)
    if len(atom) == 3:
        return _quoted(atom[1])
    for low, high in _ranges(atom)[1]:
        if high < low:
            message = f"The range `{chr(low)}-{chr(high)}` goes backwards."
            raise _malformed(message, atom, f"`{chr(high)}-{chr(low)}`", "Turn it round.")
    return atom


@lru_cache(1024)
def _ranges(atom: str) -> tuple[bool, tuple[tuple[int, int], ...]]:
    """Return whether an atom other than a star is all but some characters, and these as ranges of code points."""
    if atom == "?":
        return True, ()
    if len(atom) == 1:
        return False, ((ord(atom), ord(atom)),)
    negated = atom[1] in "!^" and len(atom) > 3
    members = atom[2:-1] if negated else atom[1:-1]
    ranges: list[tuple[int, int]] = []
    while members:
        if members[1:2] == "-" and len(members) > 2:
            ranges.append((ord(members[0]), ord(members[2])))
            members = members[3:]
        else:
            ranges.append((ord(members[0]), ord(members[0])))
            members = members[1:]
    return negated, tuple(ranges)


def _has(atom: str, code: int) -> bool:
    """Return whether an atom other than a star stands for a character; none does for `/`."""
    negated, ranges = _ranges(atom)
    return code != ord("/") and negated != any(low <= code <= high for low, high in ranges)


def _deciding(one: str, other: str) -> Iterator[int]:
    """Yield characters that decide about two atoms: in between two of them, either has all or none."""
    yield from (0, _LAST, ord("/") - 1, ord("/") + 1)
    for atom in (one, other):
        for low, high in _ranges(atom)[1]:
            yield from (max(0, low - 1), low, high, min(_LAST, high + 1))


def _written(alternatives: Sequence[Alternative]) -> str:
    """Return the text of alternatives: sorted, with the folders that all begin with outside of the braces."""
    ordered = sorted(set(alternatives), key=_joined)
    if len(ordered) == 1:
        return _tilde(_joined(ordered[0]))
    head = _shared(ordered)
    rest = [_joined(parts[head:], comma="[,]") for parts in ordered]
    if not head:
        rest = [_tilde(text) for text in rest]
    shared = "".join(f"{_joined((part,))}/" for part in ordered[0][:head])
    return f"{_tilde(shared)}{{{','.join(rest)}}}"


def _shared(alternatives: Sequence[Alternative]) -> int:
    """Return how many parts all alternatives begin with, so that each has one more."""
    most = min(map(len, alternatives)) - 1
    count = 0
    while count < most and len({parts[count] for parts in alternatives}) == 1:
        count += 1
    return count


def _joined(parts: Alternative, *, comma: str = ",") -> str:
    """Return the text of parts, a comma written in another way within braces."""
    return "/".join("".join(comma if atom == "," else atom for atom in part) for part in parts)


def _quoted(name: str) -> str:
    """Return a real name as a pattern of it alone."""
    return "".join(f"[{character}]" if character in SPECIAL else character for character in name)


def _tilde(text: str) -> str:
    """Write a first part `~` in brackets: bare it would be a home folder."""
    return f"[~]{text[1:]}" if text == "~" or text.startswith("~/") else text


def _name_of(part: Part) -> str | None:
    """Return the name that a part without wildcards is; None of any other."""
    characters = ""
    for atom in part:
        if atom in {STAR, "?", "**"} or len(atom) > 3:
            return None
        characters += atom if len(atom) == 1 else atom[1]
    return characters


def _path_of(parts: Sequence[Part]) -> str | None:
    """Return the path that parts without wildcards are; None of any others."""
    names = [name for part in parts if (name := _name_of(part)) is not None]
    return "/".join(names) if len(names) == len(parts) else None


# --- Matching


@lru_cache(1024)
def _expression(text: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern in canonical form."""
    return re.compile("|".join(_path_expression(parts) for parts in _read(text).alternatives), re.DOTALL)


def _path_expression(parts: Alternative) -> str:
    # What `(?>…)` has taken it never gives back, so that no path makes the match take long.
    if parts[-1] == DOUBLE:
        return _folders(parts[:-1], last=False) + r"(?>(?:[^/]+/)*)[^/]+"
    return _folders(parts, last=True)


def _folders(parts: Sequence[Part], *, last: bool) -> str:
    """Return the expression of parts of which `**` takes as few folders as it can, or just enough to reach the end."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == DOUBLE:
            runs.append([])
        else:
            runs[-1].append(_name(part))
    expression = ""
    for number, run in enumerate(runs):
        # The first run begins with the text and the last reaches the end; each between is taken at its first place.
        at_end = last and number == len(runs) - 1
        names = "/".join(run) + ("" if at_end or not run else "/")
        if number == 0:
            expression += names
        elif at_end:
            expression += f"(?:[^/]+/)*{names}"
        elif run:
            expression += f"(?>(?:[^/]+/)*?{names})"
    return expression


def _name(part: Part) -> str:
    """Return the expression of the names that a part matches."""
    if part == ANY_NAME:
        return "[^/]+"
    runs: list[str] = [""]
    for atom in part:
        if atom == STAR:
            runs.append("")
        else:
            negated, ranges = _ranges(atom)
            members = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
            runs[-1] += f"[^/{members}]" if negated else f"(?!/)[{members}]"
    first, *others = runs
    if not others:
        return first
    # The last run must end the part, which a slash or the end of the path shows.
    return first + "".join(f"(?>[^/]*?{run})" for run in others[:-1] if run) + f"[^/]*{others[-1]}(?![^/])"


# --- Comparing


@lru_cache(4096)
def _atoms_meet(one: str, other: str) -> bool:
    return any(_has(one, code) and _has(other, code) for code in _deciding(one, other))


@lru_cache(4096)
def _atom_covers(wide: str, narrow: str) -> bool:
    return all(_has(wide, code) for code in _deciding(wide, narrow) if _has(narrow, code))


def _alternatives_meet(a: Alternative, b: Alternative) -> bool:
    def names_meet(one: Part, other: Part) -> bool:
        return _side_by_side(one, other, STAR, _atoms_meet, both=True)

    return _side_by_side(_opened(a), _opened(b), DOUBLE, names_meet, both=True)


def _alternative_covers(outer: Alternative, inner: Alternative) -> bool:
    def name_covers(one: Part, other: Part) -> bool:
        return one == ANY_NAME or _side_by_side(one, other, STAR, _atom_covers, both=False)

    return _side_by_side(_opened(outer), _opened(inner), DOUBLE, name_covers, both=False)


def _opened(parts: Alternative) -> Alternative:
    """Write the last `**`, which is one part at least, as any number and then one."""
    return (*parts[:-1], DOUBLE, ANY_NAME) if parts[-1] == DOUBLE else parts


ItemT = TypeVar("ItemT")


def _side_by_side(
    a: Sequence[ItemT], b: Sequence[ItemT], star: ItemT, fits: Callable[[ItemT, ItemT], bool], *, both: bool
) -> bool:
    """Return whether two sequences can be the same, a star being any number of items.

    Where not `both`, a star of `b` may be anything at all, so that only a star of `a` takes it.

    From the end: `after[j]` says it of what follows this item of `a` beside `b[j:]`, `here[j]` of this item too.
    """
    # Beside nothing of `a` only stars of `b` can be nothing.
    after = [False] * len(b) + [True]
    for index in range(len(b) - 1, -1, -1):
        after[index] = both and b[index] == star and after[index + 1]
    for item in reversed(a):
        here = [False] * len(b) + [item == star and after[-1]]
        for index in range(len(b) - 1, -1, -1):
            if item == star:
                # A star of `a` ends here, or takes one more item of `b`; a star of `b` does the same below.
                here[index] = after[index] or here[index + 1]
            elif b[index] == star:
                here[index] = both and (here[index + 1] or after[index])
            else:
                here[index] = after[index + 1] and fits(item, b[index])
        after = here
    return after[0]


# --- Patterns compared with the files that exist


def _with_real_names(text: str, exists: Callable[[str], bool]) -> str:
    """Quote the parts with brackets or braces that name what is there, as long as all before them is literal."""
    if SPECIAL.isdisjoint(text) or len(text) > MAX_CHARACTERS:
        return text
    given = text.split("/")
    parts = list(given)
    for number, part in enumerate(given):
        if "*" in part or "?" in part or part == ".." or (part in {"", "~"} and not number):
            break
        if not SPECIAL.isdisjoint(part):
            if not exists("/".join(given[: number + 1])):
                break
            parts[number] = _quoted(part)
    return "/".join(parts)


def _held(
    parts: Alternative, is_folder: Callable[[str], bool], real: Callable[[str], Sequence[str]] | None
) -> list[Alternative]:
    """Return what an alternative holds: a folder is everything below it.

    A path that is a link is held itself too, since whoever replaces it changes what is found there.
    """
    count = next((index for index, part in enumerate(parts) if _name_of(part) is None), len(parts))
    head, rest = parts[:count], parts[count:]
    path = _path_of(head)
    if not path:
        return [parts]
    names = [path] if real is None else real(path)
    inside = [name for name in names if not name.startswith("/")]
    below = rest or (DOUBLE,) * is_folder(path)
    if names[-1] not in inside and (below or not inside):
        fix = "Reserve it in the project that it is in, as seen from there; what is in no project is not held."
        raise _outside("The pattern leads out of the project.", names[-1], fix)
    links = inside[:-1] if names[-1] and not rest else []
    held = [alternatives_of(quote(name))[0] for name in links]
    target = alternatives_of(quote(inside[-1]))[0] if inside[-1] else ()
    return [*held, (*target, *below)]
