"""The tolerant reading: find the twelve fields in whatever order and shape they come, and say what is wrong.

The grammar alone says whether a text is well-formed. This module explains why one is not, in three steps:

1. `_split` gives each line to a block: a label with the lines under it. A line that is nearly a label counts as one.
2. `_read` takes the values out of each block, whatever bullets, numbers or brackets they have.
3. Each field that is not written as the grammar has it gets one finding, which names the first fault in it. Its fix is
   not worked out here: the whole field is written anew from the values that were read (`fixes`).

Lines that belong to no field are strays: the fix takes a few of them out and moves longer stretches under OUTPUT.
On well-formed text nothing is found wrong; a property test holds the two readers together.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from interlock.envelope.characters import Line
from interlock.envelope.draft import Draft, snippet
from interlock.envelope.model import LISTS, OR_NONE, FieldText, Item
from interlock.envelope.parser import BLANKS, output_items
from interlock.envelope.protocol import EVIDENCE_KEYS, LABELS

BEGUN: Final = 3
"""A text with fewer of the twelve labels is a plain report, and no envelope that was begun."""

_ANY: Final = "|".join(LABELS)
_EXACT: Final = re.compile(rf"({_ANY}):")
IN_OUTPUT: Final = re.compile(rf"({_ANY})[ \t]*+:")
"""What may not begin a line of OUTPUT."""
# A heading's or quotation's mark and marks of emphasis may come first, and `=` or a full-width colon behind. No label
# has more than 14 letters: the bound on them keeps a long line cheap.
_NEAR: Final = re.compile(
    r"[ \t]*+(?>(?:\#{1,6}[ \t]++|>[ \t]*+)?)[*_`]{0,3}"
    r"([^\W\d_][\w \-]{1,23}?)"
    r"[*_`]{0,3}[ \t]*+[:=\uff1a][*_`]{0,3}"
)
# Capitals and a colon at the beginning of a line: who writes `APPROVED_BY:` means a field.
_UNKNOWN: Final = re.compile(r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*):")
_KEY: Final = re.compile(r"[ \t]*+(?>(?:[-*][ \t]++)?)[*_`\"']{0,3}([^\W_][\w \-]{0,31}?)[*_`\"']{0,3}[ \t]*+:")
_EXACT_KEY: Final = re.compile(rf"[ \t]*+({'|'.join(EVIDENCE_KEYS)}):")

# A bullet with nothing behind it is no item.
_BULLET: Final = re.compile(r"[ \t]*+-[ \t]++(?=[^ \t])")
_STEP: Final = re.compile(r"[ \t]*+([0-9]++\.)[ \t]++(?=[^ \t])")
# Bullets that word processors make, dashes, and numbers like `2)`, `(2)` and `b.`; two hyphens begin a ruler.
_NEAR_ITEM: Final = re.compile(
    r"[ \t]*+(?>[*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|-(?!-)|\(?[0-9]{1,9}[.):]|[a-z][.)](?=[ \t]))"
    r"[ \t]*+(?=[^ \t])"
)
# As in the grammar; a property test compares the two readers.
_INLINE: Final = re.compile(r"\[[ \t]*+(?:[^ \t,\[\]][^,\[\]]*+(?>(?:,[ \t]*+[^ \t,\[\]][^,\[\]]*+)*))?\]")
# Fences, rulers, headings and quotations begin with marks of items, and are none.
_RULER: Final = re.compile(r"[ \t]*+(?:`{3,}|~{3,}|-{3,}|={3,}|\*{3,}|_{3,}|#|>)")
_NOTHING: Final = frozenset({"", "none", "n/a", "na", "nil", "null", "empty", "{}", "()", "nothing", "(none)", "no"})

_FORMS: Final = {
    "FAIL_REASONS": "`NONE`, or one line `- reason` for each",
    "NEXT_ACTIONS": "`NONE`, or one line `1. step` for each",
    "EVIDENCE": "the keys " + ", ".join(f"`{key}:`" for key in EVIDENCE_KEYS) + ", each once, in this order",
    **dict.fromkeys(("TASK", "STATUS", "TASK_ID", "ASSIGNED_AGENT", "REPORTS_TO"), "one line behind the label"),
}
_LIST: Final = "`[]`, `[a, b]`, or one line `- item` for each"


class Layout(NamedTuple):
    """What the fix of a text has to do besides changing values.

    Args:
        rewrite: Labels whose field is written anew.
        strays: Lines that belong to no field, as runs from a first to a last line, with the label that they are under;
            an empty one for those with a finding of their own.
        quoted: Lines of OUTPUT that get `> ` before them.
    """

    rewrite: frozenset[str] = frozenset()
    strays: tuple[tuple[int, int, str], ...] = ()
    quoted: frozenset[int] = frozenset()


class Scan(NamedTuple):
    """What the tolerant reading found; a plain report has no fields."""

    fields: dict[str, FieldText]
    drafts: tuple[Draft, ...] = ()
    layout: Layout = Layout()


def says_nothing(text: str) -> bool:
    """Return whether a value means that there is none, in whatever words."""
    return text.lower().strip(".[]- \t") in _NOTHING


def scan(lines: Sequence[Line]) -> Scan:
    """Read the fields of a text that the grammar may have refused."""
    labels = labels_begun(lines)
    if len(labels) < BEGUN:
        seen = f"of the twelve labels {'only ' + ' and '.join(labels) if labels else 'none'}"
        message = "The response is a plain report: put it under OUTPUT of an envelope, as it is."
        draft = Draft("ENV223", "", 1, 1, message, seen, "the twelve fields, with this text under OUTPUT")
        return Scan({}, (draft,))
    blocks, split = _split(lines)
    fields: dict[str, FieldText] = {}
    drafts = list(split.drafts)
    rewrite = set(split.rewrite)
    strays = list(split.strays)
    for block in blocks:
        _read(block, is_last=block is blocks[-1])
        fields |= block.fields
        drafts += block.drafts
        strays += block.strays
        if block.drafts:
            rewrite.add(block.label)
    drafts += _missing(fields)
    drafts += _order(blocks)
    layout = Layout(frozenset(rewrite), tuple(sorted(strays)), frozenset(split.quoted))
    return Scan(fields, tuple(drafts), layout)


# -- labels ----------------------------------------------------------------------------------------------------------


class _Label(NamedTuple):
    """A line that is, or is meant to be, a label: empty for one that the protocol does not know.

    `value_at` is the 0-based index at which its value may begin.
    """

    label: str
    is_exact: bool
    value_at: int


def _find_label(text: str, taken: Collection[str], keys: Collection[str] = ()) -> _Label | None:
    """Return the label that a line is meant to be, or None.

    Args:
        text: The line.
        taken: Labels that the text holds exactly, or that were found before; a near miss is never one of these.
        keys: Words that are not labels in this place (the keys of EVIDENCE).
    """
    exact = _EXACT.match(text)
    if exact:
        return _Label(exact[1], True, exact.end())
    near = _NEAR.match(text)
    if near is None:
        return None
    word = _as_label(near[1])
    if word in LABELS:
        return _Label(word, False, near.end()) if word not in taken else None
    if near[1].lower() in keys or (keys and near[1].islower()):
        return None
    unknown = _UNKNOWN.match(text)
    return _Label("", False, unknown.end()) if unknown else None


def _as_label(word: str) -> str:
    return re.sub(r"[ \-]+", "_", word.strip("_ -").upper())


def labels_begun(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the labels that lines surely begin with, each once: in capitals, or of two words.

    `## Status: done` and `status: string;` are none, for reports and code are full of them, unless most labels are so.
    """
    every: dict[str, None] = {}
    sure: dict[str, None] = {}
    for line in lines:
        # A label with all its marks is shorter; a line of OUTPUT may have a megabyte.
        near = _NEAR.match(line.text[:60])
        label = _as_label(near[1]) if near else ""
        if near is None or label not in LABELS:
            continue
        every[label] = None
        if near[1].isupper() or ("_" in label and near[1][0].isupper()):
            sure[label] = None
    return tuple(every if len(every) >= 2 * BEGUN else sure)


