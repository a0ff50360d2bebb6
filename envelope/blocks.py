"""Blocks: a label with the lines under it, and what finding the blocks of a text yields."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interlock.envelope.characters import Line
    from interlock.envelope.draft import Draft
    from interlock.envelope.model import FieldText

BLANKS: Final = " \t"
GapKind: TypeAlias = Literal["missing", "empty"]


@dataclass(eq=False, repr=False)
class Block:
    """One label and the lines under it, up to the next label.

    Args:
        label: The label, or `EVIDENCE.key`.
        head: The label's line.
        value_at: 0-based index in the head at which the value may begin.
        body: The lines under it, blank ones included.
        last: 1-based last line that is not blank.
    """

    label: str
    head: "Line"
    value_at: int
    body: "list[Line]" = field(default_factory=list["Line"])
    last: int = 0

    def __post_init__(self) -> None:
        self.last = self.head.number

    def add(self, line: "Line") -> None:
        """Put one more line under the label."""
        self.body.append(line)
        if line.text.strip(BLANKS):
            self.last = line.number

    @property
    def first(self) -> int:
        """1-based line of the label."""
        return self.head.number

    @property
    def value(self) -> str:
        """What stands behind the label on its line."""
        return self.head.text[self.value_at :].strip(BLANKS)

    @property
    def value_index(self) -> int:
        """0-based index of the first character of the value; the end of the line when there is none."""
        rest = self.head.text[self.value_at :]
        return self.value_at + len(rest) - len(rest.lstrip(BLANKS))

    def filled(self) -> "list[Line]":
        """Return the lines under the label that are not blank."""
        return [line for line in self.body if line.text.strip(BLANKS)]


class Gap(NamedTuple):
    """A place where a field or its value is wanted; what to write there depends on the task.

    Args:
        label: The label, or `EVIDENCE.key`.
        kind: Whether the whole field or only its value is wanting.
        line: 1-based line after which a missing field goes, or the line of the label that has no value.
        column: 1-based column at which a value would stand; 1 for a missing field.
        rank: Orders what goes to one place.
        labels: All labels that this gap covers, in order.
    """

    label: str
    kind: GapKind
    line: int
    column: int = 1
    rank: int = 0
    labels: tuple[str, ...] = ()


class Scan(NamedTuple):
    """What the tolerant reading found.

    Args:
        fields: Every field that could be read, by label and by `EVIDENCE.key`.
        drafts: What is wrong with the layout.
        gaps: What is wanting.
    """

    fields: "Mapping[str, FieldText]"
    drafts: "tuple[Draft, ...]"
    gaps: tuple[Gap, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with the layout."""
        return not self.drafts and not self.gaps


def kept_in_place(order: "Sequence[int]", weights: "Sequence[int]") -> set[int]:
    """Return the positions of the heaviest rising subsequence: what may stay where it is.

    Args:
        order: The wanted rank of each block, in the order of the text.
        weights: How costly it is to move each block.
    """
    best: list[tuple[int, tuple[int, ...]]] = []
    for position, rank in enumerate(order):
        before = [best[other] for other in range(position) if order[other] < rank]
        total, path = max(before, default=(0, ()))
        best.append((total + weights[position], (*path, position)))
    return set(max(best, default=(0, ()))[1])


@dataclass(eq=False, repr=False)
class Reading:
    """What one block says.

    Args:
        fields: The field, and for EVIDENCE its keys.
        drafts: What is wrong with its layout.
        gaps: What is wanting in it.
    """

    fields: "dict[str, FieldText]" = field(default_factory=dict[str, "FieldText"])
    drafts: "list[Draft]" = field(default_factory=list["Draft"])
    gaps: list[Gap] = field(default_factory=list[Gap])
