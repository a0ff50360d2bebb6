"""Reading the fields that hold lists of items: `- item` lines, `[a, b]`, and the reasons of FAIL_REASONS."""

import re
from collections.abc import Sequence
from typing import Final

from interlock.envelope.blocks import BLANKS, Block, indent
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Join, Op, Patch
from interlock.envelope.lookalikes import plain, strange
from interlock.envelope.model import Item

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
    """Return whether a value means that there is none, in whatever words."""
    return plain(text).lower().strip(".[]- ") in _NOTHING


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


def read_list(block: Block) -> None:
    """Read a list field or one key of EVIDENCE."""
    inline = _inline(block)
    items = _bullets(block, joins=block.label == "INPUTS_USED")
    if block.value and items:
        message = f"{block.label} has a list on its line and another under it."
        block.report_value("ENV214", message, "either `[a, b]` or `- ` lines", _as_lines(block, inline))
    block.keep((*inline, *items), inline=block.value.startswith("[") and not items)


def read_reasons(block: Block) -> None:
    """Read FAIL_REASONS: `NONE`, or bullets."""
    value, head, start = block.value, block.head, block.value_index
    under = _bullets(block, joins=True)
    items: list[Item] = []
    if value == "NONE" and under:
        ops = (block.patch_value("", blanks=True),)
        block.report_value("ENV222", "FAIL_REASONS says NONE and gives reasons.", "either `NONE` or reasons", ops)
    elif value and says_nothing(value):
        items = [] if under else [item_at(head, start)._replace(text="NONE")]
        if value != "NONE":
            message = f"FAIL_REASONS says that there are no failures in words of its own.{strange(value)}"
            ops = (block.patch_value("" if under else "NONE"),)
            block.report_value("ENV222", message, "`FAIL_REASONS: NONE`", ops)
    elif value:
        items = [item_at(head, start)]
        ops = (Patch(head.number, head.column(block.value_at), head.column(start), "\n- "),)
        expected = "`NONE`, or one `- ` line for each reason"
        block.report_value("ENV222", "A reason is on the label's line.", expected, ops)
    items += under
    if not items:
        block.report_empty()
    block.keep(items)


def _inline(block: Block) -> tuple[Item, ...]:
    value, start, head = block.value, block.value_index, block.head
    if not value:
        return ()
    end = start + len(value)
    if _INLINE.fullmatch(value):
        return _split(head, start + 1, end - 1)
    expected = "`[]`, `[a, b]`, or one `- ` line for each item"
    if says_nothing(value):
        message = f"{block.label} says that it is empty in words of its own.{strange(value)}"
        block.report_value("ENV214", message, expected, (block.patch_value("[]"),))
        return ()
    opened, closed = value.startswith("["), value.endswith("]") and value.startswith("[")
    items = _split(head, start + opened, end - closed)
    inner = value[opened : len(value) - closed]
    if "[" in inner or "]" in inner:
        ops = _as_lines(block, items)
    else:
        ops = _without_empty(head, start + opened, end - closed)
        ops = (*ops, *(() if opened else (Patch(head.number, head.column(start), head.column(start), "["),)))
        ops = (*ops, *(() if closed else (Patch(head.number, head.column(end), head.column(end), "]"),)))
    block.report_value("ENV214", f"The list behind {block.label} is not written as a list.", expected, ops)
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


def _without_empty(head: Line, start: int, end: int) -> tuple[Op, ...]:
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


def _as_lines(block: Block, items: Sequence[Item]) -> tuple[Op, ...]:
    """Return patches that turn a list on the label's line into bullet lines."""
    ops: list[Op] = []
    at = block.head.column(block.value_at)
    for item in items:
        ops.append(Patch(block.first, at, item.column, "\n- "))
        at = item.end
    return (*ops, Patch(block.first, at, block.patch_value("").end, ""))


def _bullets(block: Block, *, joins: bool) -> list[Item]:
    items: list[Item] = []
    wrong: list[tuple[Item, Line, Patch]] = []
    for line in block.filled():
        text, start = line.text, indent(line.text)
        bullet = _BULLET.match(text)
        near = _NEAR_BULLET.match(text) if not bullet and not RULER.match(text) else None
        bare = not wrong[0][0].marker if wrong else not items
        if bullet:
            items.append(item_at(line, bullet.end(), "-", bullet.start(1)))
        elif EMPTY_BULLET.fullmatch(text):
            ops = (Delete(line.number, line.number),)
            block.report(line, start, "ENV215", f"An item of {block.label} is empty.", "`- ` and a value", ops)
        elif near:
            items.append(item_at(line, near.end(), near[1], near.start(1)))
            patch = Patch(line.number, line.column(near.start(1)), line.column(near.end()), "- ")
            wrong.append((items[-1], line, patch))
        elif items and start and joins and items[-1].line == line.number - 1:
            report_wrapped(block, line, items[-1].line)
        elif bare and _like_item(text, block.label):
            items.append(item_at(line, start))
            wrong.append((items[-1], line, Patch(line.number, line.column(start), line.column(start), "- ")))
        else:
            report_stray(block, line)
    if wrong:
        first, line, _ = wrong[0]
        message = f"{len(wrong)} item(s) of {block.label} do not begin with `- `."
        found = f"{first.marker} {first.text}".strip()
        expected = "`- ` and a blank before each item"
        at = indent(line.text)
        block.report(line, at, "ENV213", message, expected, [patch for *_, patch in wrong], found=found)
    return items


def _like_item(text: str, label: str) -> bool:
    """Return whether a line without a bullet is meant as an item."""
    text = text.strip(BLANKS)
    if RULER.match(text):
        return False
    word = text.split(" (", 1)[0]
    return label == "FAIL_REASONS" or (" " not in word and (label.startswith("GATES") or "/" in word or "." in word))


def report_wrapped(block: Block, line: Line, above: int) -> None:
    """Report an item that runs on in a second line."""
    message = f"An item of {block.label} runs over its line."
    ops = (Join(above, line.number),)
    block.report(line, indent(line.text), "ENV212", message, "each item on one line", ops)


def report_stray(block: Block, line: Line) -> None:
    """Report a line that is no item."""
    message = f"A line of {block.label} is not an item."
    ops = (Delete(line.number, line.number),)
    block.report(line, indent(line.text), "ENV212", message, "only lines `- item`", ops)