def starts_envelope(text: str) -> bool:
    """Return whether a line is meant to be STATUS or TASK_ID; `status: string;` is code."""
    label = _find_label(text[:60], ())
    return label is not None and label.label in {"STATUS", "TASK_ID"} and not text.lstrip()[:1].islower()


# -- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class _Block:
    """One label and the lines under it up to the next label; `_read` adds what it finds.

    Args:
        label: The label, or `EVIDENCE.key`.
        head: The label's line.
        value_at: 0-based index in the head at which the value may begin.
        body: The lines under it, blank ones included.
        items: The values that were read.
        fields: The field, and for EVIDENCE its keys.
        drafts: What is wrong with its layout.
        strays: Lines under it that belong to no field.
    """

    label: str
    head: Line
    value_at: int
    body: list[Line] = field(default_factory=list[Line])
    items: list[Item] = field(default_factory=list[Item])
    fields: dict[str, FieldText] = field(default_factory=dict[str, FieldText])
    drafts: list[Draft] = field(default_factory=list[Draft])
    strays: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])

    @property
    def value_index(self) -> int:
        """0-based index of the first character of the value; the end of the line when there is none."""
        rest = self.head.text[self.value_at :]
        return self.value_at + len(rest) - len(rest.lstrip(BLANKS))

    @property
    def value(self) -> str:
        """The text behind the label on its line."""
        return self.head.text[self.value_at :].strip(BLANKS)

    @property
    def last(self) -> int:
        """1-based last line that is not blank."""
        return max([self.head.number, *(line.number for line in self.filled())])

    def filled(self) -> list[Line]:
        """Return the lines under the label that are not blank."""
        return [line for line in self.body if line.text.strip(BLANKS)]

    def fault(self, line: Line, message: str, code: str = "ENV212") -> None:
        """Add what is wrong with the layout; what was found first stands for all of the field."""
        if self.drafts:
            return
        start = self.value_index if line is self.head else len(line.text) - len(line.text.lstrip(BLANKS))
        found = snippet(line.text[start:].rstrip(BLANKS))
        expected = f"a value of {self.label}" if code == "ENV210" else _FORMS.get(self.label, _LIST)
        self.drafts.append(Draft(code, self.label, line.number, start + 1, message, found, expected))

    def stray(self, line: Line) -> None:
        """Note a line that belongs to no field."""
        self.strays.append((line.number, line.number, self.label.partition(".")[0]))

    def keep(self) -> None:
        """Keep the items as the field."""
        self.fields[self.label] = FieldText(
            self.label, self.head.number, self.last, tuple(self.items), self.value_index + 1
        )


