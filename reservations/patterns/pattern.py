"""Path patterns: their canonical form, what they match, and where the index of the store finds them.

A path is relative to the repository root: parts of at least one character, separated by `/`. `*` and `?` stay inside
a part and match dot-files too, since a lease must cover them; `**` as a whole part stands for any number of parts, at
the end for everything below: `a/**` does not match `a` itself, `**/a` matches `a`. `[a-z]`, `[!a-z]` (also `[^a-z]`)
is one character, `{a,b}` are alternatives, which may have `/`. A character in brackets stands for itself, and there is
no other escape.

A text that is not a pattern is a `ValueError` where a pattern is wanted. Texts and paths are compared in Unicode form
NFC. Where file systems ignore case, so do patterns; their text keeps it.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from interlock.core.finding import Finding, FindingError
from interlock.reservations.patterns import globs
from interlock.reservations.patterns.charsets import fold
from interlock.reservations.patterns.globs import Alternative, quote
from interlock.reservations.patterns.naming import name_of, named, path_of, with_real_names
from interlock.reservations.patterns.overlap import Automaton, automaton

FOLD_CASE: Final = sys.platform in {"darwin", "win32"}
"""Whether two paths that differ in case alone are one file here."""

_CACHED: Final = 1024
_AUTOMATA: Final = 256
"""At most this many of each are kept; a large automaton takes half a megabyte."""


class Pattern(NamedTuple):
    """A pattern in canonical form; two of the same text are equal. `path` is empty for what is not one path."""

    text: str
    prefix: str
    literal: bool
    path: str
    alternatives: tuple[Alternative, ...]


def canonical(
    text: str,
    *,
    is_folder: Callable[[str], bool | None] | None = None,
    exists: Callable[[str], bool] | None = None,
    real: Callable[[str], Sequence[str]] | None = None,
    fold_case: bool = FOLD_CASE,
) -> Pattern | Finding:
    """Return the canonical form of a pattern, or why it is not one.

    Args:
        is_folder: Returns whether a path (relative, not quoted) is a folder; a literal that is one becomes `…/**`.
            None where nobody may know: `x`, `x/` and `x/**` all become `{x,x/**}`.
        exists: Returns whether a path is there. With it, a part with brackets or braces that is the name of something,
            such as `app/[slug]`, is that name and no class, unless what it says quoted is there. Asked at most twice a
            part, and never about `*` or `?`. With it and `is_folder`, `app.py/` is `app.py` where that is a file.
        real: With `is_folder`, says by which names a path is held, that of what it really is last; more than one of a
            symbolic link, which is held itself as well. An absolute one is out of the project. What comes before the
            first wildcard takes that name.
        fold_case: For tests; the index prefix depends on it.
    """
    try:
        if exists is not None:
            text = with_real_names(text, exists)
        pattern = _read(text, fold_case)
        if is_folder is None:
            return pattern
        rows = (row for parts in pattern.alternatives for row in named(parts, is_folder, exists, real))
        found = list(dict.fromkeys(rows))
        return pattern if tuple(found) == pattern.alternatives else _read(globs.write(found), fold_case)
    except FindingError as error:
        return error.finding


def overlaps(a: Pattern | str, b: Pattern | str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether some path matches both; exact."""
    one, two = _pattern(a, fold_case), _pattern(b, fold_case)
    if one.literal and two.literal:
        return (fold(one.path) == fold(two.path)) if fold_case else one.path == two.path
    if two.literal:
        one, two = two, one
    other = _automaton(two.text, fold_case)
    if one.literal:
        return other.accepts(fold(one.path) if fold_case else one.path)
    return other.meets(_automaton(one.text, fold_case))


