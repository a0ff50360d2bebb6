"""Finding a snippet in a file: line ends, trailing blanks and common indentation do not count, all else does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

from interlock.gates.stages.sources import Source, plain_lines

_MAX_COMPARED: Final = 2000
"""So many lines are compared for the indentation of one snippet."""

_MAX_COMPARED_TOGETHER: Final = 40_000
_MAX_STRANGERS: Final = 1000

_MAX_CANDIDATES: Final = 2000
_MAX_RATED: Final = 10
_MAX_LINE_CHARS: Final = 200
_LEAST_LIKENESS: Final = 0.6


def snippet_lines(snippet: str) -> list[str]:
    """Return the lines of a snippet without trailing blanks, and without blank lines at its edges."""
    lines = plain_lines(snippet)
    filled = [at for at, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []


@dataclass(slots=True)
class Effort:
    """How many lines may still be compared for the snippets of one payload."""

    lines: int = _MAX_COMPARED_TOGETHER


def find_snippet(
    lines: Sequence[str],
    source: Source,
    first: int = 1,
    last: int | None = None,
    effort: Effort | None = None,
    *,
    whole: bool = False,
) -> int | None:
    """Return the line on which a snippet, as `snippet_lines` returns it, begins; or None.

    A snippet may begin and end in the middle of a line, unless only `whole` lines count, so that nobody finds out a
    line letter by letter. It is looked for from the line `first`, counted from 1, to `last`; None is the last of the
    file. Where no `effort` is left for the payload, only the first place is compared.
    """
    size = len(source.lines)
    if not lines or not 1 <= first <= size:
        return None
    needle = "\n".join(line.lstrip() for line in lines)
    end = len(source.flat) if last is None or last >= size else source.starts[last] - 1
    at = source.flat.find(needle, source.starts[first - 1], end)
    effort = effort or Effort()
    least = max(effort.lines - _MAX_COMPARED, 0)
    while at >= 0:
        line = source.line_at(at)
        fits = not whole or (at == source.starts[line - 1] and source.flat[at + len(needle) :][:1] in ("", "\n"))
        if fits and _same_indentation(lines, source.lines[line - 1 : line - 1 + len(lines)]):
            return line
        effort.lines -= len(lines)
        if effort.lines <= least:
            break
        at = source.flat.find(needle, source.starts[line], end) if line < size else -1
    return None


def _same_indentation(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """Return whether the lines after the first are indented alike but for what all of them share."""
    pairs = [(_indent(a), _indent(b)) for a, b in zip(wanted[1:], found[1:], strict=True) if a]
    ours, theirs = (_shared([pair[side] for pair in pairs]) for side in (0, 1))
    return all(a[ours:] == b[theirs:] for a, b in pairs)


def _shared(indents: Sequence[str]) -> int:
    """Return how many characters all indents begin with alike."""
    least, most = min(indents, default=""), max(indents, default="")
    return next((at for at, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def unmatched_lines(lines: Sequence[str], source: Source) -> list[int]:
    """Return the positions of the snippet's lines that no line of the file contains, of the first thousand."""
    return [at for at, line in enumerate(lines[:_MAX_STRANGERS]) if line.strip() not in source.flat]


def closest_line(text: str, source: Source, around: int) -> int | None:
    """Return the number of the line most like a text, or None; of a long file lines near `around` are compared."""
    first = max(0, min(around, len(source.lines)) - _MAX_CANDIDATES // 2)
    numbers = range(first + 1, min(len(source.lines), first + _MAX_CANDIDATES) + 1)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(text.strip()[:_MAX_LINE_CHARS])

    def likeness(number: int, measure: Callable[[], float]) -> tuple[float, int]:
        matcher.set_seq1(source.lines[number - 1].strip()[:_MAX_LINE_CHARS])
        return measure(), -abs(number - around)

    near = nlargest(_MAX_RATED, numbers, key=lambda number: likeness(number, matcher.quick_ratio))
    rated = max(((likeness(number, matcher.ratio), number) for number in near), default=((0.0, 0), 0))
    return rated[1] if rated[0][0] > _LEAST_LIKENESS else None