@dataclass(eq=False, repr=False)
class _Split:
    """What giving the lines to blocks finds wrong."""

    drafts: list[Draft] = field(default_factory=list[Draft])
    rewrite: set[str] = field(default_factory=set[str])
    strays: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    quoted: list[int] = field(default_factory=list[int])


def _split(lines: Sequence[Line]) -> tuple[list[_Block], _Split]:
    """Give every line to a block; lines before the first one, and of labels too many, to none."""
    split = _Split()
    blocks: list[_Block] = []
    before: list[Line] = []
    # Exact labels count before any near miss: where there is a STATUS, `Status: open` above it is prose.
    exact = {match[1] for line in lines if (match := _EXACT.match(line.text))}
    actions = _last_actions(lines, exact)
    seen: set[str] = set()
    in_output: list[Line] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        current = blocks[-1] if blocks else None
        label = _label_of(line, index - 1 == actions, current, exact | seen)
        # Before the first known label, `NOTE:` is prose.
        if label is None or (label.label == "" and current is None):
            (current.body if current else before).append(line)
        # Text of OUTPUT may quote a whole envelope, so its own end is the last NEXT_ACTIONS of all.
        elif label.label in seen or (label.label == "NEXT_ACTIONS" and index - 1 < actions):
            if current is not None and current.label == "OUTPUT":
                in_output.append(line)
                current.body.append(line)
            else:
                index = _take_out(lines, index, split, label, exact)
        elif label.label == "":
            index = _take_out(lines, index, split, label, exact)
        else:
            seen.add(label.label)
            blocks.append(_Block(label.label, line, label.value_at))
            if not label.is_exact:
                _misspelt(line, label, split)
    if before:
        shown = next((line for line in before if line.text.strip(BLANKS)), before[0])
        message = f"There is text before {blocks[0].label}."
        _report_stray(split, before, shown, "ENV201", "", message, "`STATUS:` as the first characters of the response")
    if in_output:
        first = in_output[0]
        split.quoted += [line.number for line in in_output]
        names = ", ".join(dict.fromkeys(match[1] for line in in_output if (match := IN_OUTPUT.match(line.text))))
        message = f"Lines of OUTPUT begin with labels ({names}), so the response can be read in two ways."
        expected = "one envelope, and lines of OUTPUT that do not begin with a label; `> ` before such a line will do"
        found = snippet(first.text)
        split.drafts.append(
            Draft("ENV208", "OUTPUT", first.number, 1, message, found, expected, lines=tuple(split.quoted))
        )
    return blocks, split


