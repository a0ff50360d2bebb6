"""The tolerant reading: find the twelve blocks in whatever order and shape they come, and say what is wrong.

The grammar says whether a text is well-formed; this module says where and why not, and reads every field that can be
read, so that one mistake does not hide another. On well-formed text it finds nothing wrong: a property test holds the
two together.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from interlock.envelope.blocks import BLANKS, Block, Gap, Scan, draft_at, misplaced
from interlock.envelope.characters import Line, name
from interlock.envelope.draft import Delete, Draft, Move, Patch
from interlock.envelope.fields import read_block
from interlock.envelope.labels import IN_OUTPUT, LabelLine, find_label, written_label
from interlock.envelope.lookalikes import fold, looks
from interlock.envelope.protocol import EVIDENCE_KEYS, LABELS

if TYPE_CHECKING:
    from interlock.envelope.model import FieldText

BEGUN: Final = 3
"""A text with fewer of the twelve labels is a plain report, and no envelope that was begun."""
_LOOK_AHEAD: Final = 3
_RANK: Final = 20


def scan(lines: Sequence[Line]) -> Scan:
    """Read the fields of a text that the grammar may have refused."""
    labels = labels_begun(lines)
    if len(labels) < BEGUN:
        last = max((line.number for line in lines if line.text.strip(BLANKS)), default=0)
        return Scan({}, (), (Gap("", "report", last, labels=labels),))
    segments = _Segments(lines)
    segments.walk()
    drafts = segments.drafts
    fields: dict[str, FieldText] = {}
    gaps: list[Gap] = []
    drafts += _before(segments)
    last = segments.blocks[-1]
    for block in segments.blocks:
        read_block(block, final=block is last)
        fields |= block.fields
        drafts += block.drafts
        gaps += block.gaps
    moves, missing = _order(segments.blocks)
    return Scan(fields, (*drafts, *moves), (*gaps, *missing))


class _Segments:
    """One walk over the lines that gives each to a block."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.blocks: list[Block] = []
        self.drafts: list[Draft] = []
        self.before: list[Line] = []
        self.seen: set[str] = set()
        self.exact: set[str] = set()
        at = {"NEXT_ACTIONS": -1, "STATUS": -1}
        for index, line in enumerate(lines):
            label = IN_OUTPUT.match(line.text)
            if label:
                self.exact.add(label[1])
                at[label[1]] = index
        self.actions = at["NEXT_ACTIONS"] if "NEXT_ACTIONS" in self.exact else self._near_actions()
        self.last_status = at["STATUS"]

    def _near_actions(self) -> int:
        """Return the index of the last line that must be a misspelt NEXT_ACTIONS, or -1."""
        taken = set(LABELS) - {"NEXT_ACTIONS"}
        for index in range(len(self.lines) - 1, -1, -1):
            text = self.lines[index].text
            if ":" in fold(text[:40]):
                label = find_label(text, taken)
                if label and label.label == "NEXT_ACTIONS":
                    return index
        return -1

    def walk(self) -> None:
        """Give every line to a block."""
        index = 0
        while index < len(self.lines):
            line = self.lines[index]
            label = self._label(index) if line.text and not line.text.isspace() else None
            if label is None:
                self._under(line)
                index += 1
            elif not label.label:
                index = self._unknown(index, label)
            elif label.label in self.seen or self._too_early(index, label):
                index = self._again(index, label)
            else:
                self._misspelt(line, label)
                self.seen.add(label.label)
                self.blocks.append(Block(label.label, line, label.value_at))
                index += 1

    def _too_early(self, index: int, label: LabelLine) -> bool:
        """Return whether this NEXT_ACTIONS is a line of OUTPUT; the last one before any further envelope counts."""
        in_output = bool(self.blocks) and self.blocks[-1].label == "OUTPUT"
        return in_output and label.label == "NEXT_ACTIONS" and self.last_status < index < self.actions

    def _under(self, line: Line) -> None:
        if self.blocks:
            self.blocks[-1].add(line)
        else:
            self.before.append(line)

    def _label(self, index: int) -> LabelLine | None:
        """Return the label that a line is, judged by its place."""
        line = self.lines[index]
        current = self.blocks[-1].label if self.blocks else ""
        if current == "OUTPUT":
            match = IN_OUTPUT.match(line.text)
            if match:
                return LabelLine(match[1], match[0], match[0] == f"{match[1]}:", match.end())
            if index != self.actions:
                return None
        keys = EVIDENCE_KEYS if current == "EVIDENCE" else ()
        label = find_label(line.text, self.exact | self.seen, keys)
        if label and not label.exact and current == "NEXT_ACTIONS" and (not label.label or label.label in self.seen):
            return None
        if label and not label.label and not self.blocks:
            return None
        return label

    def _unknown(self, index: int, label: LabelLine) -> int:
        """Report a label that the protocol does not know and leave its lines out; return the next index."""
        line = self.lines[index]
        last = index
        while last + 1 < len(self.lines):
            text = self.lines[last + 1].text
            if text[:1] not in {" ", "\t", "-", "*"} or not text.strip(BLANKS) or find_label(text, ()):
                break
            last += 1
        message = f"{label.written} is not one of the twelve labels."
        ops = (Delete(line.number, self.lines[last].number),)
        advice = "Say it in OUTPUT if it matters."
        expected = "only the twelve labels, in their order"
        self.drafts.append(draft_at(line, 0, "ENV207", label.written, message, expected, ops, advice))
        return last + 1

    def _misspelt(self, line: Line, label: LabelLine) -> None:
        written = line.text[: label.value_at]
        if label.exact and written.isascii():
            return
        follows = line.text[label.value_at : label.value_at + 1]
        wanted = f"{label.label}:"
        correct = wanted if not follows or follows in BLANKS else f"{wanted} "
        ops = (Patch(line.number, line.column(0), line.column(label.value_at), correct),)
        strange = next((index for index, char in enumerate(written) if not char.isascii()), None)
        if strange is None:
            message = f"The label {label.label} is not written as the protocol has it."
            expected = f"`{wanted}` at the beginning of the line"
            code, at = "ENV206", 0
        else:
            char = written[strange]
            message = f"The label {label.label} holds {name(char)}, which {looks(char)}."
            expected = f"`{wanted}` in ASCII"
            code, at = "ENV110", strange
        self.drafts.append(draft_at(line, at, code, label.label, message, expected, ops, found=written))

    def _again(self, index: int, label: LabelLine) -> int:
        """Handle a label that occurred before; return the index of the next line to read."""
        line = self.lines[index]
        current = self.blocks[-1]
        if label.label == "STATUS" and current.label in {"OUTPUT", "NEXT_ACTIONS"} and self._task_id_follows(index):
            return self._second(index)
        if current.label == "OUTPUT":
            self._inside_output(line, label)
            current.add(line)
            return index + 1
        last = index
        for ahead in range(index + 1, len(self.lines)):
            text = self.lines[ahead].text
            if find_label(text, ()) and not (label.label == "EVIDENCE" and text.strip(BLANKS)[:1].islower()):
                break
            last = ahead if text.strip(BLANKS) else last
        first = next(block.first for block in self.blocks if block.label == label.label)
        message = f"The field {label.label} occurs a second time; it is in line {first} already."
        ops = (Delete(line.number, self.lines[last].number),)
        advice = f"Keep one {label.label}, the one that is true."
        self.drafts.append(draft_at(line, 0, "ENV204", label.label, message, "each label once", ops, advice))
        return last + 1

    def _task_id_follows(self, index: int) -> bool:
        ahead = (IN_OUTPUT.match(line.text) for line in self.lines[index + 1 : index + 1 + _LOOK_AHEAD])
        return any(match and match[1] == "TASK_ID" for match in ahead)

    def _second(self, index: int) -> int:
        """Report a second envelope and leave it out; return the index of the line after it."""
        line = self.lines[index]
        in_output = self.blocks[-1].label == "OUTPUT"
        stop = self.actions if in_output and self.actions > index else len(self.lines)
        last = next(i for i in range(stop - 1, index - 1, -1) if self.lines[i].text.strip(BLANKS))
        where = "inside OUTPUT" if in_output else "after NEXT_ACTIONS"
        message = f"A second envelope begins {where}; a response that can be read in two ways is refused."
        ops = (Delete(line.number, self.lines[last].number),)
        field = "OUTPUT" if in_output else "NEXT_ACTIONS"
        expected = "one envelope"
        advice = "To show another envelope in OUTPUT, begin each of its lines with `> `."
        self.drafts.append(draft_at(line, 0, "ENV209", field, message, expected, ops, advice))
        return stop

    def _inside_output(self, line: Line, label: LabelLine) -> None:
        message = f"A line of OUTPUT begins with the label {label.label}, so the response can be read in two ways."
        ops = (Patch(line.number, line.column(0), line.column(0), "> "),)
        expected = (
            "lines of OUTPUT that do not begin with one of the twelve labels; indent such a line or begin it with `> `"
        )
        self.drafts.append(draft_at(line, 0, "ENV208", "OUTPUT", message, expected, ops))