def is_plain(text: str, prefix: str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether a pattern in canonical form is one path that needs no brackets, by its text and prefix alone.

    The prefix of such a pattern is that path; that of any other ends with `/`, is empty, or lacks the brackets.
    """
    return text == prefix or (fold_case and fold(text) == prefix)


def plain_prefix(text: str, *, fold_case: bool = FOLD_CASE) -> str | None:
    """Return the prefix of a pattern in canonical form that is one path without brackets; None of any other."""
    if not globs.SPECIAL.isdisjoint(text):
        return None
    return fold(text) if fold_case else text


def meets_plain(pattern: Pattern, prefix: str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether a pattern overlaps one that `is_plain`, given its prefix: without reading its text."""
    if pattern.literal:
        return pattern.prefix == prefix
    return _automaton(pattern.text, fold_case).accepts(prefix)


def is_folder(text: str, prefix: str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether a pattern in canonical form is all below one folder, by its text and prefix alone.

    One whose folder needs brackets is not known for it.
    """
    return text == f"{prefix}**" or (fold_case and fold(text) == f"{prefix}**")


def enters(pattern: Pattern, folder: str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether a pattern matches some path in a folder (an index prefix; empty is the root)."""
    if pattern.literal:
        return pattern.prefix.startswith(folder)
    return _automaton(pattern.text, fold_case).enters(folder)


def as_prefix(path: str, *, fold_case: bool = FOLD_CASE) -> str:
    """Return the index prefix of a lease on one path, given as the file system has it."""
    path = globs.normal(path)
    return fold(path) if fold_case else path


def matches(pattern: Pattern | str, path: str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether a pattern matches a path as the file system has it: not quoted, relative, without `.`, `//`."""
    read = _pattern(pattern, fold_case)
    if not path or path[0] == "/" or path[-1] == "/" or "//" in path:
        return False
    path = fold(globs.normal(path)) if fold_case else globs.normal(path)
    if read.literal:
        return path == (fold(read.path) if fold_case else read.path)
    return _automaton(read.text, fold_case).accepts(path)


def may_match(text: str, path: str) -> bool:
    """Return whether a pattern matches a path, or cannot be read: what is not understood is not let through."""
    found = canonical(text)
    return isinstance(found, Finding) or matches(found, path)


def covers(a: Pattern | str, b: Pattern | str, *, fold_case: bool = FOLD_CASE) -> bool:
    """Return whether every path of `b` is one of `a`: True is always right, False may mean "hard to know".

    It is exact where `b` is a literal, and knows folders, stars and alternatives in each other. It does not see that
    `{a,b}/*` covers `[ab]/*`, where two alternatives answer one class.
    """
    one, two = _pattern(a, fold_case), _pattern(b, fold_case)
    if one == two:
        return True
    if two.literal:
        return matches(one, two.path, fold_case=fold_case)
    if one.literal:
        return False
    return _automaton(one.text, fold_case).includes(_automaton(two.text, fold_case))


def index_prefix(pattern: Pattern | str, *, fold_case: bool = FOLD_CASE) -> str:
    """Return the literal beginning up to the last `/` before the first wildcard; of a literal, all of it.

    It is not quoted, and without case where paths are: it is for the index, not for showing. If two patterns overlap,
    the prefix of one is among the `ancestors` of the other's, or begins with it.
    """
    return _pattern(pattern, fold_case).prefix


def ancestors(prefix: str) -> tuple[str, ...]:
    """Return the prefixes of leases that may overlap a prefix from above: `""`, `src/`, `src/app/`, `src/app/x.py`."""
    cuts = [at + 1 for at, character in enumerate(prefix) if character == "/"]
    if prefix and not prefix.endswith("/"):
        cuts.append(len(prefix))
    return ("", *(prefix[:cut] for cut in cuts))


def relative(path: str, root: str, *, fold_case: bool = FOLD_CASE) -> str | Finding:
    """Return a path of a tool call, absolute or relative to the root, as the text of a literal pattern.

    Lexical: `..` and `.` are resolved in the text, and nothing is looked up. Where links lead is the caller's
    matter; a caller whose root may be reached by several names resolves both first.

    What a pattern cannot have (control characters, a backslash, a byte that is no UTF-8 and comes as half of a
    surrogate pair) is written as `?`: the file is held, and with it those whose names differ there alone.
    """
    try:
        if not path or "\0" in path:
            message = "The path is empty or has a NUL character."
            raise globs.malformed(message, ascii(path)[1:-1], "a path", "Give the path of the file.")
        base = os.path.normpath(root).rstrip("/") + "/"
        full = "/" + os.path.normpath(os.path.join(base, path)).lstrip("/")
        if full.rstrip("/") + "/" == base:
            raise globs.outside("The path is the repository root itself.", path, "Name a file below it.")
        if not (fold(full).startswith(fold(base)) if fold_case else full.startswith(base)):
            raise globs.outside(
                "The path is outside of the repository.", path, "Only files of the repository are held."
            )
        return quote(full[len(base) :])
    except FindingError as error:
        return error.finding


def _pattern(value: Pattern | str, fold_case: bool) -> Pattern:
    """Return a pattern; a text that is not one is the caller's mistake."""
    if isinstance(value, Pattern):
        return value
    try:
        return _read(value, fold_case)
    except FindingError as error:
        raise ValueError(error.finding.message) from error


@lru_cache(_CACHED)
def _read(text: str, fold_case: bool) -> Pattern:
    """Read a text until it stays as it is: what is written must be read the same, and keep to the bounds."""
    while True:
        alternatives = globs.read(text)
        written = globs.write(alternatives)
        if written == text:
            break
        text = written
    path = path_of(alternatives[0]) if len(alternatives) == 1 else None
    prefix = _prefix(alternatives) if path is None else path
    prefix = fold(prefix) if fold_case else prefix
    return Pattern(text, prefix, path is not None, path or "", tuple(alternatives))


@lru_cache(_AUTOMATA)
def _automaton(text: str, fold_case: bool) -> Automaton:
    return automaton(_read(text, fold_case).alternatives, fold_case=fold_case)


def _prefix(alternatives: list[Alternative]) -> str:
    """Return the folders that all alternatives begin with, as far as they have no wildcard."""
    prefix = ""
    for part in alternatives[0][: globs.shared(alternatives)]:
        name = name_of(part)
        if name is None:
            break
        prefix += name + "/"
    return prefix