def _last_actions(lines: Sequence[Line], exact: set[str]) -> int:
    """Return the index of the last line that is, or must be a misspelt, NEXT_ACTIONS; -1 when there is none.

    What is like it before that line belongs to OUTPUT.
    """
    taken = set(LABELS) - {"NEXT_ACTIONS"}
    for index in range(len(lines) - 1, -1, -1):
        match = IN_OUTPUT.match(lines[index].text)
        if match and match[1] == "NEXT_ACTIONS":
            return index
        if "NEXT_ACTIONS" not in exact:
            label = _find_label(lines[index].text[:60], taken)
            if label and label.label == "NEXT_ACTIONS":
                return index
    return -1


def _label_of(line: Line, is_actions: bool, current: _Block | None, taken: Collection[str]) -> _Label | None:
    """Return the label that a line is, judged by its place."""
    if not line.text or line.text.isspace():
        return None
    if current is not None and current.label == "OUTPUT":
        match = IN_OUTPUT.match(line.text)
        if match:
            return _Label(match[1], match.end() == len(match[1]) + 1, match.end())
        if not is_actions:
            return None
    # `Reports:` is a key of EVIDENCE there, and no unknown label.
    keys = EVIDENCE_KEYS if current is not None and current.label == "EVIDENCE" else ()
    label = _find_label(line.text, taken, keys)
    in_actions = current is not None and current.label == "NEXT_ACTIONS"
    # A step or what follows the steps may look like another label.
    if label and not label.is_exact and in_actions and (not label.label or label.label in taken):
        return None
    return label


def _take_out(lines: Sequence[Line], index: int, split: _Split, label: _Label, exact: set[str]) -> int:
    """Report a label that is unknown or occurs again, and leave its lines out; return the index of the next line."""
    head = lines[index - 1]
    taken = [head]
    while index < len(lines):
        text = lines[index].text
        # Only what is indented or an item is its own.
        if (text.strip(BLANKS) and text[0] not in " \t-*") or _find_label(text, exact) is not None:
            break
        taken.append(lines[index])
        index += 1
    # Blank lines behind it belong to the field above.
    while not taken[-1].text.strip(BLANKS):
        taken.pop()
        index -= 1
    written = label.label or head.text[: label.value_at].rstrip(": \t")
    what = "occurs a second time" if label.label else "is not one of the twelve labels"
    message = f"{written} {what}; say it in OUTPUT if it matters."
    _report_stray(split, taken, head, "ENV204", written, message, "only the twelve labels, each once")
    return index


def _report_stray(
    split: _Split, lines: Sequence[Line], shown: Line, code: str, label: str, message: str, expected: str
) -> None:
    split.strays.append((lines[0].number, lines[-1].number, ""))
    numbers = tuple(range(lines[0].number, lines[-1].number + 1))
    split.drafts.append(Draft(code, label, shown.number, 1, message, snippet(shown.text), expected, lines=numbers))


def _misspelt(line: Line, label: _Label, split: _Split) -> None:
    written = line.text[: label.value_at]
    message = f"The label {label.label} is not written as the protocol has it."
    expected = f"`{label.label}:` at the beginning of the line"
    split.drafts.append(Draft("ENV206", label.label, line.number, 1, message, snippet(written), expected))
    split.rewrite.add(label.label)


def _missing(fields: dict[str, FieldText]) -> Iterator[Draft]:
    """Report each field that is not there, at the line after which it belongs."""
    line = 1
    for rank, label in enumerate(LABELS):
        if label in fields:
            line = fields[label].end_line
            continue
        place = f"`{label}:` " + (f"after {LABELS[rank - 1]}" if rank else "as the first line")
        advice = "Name each file that you read; write `INPUTS_USED: []` only if there was none."
        yield Draft(
            "ENV203",
            label,
            line,
            1,
            f"The field {label} is missing.",
            "nothing",
            place,
            advice=advice if label == "INPUTS_USED" else "",
        )


def _order(blocks: Sequence[_Block]) -> list[Draft]:
    """Report, once, that fields are out of order."""
    moved = out_of_order([block.label for block in blocks])
    if not moved:
        return []
    block = next(block for block in blocks if block.label in moved)
    rank = LABELS.index(block.label)
    names = ", ".join(label for label in LABELS if label in moved)
    message = f"The fields are out of order: {names} {'is' if len(moved) == 1 else 'are'} in another place."
    follow = f"after {LABELS[rank - 1]}" if rank else "first"
    found = snippet(block.head.text)
    return [Draft("ENV205", block.label, block.head.number, 1, message, found, f"`{block.label}:` {follow}")]


