"""Two hand-overs against each other: which files differ, where they lie, and the lines that do. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from rapidfuzz.distance import LCSseq

from interlock.core.text import visible
from interlock.graph import HandOver

Place: TypeAlias = Literal["in scope", "outside"]
Kind: TypeAlias = Literal["added", "removed", "changed"]

CONTEXT_LINES: Final = 3
MAX_LINES: Final = 20_000
"""Of longer files no lines are compared: that takes time and memory with the square of their length (0.1 s, 50 MB)."""

_LINE_CHARACTERS: Final = 200
"""A longer line counts as several."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a difference: its numbers before and after, from 1, and `same`, `added`, `removed` or `gap`."""

    before: int | None
    after: int | None
    kind: Literal["same", "added", "removed", "gap"]
    text: str


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One file that differs: digests before and after, empty where it was not there.

    `unknown` is why there are no lines; `left_out` is how many more there are.
    """

    path: str
    place: Place
    kind: Kind
    before: str
    after: str
    holder: str = ""
    rows: tuple[Row, ...] = ()
    added: int = 0
    removed: int = 0
    unknown: str = ""
    left_out: int = 0


def differing(before: HandOver, after: HandOver, read: Callable[[str], bytes | None]) -> list[FileDifference]:
    """Return the files that differ between two hand-overs, those in scope first, then what lies outside."""
    paths = sorted(path for path in {*before.files, *after.files} if before.files.get(path) != after.files.get(path))
    found = [
        _file(path, "in scope", before.files.get(path, ""), after.files.get(path, ""), read, after) for path in paths
    ]
    earlier = {row.path: row for row in before.outside}
    for row in after.outside:
        # A file that was changed outside before is compared with how it was left then.
        was = earlier[row.path].after if row.path in earlier else row.before
        if was != row.after:
            found.append(_file(row.path, "outside", was, row.after, read, after, row.holder))
    return found


def bounded(files: Iterable[FileDifference], most: int) -> list[FileDifference]:
    """Return files with no more than `most` rows in all, where a long line counts as several."""
    found: list[FileDifference] = []
    for file in files:
        kept = len(file.rows)
        for at, row in enumerate(file.rows):
            most -= 1 + len(row.text) // _LINE_CHARACTERS
            if most < 0:
                kept = at
                break
        found.append(replace(file, rows=file.rows[:kept], left_out=len(file.rows) - kept))
    return found


def _file(
    path: str,
    place: Place,
    before: str,
    after: str,
    read: Callable[[str], bytes | None],
    of: HandOver,
    holder: str = "",
) -> FileDifference:
    kind: Kind = "added" if not before else "removed" if not after else "changed"
    # Its content may be secret, so that it is not even read.
    if path in of.private:
        return FileDifference(path, place, kind, before, after, holder, unknown="private: git does not track it")
    was, now = (b"" if not digest else read(digest) for digest in (before, after))
    if was is None or now is None:
        why = "too large, or no text in UTF-8"
        return FileDifference(path, place, kind, before, after, holder, unknown=why)
    first, second = (data.decode("utf-8", "replace").splitlines() for data in (was, now))
    if max(len(first), len(second)) > MAX_LINES:
        return FileDifference(path, place, kind, before, after, holder, unknown=f"more than {MAX_LINES:,} lines")
    rows = tuple(rows_of(first, second))
    counts = (sum(row.kind == kind for row in rows) for kind in ("added", "removed"))
    added, removed = counts
    return FileDifference(path, place, kind, before, after, holder, rows, added, removed)


def rows_of(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of a difference with what is around them; a gap is in place of lines that are left out."""
    rows = _all_rows(before, after)
    near = {
        at + step
        for at, row in enumerate(rows)
        if row.kind != "same"
        for step in range(-CONTEXT_LINES, CONTEXT_LINES + 1)
    }
    gap = False
    for at, row in enumerate(rows):
        if at not in near:
            gap = True
            continue
        if gap:
            yield Row(None, None, "gap", f"line {row.after or row.before}")
        gap = False
        yield row
    # Not where nothing differs: there is no end to go to.
    if gap and near:
        yield Row(None, None, "gap", "to the end")


def _all_rows(before: Sequence[str], after: Sequence[str]) -> list[Row]:
    """Return every line, what was removed ahead of what was added in its place."""
    rows: list[Row] = []
    added: list[Row] = []
    for step in LCSseq.opcodes(before, after):
        i1, i2, j1, j2 = step.src_start, step.src_end, step.dest_start, step.dest_end
        if step.tag == "equal":
            # What was added comes behind all that was removed at one place, as people know it from git.
            rows += added
            added = []
            pairs = zip(range(i1, i2), range(j1, j2), strict=True)
            rows += (Row(i + 1, j + 1, "same", _text(before[i])) for i, j in pairs)
            continue
        rows += (Row(i + 1, None, "removed", _text(before[i])) for i in range(i1, i2))
        added += (Row(None, j + 1, "added", _text(after[j])) for j in range(j1, j2))
    return rows + added


def _text(line: str) -> str:
    return visible(line, keep="\t")


def by_line(comments: Sequence[object]) -> Mapping[tuple[str, int], list[object]]:
    """Return comments by the path and the line that they are about."""
    by_place: dict[tuple[str, int], list[object]] = {}
    for comment in comments:
        by_place.setdefault((getattr(comment, "path", ""), getattr(comment, "line", 0)), []).append(comment)
    return by_place
