"""Finding a snippet in a file: line ends and blanks at the edges of lines do not count, all else does."""

from collections.abc import Sequence
from typing import Final

from interlock.core.text import closest
from interlock.gates.stages.sources import Source, bare_lines

_AROUND: Final = 1000
"""So many lines before and after the claimed one are compared to find the closest."""


def snippet_lines(snippet: str) -> list[str]:
    """Return the lines of a snippet without blanks at their edges, and without blank lines at its own."""
    lines = bare_lines(snippet)
    filled = [at for at, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def find_snippet(
    lines: Sequence[str], source: Source, first: int = 1, last: int | None = None, *, whole: bool = False
) -> int | None:
    """Return the line on which a snippet, as `snippet_lines` returns it, begins; or None.

    A snippet may begin and end in the middle of a line, unless only `whole` lines count, so that nobody finds out a
    line letter by letter. It is looked for from the line `first`, counted from 1, to `last`; None is the last of the
    file.
    """
    size = len(source.lines)
    if not lines or not 1 <= first <= size:
        return None
    begin, end = source.starts[first - 1], source.starts[min(last or size, size)] - 1
    needle = "\n".join(lines)
    if whole:
        needle, begin, end = f"\n{needle}\n", begin - 1, end + 1
    at = source.bare.find(needle, begin, end)
    return source.line_at(at + whole) if at >= 0 else None


def closest_line(text: str, source: Source, around: int) -> int | None:
    """Return the number of the line most like a text, or None; lines near `around` are compared."""
    first = max(0, min(around, len(source.lines)) - _AROUND)
    lines = [line.strip() for line in source.lines[first : first + 2 * _AROUND]]
    near = closest(text, lines)
    return first + lines.index(near) + 1 if near else None