def out_of_order(labels: Sequence[str]) -> frozenset[str]:
    """Return the labels to move: those behind one that belongs after them, or the others of each such pair if fewer."""
    ranks = [LABELS.index(label) for label in labels]
    behind = {label for at, label in enumerate(labels) if ranks[at] < max(ranks[:at], default=-1)}
    ahead = {label for at, label in enumerate(labels) if ranks[at] > min(ranks[at + 1 :], default=len(LABELS))}
    return frozenset(min(ahead, behind, key=len))


# -- values ----------------------------------------------------------------------------------------------------------


def _read(block: _Block, *, is_last: bool) -> None:
    """Read the values of one block. What follows the last step of the last block is text after the envelope."""
    if block.label == "EVIDENCE":
        _read_evidence(block)
    elif block.label == "OUTPUT":
        # The text may begin on the label's line; its lines are kept as they are, with their indentation.
        value = Line(block.head.number, block.head.text[block.value_index :])
        block.items += output_items([value, *block.body], block.value_index + 1)
        if not block.items:
            _report_empty(block)
        block.keep()
    elif block.label in LISTS:
        _read_list(block, is_last=is_last)
    else:
        _read_single(block)


def _report_empty(block: _Block) -> None:
    block.fault(block.head, f"{block.label} is empty.", "ENV210")


def _read_single(block: _Block) -> None:
    under = block.filled()
    if block.value:
        block.items.append(Item(block.value, block.head.number, block.value_index + 1))
    elif under:
        # `STATUS:` with the value in the next line, as headings have it.
        line = under.pop(0)
        block.items.append(_item(line, len(line.text) - len(line.text.lstrip(BLANKS))))
        block.fault(line, f"The value of {block.label} is on another line than its label.")
    else:
        _report_empty(block)
    for line in under:
        block.fault(line, f"{block.label} has one line, and more text follows under it.")
        block.stray(line)
    block.keep()


def _item(line: Line, start: int, number: str = "") -> Item:
    """Return the item whose text begins at an index of a line and runs to the end of it."""
    return Item(line.text[start:].rstrip(BLANKS), line.number, start + 1, number)


def _read_list(block: _Block, *, is_last: bool = False) -> None:
    """Read a list of any kind: its value on the label's line, and the items under it."""
    if block.value:
        _read_value(block)
    _read_items(block, is_last=is_last)
    if block.label in OR_NONE:
        if not block.value and not block.items:
            _report_empty(block)
        # `- NONE` is well-formed and says that there are none; in `1. NONE` it is a step, for a rule to refuse.
        if len(block.items) == 1 and block.items[0].text == "NONE" and not block.items[0].number:
            block.items.clear()
    block.keep()


def _read_value(block: _Block) -> None:
    """Read what is behind the label of a list."""
    value, head, start = block.value, block.head, block.value_index
    is_sound = value == "NONE" if block.label in OR_NONE else _INLINE.fullmatch(value)
    if not is_sound:
        block.fault(head, f"What is behind {block.label} is not written as a list.")
    if any(_NEAR_ITEM.match(line.text) for line in block.filled()):
        block.fault(head, f"{block.label} has a value on its line and items under it.")
    # `none`, `N/A` and `{}` say that there are none, though not as the grammar has it.
    if says_nothing(value) and (not is_sound or block.label in OR_NONE):
        return
    if block.label in OR_NONE:
        marker = _NEAR_ITEM.match(head.text, start)
        block.items.append(_item(head, marker.end() if marker else start))
        return
    # `a, b` without brackets is read as a list, too.
    opened = value.startswith("[")
    at = start + opened
    for part in value[opened : len(value) - (opened and value.endswith("]"))].split(","):
        text = part.strip(BLANKS)
        if text:
            block.items.append(Item(text, head.number, at + len(part) - len(part.lstrip(BLANKS)) + 1))
        at += len(part) + 1


