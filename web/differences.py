"""Two hand-overs against each other: which files differ, where they lie, and the lines that do. Pure."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.core.text import visible
from interlock.graph import HandOver

Place: TypeAlias = Literal["in scope", "outside", "protected"]
Kind: TypeAlias = Literal["added", "removed", "changed"]

CONTEXT_LINES: Final = 3
MAX_LINES: Final = 20_000
"""Of longer files no lines are compared: that takes time with the square of their length."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a difference: its numbers before and after, from 1, and `same`, `added`, `removed` or `gap`."""

    before: int | None
    after: int | None
    kind: Literal["same", "added", "removed", "gap"]
    text: str


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One file that differs: digests before and after, empty where it was not there; `unknown` is why no lines are."""

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


def differing(before: HandOver, after: HandOver, read: Callable[[str], bytes | None]) -> list[FileDifference]:
    """Return the files that differ between two hand-overs, those in scope first, then what lies outside."""
    paths = sorted(path for path in {*before.files, *after.files} if before.files.get(path) != after.files.get(path))
    found = [
        _file(path, "protected" if path in after.protected else "in scope", before.files.get(path, ""),
              after.files.get(path, ""), read, after)
        for path in paths
    ]  # fmt: skip
    earlier = {row.path: row for row in before.outside}
    for row in after.outside:
        was = earlier[row.path].after if row.path in earlier else row.before
        if was != row.after:
            found.append(_file(row.path, "outside", was, row.after, read, after, row.holder))
    return found


def _file(
    path: str, place: Place, before: str, after: str, read: Callable[[str], bytes | None], of: HandOver,
    holder: str = "",
) -> FileDifference:  # fmt: skip
    kind: Kind = "added" if not before else "removed" if not after else "changed"
    was, now = (b"" if not digest else read(digest) for digest in (before, after))
    if was is None or now is None:
        left = of.left_out.get(path)
        why = f"not kept: {left.why}, {left.size_bytes:,} bytes" if left is not None else "its content is not kept"
        return FileDifference(path, place, kind, before, after, holder, unknown=why)
    first, second = (data.decode("utf-8", "replace").splitlines() for data in (was, now))
    if max(len(first), len(second)) > MAX_LINES:
        return FileDifference(path, place, kind, before, after, holder, unknown=f"more than {MAX_LINES:,} lines")
    rows = tuple(rows_of(first, second))
    counts = (sum(row.kind == kind for row in rows) for kind in ("added", "removed"))
    added, removed = counts
    return FileDifference(path, place, kind, before, after, holder, rows, added, removed)


def rows_of(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of a difference with what is around them; a gap stands for lines that are left out."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    last = 0
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        if group[0][1] > last or group[0][3] > last:
            yield Row(None, None, "gap", f"line {group[0][3] + 1}")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                pairs = zip(range(i1, i2), range(j1, j2), strict=True)
                yield from (Row(i + 1, j + 1, "same", _text(before[i])) for i, j in pairs)
                continue
            yield from (Row(i + 1, None, "removed", _text(before[i])) for i in range(i1, i2))
            yield from (Row(None, j + 1, "added", _text(after[j])) for j in range(j1, j2))
        last = group[-1][2]


def _text(line: str) -> str:
    return visible(line, keep="\t")


def by_line(comments: Sequence[object]) -> Mapping[tuple[str, int], list[object]]:
    """Return comments by the path and the line that they are about."""
    found: dict[tuple[str, int], list[object]] = {}
    for row in comments:
        found.setdefault((getattr(row, "path", ""), getattr(row, "line", 0)), []).append(row)
    return found
