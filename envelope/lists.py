"""Reading the fields that hold lists of items: `- item` lines, `[a, b]`, and the reasons of FAIL_REASONS."""

import re
from typing import Final, NamedTuple

from interlock.envelope.blocks import BLANKS, Block, Gap, Reading
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Draft, Join, Op, Patch, snippet
from interlock.envelope.lookalikes import plain, strange
from interlock.envelope.model import FieldText, Item

_BULLET: Final = re.compile(r"[ \t]*+(-)[ \t]++(?=[^ \t])")
_NEAR_BULLET: Final = re.compile(
    r"[ \t]*+([*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|-(?!-)|\(?[0-9]{1,9}[.)])[ \t]*+(?=[^ \t])"
)
EMPTY_BULLET: Final = re.compile(r"[ \t]*+(?:[-*+\u2022]|[0-9]{1,9}[.)])[ \t]*+")
_INLINE: Final = re.compile(
    r"\[[ \t]*+(?:[^ \t,\[\]][^,\[\]]*+(?>(?:,[ \t]*+[^ \t,\[\]][^,\[\]]*+)*))?\]",
)
_NOTHING: Final = frozenset({"", "none", "n/a", "na", "nil", "null", "empty", "{}", "()", "nothing", "(none)", "no"})
RULER: Final = re.compile(r"[ \t]*+(?:`{3,}|~{3,}|-{3,}|={3,}|\*{3,}|_{3,}|#|>)")


def says_nothing(text: str) -> bool:
    """Say whether a value means that there is none, in whatever words."""
    return plain(text).lower().strip(".[]- ") in _NOTHING


class _Walk(NamedTuple):
    """What the lines under a label gave."""

    items: list[Item]
    drafts: list[Draft]


def item_at(line: Line, start: int, marker: str = "", marker_at: int | None = None) -> Item:
    """Return the item whose text begins at an index of a line and runs to the end of it."""
    text = line.text[start:].rstrip(BLANKS)
    first = line.column(start)
    return Item(
        text,
        line.number,
        first,
        line.column(start + len(text)),
        marker,
        line.column(marker_at if marker_at is not None else start),
    )


def read_list(block: Block) -> Reading:
    """Read a list field or one key of EVIDENCE."""
    reading = Reading()
    inline = _inline(block, reading)
    walk = _bullets(block, joins=block.label == "INPUTS_USED")
    if block.value and walk.items:
        reading.drafts.append(_both(block, inline))
    reading.drafts += walk.drafts
    keep(block, reading, (*inline, *walk.items), inline=block.value.startswith("[") and not walk.items)
    return reading


def read_reasons(block: Block) -> Reading:
    """Read FAIL_REASONS: `NONE`, or bullets."""
    reading = Reading()
    items: list[Item] = []
    value, start = block.value, block.value_index
    walk = _bullets(block, joins=True)
    head = block.head
    where = head.number, head.column(start)
    none = Item("NONE", head.number, head.column(start), head.column(start + len(value)), "", head.column(start))
    if value == "NONE":
        items.append(none)
    elif value and says_nothing(value):
        ops = (Patch(head.number, none.column, none.end, "" if walk.items else "NONE"),)
        message = f"FAIL_REASONS says that there are no failures in words of its own.{strange(value)}"
        reading.drafts.append(
            Draft("ENV222", "FAIL_REASONS", *where, message, snippet(value), "`FAIL_REASONS: NONE`", ops)
        )
        items += [] if walk.items else [none]
    elif value:
        items.append(item_at(head, start))
        ops = (Patch(head.number, head.column(block.value_at), head.column(start), "\n- "),)
        message = "A reason stands on the label's line."
        reading.drafts.append(
            Draft(
                "ENV222",
                "FAIL_REASONS",
                *where,
                message,
                snippet(value),
                "`NONE`, or one `- ` line for each reason",
                ops,
            )
        )
    if value == "NONE" and walk.items:
        ops = (Patch(head.number, head.column(block.value_at), none.end, ""),)
        message = "FAIL_REASONS says NONE and gives reasons."
        reading.drafts.append(
            Draft("ENV222", "FAIL_REASONS", *where, message, "`NONE`", "either `NONE` or reasons", ops)
        )
        items = []
    items += walk.items
    reading.drafts += walk.drafts
    if not items:
        reading.gaps.append(
            Gap("FAIL_REASONS", "empty", head.number, head.column(block.value_at), 0, ("FAIL_REASONS",))
        )
    keep(block, reading, tuple(items))
    return reading