def labels_begun(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the labels that lines surely begin with, each once: in capitals, or of two words.

    `## Status: done` and `status: string;` are none, for reports and code are full of them, unless most labels are so.
    """
    written = [label for line in lines if (label := written_label(line.text))]
    sure = [label for label in written if label.isupper() or ("_" in label and label[0].isupper())]
    every = dict.fromkeys(map(str.upper, written))
    return tuple(every if len(every) >= 2 * BEGUN else dict.fromkeys(map(str.upper, sure)))


def _before(segments: _Segments) -> list[Draft]:
    lines = segments.before
    if not lines:
        return []
    shown = next((line for line in lines if line.text.strip(BLANKS)), lines[0])
    message = f"There is text before {segments.blocks[0].label}."
    ops = (Delete(lines[0].number, lines[-1].number),)
    advice = "" if shown.text.strip(BLANKS) else "Blank lines count."
    expected = "`STATUS:` as the first characters of the response"
    return [draft_at(shown, 0, "ENV201", "", message, expected, ops, advice)]


def _order(blocks: Sequence[Block]) -> tuple[list[Draft], list[Gap]]:
    """Return which blocks to move and which fields are missing."""
    drafts: list[Draft] = []
    gaps: list[Gap] = []
    for rank, block, after in misplaced(blocks, [LABELS.index(block.label) for block in blocks], len(LABELS)):
        label = LABELS[rank]
        if block is None:
            gaps.append(Gap(label, "missing", after, 1, _RANK + rank, (label,)))
            continue
        message = f"The field {label} is out of order."
        follow = f"after {LABELS[rank - 1]}" if rank else "first"
        ops = (Move(block.first, block.last, after, _RANK + rank),)
        drafts.append(draft_at(block.head, 0, "ENV205", label, message, f"`{label}:` {follow}", ops))
    return drafts, gaps