def _read_items(block: _Block, *, is_last: bool) -> None:
    """Read the lines under the label of a list: items, lines that go on with the item above, and strays."""
    numbered = block.label == "NEXT_ACTIONS"
    strict = _STEP if numbered else _BULLET
    lines = block.filled()
    marks = [None if _RULER.match(line.text) else _NEAR_ITEM.match(line.text) for line in lines]
    above = 0
    last_marked = max((index for index, mark in enumerate(marks) if mark), default=-1)
    for index, (line, mark) in enumerate(zip(lines, marks, strict=True)):
        text = line.text
        item = strict.match(text)
        if item:
            block.items.append(_item(line, item.end(), item[1] if numbered else ""))
        elif mark:
            block.items.append(_item(line, mark.end()))
            what = "a number and a point" if numbered else "`- `"
            block.fault(line, f"Items of {block.label} do not begin with {what}.")
        # NEXT_ACTIONS ends the envelope, so what follows its steps was written after it.
        elif numbered and is_last and block.items and index > last_marked:
            _after_the_end(block, lines[index:])
            break
        # Where any line has a mark, one without is no item that lost its own.
        elif last_marked < 0 and not block.value and _is_bare_item(text, block.label):
            block.items.append(_item(line, len(text) - len(text.lstrip(BLANKS))))
            block.fault(line, f"A line of {block.label} is not written as an item.")
        # An item that was wrapped: indented, and directly under its first line.
        elif text[0] in BLANKS and block.items and above == line.number - 1 and len(text.strip(BLANKS)) > 1:
            wrapped = block.items[-1]
            block.items[-1] = wrapped._replace(text=f"{wrapped.text} {text.strip(BLANKS)}")
            block.fault(line, f"An item of {block.label} runs over its line.")
        else:
            block.fault(line, f"A line of {block.label} is not an item.")
            block.stray(line)
            continue
        above = line.number


def _after_the_end(block: _Block, lines: Sequence[Line]) -> None:
    first = lines[0]
    message = "There is text after the last step of NEXT_ACTIONS."
    found = snippet(first.text.strip(BLANKS))
    numbers = tuple(range(first.number, lines[-1].number + 1))
    expected = "nothing after the last step"
    # It is no fault of the field, so it is said beside one that was found there.
    block.drafts.append(Draft("ENV201", "", first.number, 1, message, found, expected, lines=numbers))
    block.strays.append((first.number, lines[-1].number, ""))


def _is_bare_item(text: str, label: str) -> bool:
    """Return whether a line without a bullet is meant as an item."""
    # A reason is a sentence; gates and paths have no blanks, so that prose between them is none.
    return not _RULER.match(text) and (label in OR_NONE or " " not in text.strip(BLANKS))


def _read_evidence(block: _Block) -> None:
    """Read EVIDENCE: a list for each of its four keys."""
    # A key that is there exactly is not looked for among near misses: `- console: clean` is an item then.
    exact = {match[1] for line in block.body if (match := _EXACT_KEY.match(line.text))}
    keys: dict[str, _Block] = {}
    current: _Block | None = None
    if block.value:
        block.fault(block.head, "EVIDENCE has a value of its own instead of the four keys.")
    for line in block.filled():
        match = _KEY.match(line.text)
        word = match[1].strip().lower() if match else ""
        is_item = line.text.lstrip(BLANKS)[0] in "-*" and (word not in EVIDENCE_KEYS or word in exact)
        if match is None or is_item:
            if current is not None:
                current.body.append(line)
                continue
            block.fault(line, "A line of EVIDENCE is under none of its keys.")
            block.stray(line)
        elif word not in EVIDENCE_KEYS or word in keys:
            what = "occurs a second time" if word in keys else "is not a key of EVIDENCE"
            block.fault(line, f"`{match[1].strip()}` {what}; say it in OUTPUT if it matters.")
            block.stray(line)
            current = None
        else:
            exact.add(word)
            keys[word] = current = _Block(f"EVIDENCE.{word}", line, match.end())
            if not _EXACT_KEY.match(line.text):
                block.fault(line, f"The key `{word}` is not written as the protocol has it.")
    _keep_keys(block, keys)


def _keep_keys(block: _Block, keys: dict[str, _Block]) -> None:
    """Keep the four keys as fields, and report what is missing or out of order."""
    missing = [key for key in EVIDENCE_KEYS if key not in keys]
    if missing:
        block.fault(block.head, f"EVIDENCE lacks {', '.join(f'`{key}`' for key in missing)}.")
    elif list(keys) != list(EVIDENCE_KEYS):
        block.fault(block.head, f"The keys of EVIDENCE are out of order: {', '.join(keys)}.")
    block.keep()
    for key in EVIDENCE_KEYS:
        under = keys.get(key)
        if under is None:
            # Rules and fixes look at all four keys, also where one is missing.
            block.fields[f"EVIDENCE.{key}"] = FieldText(f"EVIDENCE.{key}", block.head.number, block.last, (), 1)
            continue
        _read_list(under)
        block.fields |= under.fields
        block.drafts += under.drafts
        block.strays += under.strays