def keep(block: Block, reading: Reading, items: tuple[Item, ...], *, inline: bool = False) -> None:
    """Keep the items of a block as its field."""
    start = block.value_index
    column, end = block.head.column(start), block.head.column(start + len(block.value))
    last = max([block.first, *(item.line for item in items)])
    reading.fields[block.label] = FieldText(block.label, block.first, last, items, column, end, inline)


def _inline(block: Block, reading: Reading) -> tuple[Item, ...]:
    """Read what stands behind the label of a list."""
    value, start, head = block.value, block.value_index, block.head
    if not value:
        return ()
    end = start + len(value)
    if _INLINE.fullmatch(value):
        return _split(head, start + 1, end - 1)
    where = head.number, head.column(start)
    expected = "`[]`, `[a, b]`, or one `- ` line for each item"
    if says_nothing(value):
        ops: tuple[Op, ...] = (Patch(head.number, head.column(start), head.column(end), "[]"),)
        message = f"{block.label} says that it is empty in words of its own.{strange(value)}"
        reading.drafts.append(Draft("ENV214", block.label, *where, message, snippet(value), expected, ops))
        return ()
    opened, closed = value.startswith("["), value.endswith("]") and value.startswith("[")
    items = _split(head, start + opened, end - closed)
    inner = value[opened : len(value) - closed]
    if "[" in inner or "]" in inner:
        ops = _as_lines(block, items)
    else:
        ops = _mend_commas(head, start + opened, end - closed)
        ops = (*ops, *(() if opened else (Patch(head.number, head.column(start), head.column(start), "["),)))
        ops = (*ops, *(() if closed else (Patch(head.number, head.column(end), head.column(end), "]"),)))
    message = f"The list behind {block.label} is not written as a list."
    reading.drafts.append(Draft("ENV214", block.label, *where, message, snippet(value), expected, ops))
    return items


def _split(head: Line, start: int, end: int) -> tuple[Item, ...]:
    """Return the items between two indexes, split at commas; empty ones are left out."""
    items: list[Item] = []
    at = start
    for part in head.text[start:end].split(","):
        text = part.strip(BLANKS)
        if text:
            first = at + len(part) - len(part.lstrip(BLANKS))
            column = head.column(first)
            items.append(Item(text, head.number, column, head.column(first + len(text)), "", column))
        at += len(part) + 1
    return tuple(items)


def _mend_commas(head: Line, start: int, end: int) -> tuple[Op, ...]:
    """Return patches that take out commas with nothing before or after them."""
    ops: list[Op] = []
    at, filled = start, False
    parts = head.text[start:end].split(",")
    for index, part in enumerate(parts):
        if not part.strip(BLANKS) and len(parts) > 1:
            first, last = (
                (at - 1, at + len(part)) if index and (filled or index == len(parts) - 1) else (at, at + len(part) + 1)
            )
            ops.append(Patch(head.number, head.column(first), head.column(min(last, end)), ""))
        filled = filled or bool(part.strip(BLANKS))
        at += len(part) + 1
    return tuple(ops)


def _as_lines(block: Block, items: tuple[Item, ...]) -> tuple[Op, ...]:
    """Return patches that turn a list on the label's line into bullet lines."""
    head = block.head
    at = head.column(block.value_at)
    ops: list[Op] = []
    for item in items:
        ops.append(Patch(head.number, at, item.column, "\n- "))
        at = item.end
    ops.append(Patch(head.number, at, head.column(block.value_index + len(block.value)), ""))
    return tuple(ops)


