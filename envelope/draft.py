"""Drafts: findings whose changes are spans of lines, before these are made line edits that fit together."""

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from interlock.core.text import shown

if TYPE_CHECKING:
    from interlock.core.finding import Level

FEW: Final = 5
"""So many lines a fix may delete; more are moved under OUTPUT."""


class Patch(NamedTuple):
    """Put `text` in place of the columns `start` (inclusive, 1-based) to `end` (exclusive) of one line."""

    line: int
    start: int
    end: int
    text: str


class Delete(NamedTuple):
    """Take out the lines `first` to `last`; `kept` ones, and more than a few, go under OUTPUT."""

    first: int
    last: int
    kept: bool = False

    @property
    def moves(self) -> bool:
        """Whether the lines go under OUTPUT."""
        return self.kept or self.last - self.first >= FEW


class Insert(NamedTuple):
    """Put lines after line `after`; `rank` orders inserts at one place."""

    after: int
    lines: tuple[str, ...]
    rank: int = 0


class Move(NamedTuple):
    """Take out the lines `first` to `last` and put them, with every other change made, after line `after`."""

    first: int
    last: int
    after: int
    rank: int = 0


class Join(NamedTuple):
    """Put the text of line `other`, with every other change made, at the end of line `line`, and take `other` out."""

    line: int
    other: int


Op: TypeAlias = Patch | Delete | Insert | Move | Join


class Draft(NamedTuple):
    """A finding before its edits are fitted to those of the others.

    Args:
        code: Code of the rule.
        field: The label or `LABEL.sub`.
        line: 1-based line, 0 when there is no place.
        column: 1-based column, 0 when there is no place.
        message: What is wrong, in one sentence.
        found: The text there, already quoted.
        expected: What would be right.
        ops: The changes that fix it; empty where only words can.
        advice: What to do, in words; it follows the edits. The rule's remedy when there is neither.
        level: Another level than the rule's default.
        rank: Orders findings at one line.
    """

    code: str
    field: str
    line: int
    column: int
    message: str
    found: str
    expected: str
    ops: tuple[Op, ...] = ()
    advice: str = ""
    level: "Level | None" = None
    rank: int = 0


def snippet(text: str, limit: int = 60) -> str:
    """Quote a short, escaped piece of untrusted text."""
    return code_span(shown(text, limit)) if text else "nothing"


def code_span(text: str) -> str:
    """Quote text as CommonMark code: any text, backticks and outer blanks included, can be read back.

    CommonMark takes a blank off both ends or off none, so indented text needs no more blanks than it has.
    """
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    ticks = "`" * (longest + 1)
    edges = text[:1] + text[-1:]
    pad = " " if edges in ("", "  ") or "`" in edges else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"
