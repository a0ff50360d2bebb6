"""Blocks: a label with the lines under it, and what the tolerant reading finds there."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from interlock.envelope.draft import Draft, Op, Patch, snippet
from interlock.envelope.model import FieldText, Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from interlock.envelope.characters import Line

BLANKS: Final = " \t"
GapKind: TypeAlias = Literal["missing", "empty", "report"]


class Gap(NamedTuple):
    """A place where a field or its value is wanted; what to write there depends on the task.

    Args:
        label: The label, or `EVIDENCE.key`.
        kind: Whether the whole field or only its value is wanting, or, for a plain report, all but the text of OUTPUT.
        line: 1-based line after which a missing field goes, that of the label without a value, or the last one.
        column: 1-based column at which a value would begin; 1 for a missing field.
        rank: Orders what goes to one place.
        labels: All labels that this gap covers, in order; for a plain report, those that it has.
    """

    label: str
    kind: GapKind
    line: int
    column: int = 1
    rank: int = 0
    labels: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class Block:
    """One label and the lines under it, up to the next label; its reader adds what it finds.

    Args:
        label: The label, or `EVIDENCE.key`.
        head: The label's line.
        value_at: 0-based index in the head at which the value may begin.
        body: The lines under it, blank ones included.
        last: 1-based last line that is not blank.
        fields: The field, and for EVIDENCE its keys.
        drafts: What is wrong with its layout.
        gaps: What is missing in it.
    """

    label: str
    head: "Line"
    value_at: int
    body: "list[Line]" = field(default_factory=list["Line"])
    last: int = 0
    fields: dict[str, FieldText] = field(default_factory=dict[str, FieldText])
    drafts: list[Draft] = field(default_factory=list[Draft])
    gaps: list[Gap] = field(default_factory=list[Gap])

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
        """The text behind the label on its line."""
        return self.head.text[self.value_at :].strip(BLANKS)

    @property
    def value_index(self) -> int:
        """0-based index of the first character of the value; the end of the line when there is none."""
        return self.value_at + indent(self.head.text[self.value_at :])

    def patch_value(self, text: str, *, blanks: bool = False) -> Patch:
        """Return the change that puts a text in place of the value, or of the blanks before it too."""
        start = self.value_at if blanks else self.value_index
        end = self.value_index + len(self.value)
        return Patch(self.first, self.head.column(start), self.head.column(end), text)

    def filled(self) -> "list[Line]":
        """Return the lines under the label that are not blank."""
        return [line for line in self.body if line.text.strip(BLANKS)]

    def report(
        self,
        line: "Line",
        index: int,
        code: str,
        message: str,
        expected: str,
        ops: "Iterable[Op]" = (),
        advice: str = "",
        *,
        found: str | None = None,
    ) -> None:
        """Add a draft about this field."""
        self.drafts.append(draft_at(line, index, code, self.label, message, expected, ops, advice, found=found))

    def report_value(self, code: str, message: str, expected: str, ops: "Iterable[Op]") -> None:
        """Add a draft about the value behind the label."""
        self.report(self.head, self.value_index, code, message, expected, ops, found=self.value)

    def report_empty(self) -> None:
        """Add the gap of a value that is missing."""
        self.gaps.append(Gap(self.label, "empty", self.first, self.head.column(self.value_at), 0, (self.label,)))

    def keep(self, items: "Iterable[Item]", *, last: int | None = None, inline: bool = False) -> None:
        """Keep items as the field; it ends with the last of them unless another line is given."""
        items = tuple(items)
        last = max([self.first, *(item.line for item in items)]) if last is None else last
        value = self.patch_value("")
        self.fields[self.label] = FieldText(self.label, self.first, last, items, value.start, value.end, inline)


def indent(text: str) -> int:
    """Return how many blanks a line begins with."""
    return len(text) - len(text.lstrip(BLANKS))


def draft_at(
    line: "Line",
    index: int,
    code: str,
    field: str,
    message: str,
    expected: str,
    ops: "Iterable[Op]" = (),
    advice: str = "",
    *,
    found: str | None = None,
) -> Draft:
    """Make a draft at a 0-based index of a line; what was found there is the rest of the line unless given."""
    shown = snippet(line.text[index:] if found is None else found)
    return Draft(code, field, line.number, line.column(index), message, shown, expected, tuple(ops), advice)


class Scan(NamedTuple):
    """What the tolerant reading found."""

    fields: "Mapping[str, FieldText]"
    drafts: "tuple[Draft, ...]"
    gaps: tuple[Gap, ...]


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


def misplaced(
    blocks: "Sequence[Block]", ranks: "Sequence[int]", count: int, start: int | None = None
) -> "Iterator[tuple[int, Block | None, int]]":
    """Yield each rank whose block is missing or has to move, the block or None, and the line after which it belongs.

    Args:
        blocks: The blocks, in the order of the text.
        ranks: The wanted rank of each.
        count: How many ranks there are.
        start: The line after which the first rank belongs; by default the one before the first block that stays.
    """
    stay = kept_in_place(ranks, [1 + len(block.body) + (block.label == "OUTPUT") for block in blocks])
    kept = {ranks[position]: blocks[position] for position in stay}
    found = dict(zip(ranks, blocks, strict=True))
    if start is None:
        start = min((block.first for block in kept.values()), default=1) - 1
    for rank in range(count):
        if rank not in kept:
            yield rank, found.get(rank), max((kept[other].last for other in kept if other < rank), default=start)