def _both(block: Block, inline: tuple[Item, ...]) -> Draft:
    message = f"{block.label} has a list on its line and another under it."
    column = block.head.column(block.value_index)
    expected = "either `[a, b]` or `- ` lines"
    found = snippet(block.value)
    return Draft("ENV214", block.label, block.first, column, message, found, expected, _as_lines(block, inline))


def _bullets(block: Block, *, joins: bool) -> _Walk:
    """Read the lines under the label of a list."""
    items: list[Item] = []
    wrong: list[Op] = []
    drafts: list[Draft] = []
    first_wrong: Item | None = None
    for line in block.filled():
        text = line.text
        bullet = _BULLET.match(text)
        if bullet:
            items.append(item_at(line, bullet.end(), "-", bullet.start(1)))
            continue
        near = _NEAR_BULLET.match(text) if not RULER.match(text) else None
        indent = len(text) - len(text.lstrip(BLANKS))
        if EMPTY_BULLET.fullmatch(text):
            drafts.append(_empty_item(block, line, indent))
        elif near:
            item = item_at(line, near.end(), near[1], near.start(1))
            wrong.append(Patch(line.number, line.column(near.start(1)), line.column(near.end()), "- "))
            items.append(item)
            first_wrong = first_wrong or item
        elif items and indent and joins and items[-1].line == line.number - 1:
            drafts.append(wrapped(block, line, indent, items[-1].line))
        elif _like_item(text, block.label) and not items:
            item = item_at(line, indent)
            wrong.append(Patch(line.number, item.column, item.column, "- "))
            items.append(item)
            first_wrong = first_wrong or item
        elif first_wrong and not first_wrong.marker and _like_item(text, block.label):
            item = item_at(line, indent)
            wrong.append(Patch(line.number, item.column, item.column, "- "))
            items.append(item)
        else:
            drafts.append(stray(block, line, indent))
    if first_wrong:
        message = f"{len(wrong)} item(s) of {block.label} do not begin with `- `."
        found = snippet(f"{first_wrong.marker} {first_wrong.text}".strip())
        where = first_wrong.line, first_wrong.start
        expected = "`- ` and a blank before each item"
        drafts.append(Draft("ENV213", block.label, *where, message, found, expected, tuple(wrong)))
    return _Walk(items, drafts)


def _like_item(text: str, label: str) -> bool:
    """Say whether a line without a bullet is meant as an item."""
    text = text.strip(BLANKS)
    if RULER.match(text):
        return False
    word = text.split(" (", 1)[0]
    return label == "FAIL_REASONS" or (" " not in word and (label.startswith("GATES") or "/" in word or "." in word))


def _empty_item(block: Block, line: Line, indent: int) -> Draft:
    message = f"An item of {block.label} is empty."
    ops = (Delete(line.number, line.number),)
    where = line.number, line.column(indent)
    return Draft("ENV215", block.label, *where, message, snippet(line.text[indent:]), "`- ` and a value", ops)


def wrapped(block: Block, line: Line, indent: int, above: int) -> Draft:
    """Report an item that runs on in a second line."""
    message = f"An item of {block.label} runs over its line."
    where = line.number, line.column(indent)
    expected = "each item on one line"
    return Draft(
        "ENV212", block.label, *where, message, snippet(line.text[indent:]), expected, (Join(above, line.number),)
    )


def stray(block: Block, line: Line, indent: int) -> Draft:
    """Report a line that is no item."""
    message = f"A line of {block.label} is not an item."
    where = line.number, line.column(indent)
    ops = (Delete(line.number, line.number),)
    return Draft("ENV212", block.label, *where, message, snippet(line.text[indent:]), "only lines `- item`", ops)
