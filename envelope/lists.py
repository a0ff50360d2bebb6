"""Reading the fields that hold lists: `- item` lines, `[a, b]`, reasons and numbered steps."""

import re
from typing import Final, NamedTuple

from interlock.envelope.blocks import BLANKS, Block, Gap, Reading
from interlock.envelope.characters import Line
from interlock.envelope.mend import Delete, Draft, Join, Op, Patch, snippet
from interlock.envelope.model import FieldText, Item

_BULLET: Final = re.compile(r"[ \t]*+(-)[ \t]++(?=[^ \t])")
_NEAR_BULLET: Final = re.compile(
    r"[ \t]*+([*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|-(?!-)|\(?[0-9]{1,9}[.)])[ \t]*+(?=[^ \t])"
)
_EMPTY_BULLET: Final = re.compile(r"[ \t]*+(?:[-*+\u2022]|[0-9]{1,9}[.)])[ \t]*+")
_STEP: Final = re.compile(r"[ \t]*+([0-9]++\.)[ \t]++(?=[^ \t])")
_NEAR_STEP: Final = re.compile(
    r"[ \t]*+([-*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|\(?[0-9]{1,9}[.):]?|[a-z][.)])"
    r"(?:(?<=[.):\u2022])|[ \t])[ \t]*+(?=[^ \t])"
)
_INLINE: Final = re.compile(
    r"\[[ \t]*+(?:[^ \t,\[\]][^,\[\]]*+(?:,[ \t]*+[^ \t,\[\]][^,\[\]]*+)*+)?\]",
)
_NOTHING: Final = frozenset({"none", "n/a", "na", "nil", "null", "empty", "-", "{}", "()", "nothing", "(none)", "no"})
_RULER: Final = re.compile(r"[ \t]*+(?:`{3,}|~{3,}|-{3,}|={3,}|\*{3,}|_{3,}|#|>)")


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
    _keep(block, reading, (*inline, *walk.items), inline=block.value.startswith("[") and not walk.items)
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
    elif value.lower().strip(".[] ") in _NOTHING | {""} and value:
        ops = (Patch(head.number, none.column, none.end, "" if walk.items else "NONE"),)
        message = "FAIL_REASONS says that there are no failures in words of its own."
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
    _keep(block, reading, tuple(items))
    return reading


def read_actions(block: Block, *, final: bool) -> Reading:
    """Read NEXT_ACTIONS: `NONE`, or numbered lines."""
    reading = Reading()
    value, start, head = block.value, block.value_index, block.head
    items: list[Item] = []
    ops: list[Op] = []
    lines = block.filled()
    if value:
        item = item_at(head, start)
        if value == "NONE" and not lines:
            items.append(item)
        elif value.lower().strip(".[] ") in _NOTHING | {""}:
            ops.append(Patch(head.number, head.column(block.value_at), item.end, "" if _steps(lines) else " NONE"))
            items += [] if _steps(lines) else [item._replace(text="NONE")]
        else:
            step = _STEP.match(head.text, start)
            items.append(item_at(head, step.end(), step[1], start) if step else item)
            ops.append(Patch(head.number, head.column(block.value_at), head.column(start), "\n" if step else "\n1. "))
    rest = _numbered(lines, items, ops, reading)
    if ops:
        line, column = (items[0].line, items[0].start) if items else (head.number, head.column(start))
        message = "The steps of NEXT_ACTIONS are not written as numbered lines."
        found = snippet(value or items[0].marker + " " + items[0].text)
        expected = "one line `1. …` for each step, or `NONE`"
        line = min([line, *(op.line for op in ops if isinstance(op, Patch))])
        reading.drafts.append(Draft("ENV221", "NEXT_ACTIONS", line, column, message, found, expected, tuple(ops)))
    if rest:
        reading.drafts.append(_after(rest, final=final))
    if not items:
        reading.gaps.append(
            Gap("NEXT_ACTIONS", "empty", head.number, head.column(block.value_at), 0, ("NEXT_ACTIONS",))
        )
    _keep(block, reading, tuple(items))
    return reading


def _keep(block: Block, reading: Reading, items: tuple[Item, ...], *, inline: bool = False) -> None:
    start = block.value_index
    column, end = block.head.column(start), block.head.column(start + len(block.value))
    last = max([block.first, *(item.line for item in items)]) if items else block.first
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
    if value.lower().strip(".") in _NOTHING:
        ops: tuple[Op, ...] = (Patch(head.number, head.column(start), head.column(end), "[]"),)
        message = f"{block.label} says that it is empty in words of its own."
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
        near = _NEAR_BULLET.match(text) if not _RULER.match(text) else None
        indent = len(text) - len(text.lstrip(BLANKS))
        if _EMPTY_BULLET.fullmatch(text):
            drafts.append(_empty_item(block, line, indent))
        elif near:
            item = item_at(line, near.end(), near[1], near.start(1))
            wrong.append(Patch(line.number, line.column(near.start(1)), line.column(near.end()), "- "))
            items.append(item)
            first_wrong = first_wrong or item
        elif items and indent and joins and items[-1].line == line.number - 1:
            drafts.append(_wrapped(block, line, indent, items[-1].line))
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
            drafts.append(_stray(block, line, indent))
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
    if _RULER.match(text):
        return False
    word = text.split(" (", 1)[0]
    return label == "FAIL_REASONS" or (" " not in word and (label.startswith("GATES") or "/" in word or "." in word))


def _empty_item(block: Block, line: Line, indent: int) -> Draft:
    message = f"An item of {block.label} is empty."
    ops = (Delete(line.number, line.number),)
    where = line.number, line.column(indent)
    return Draft("ENV215", block.label, *where, message, snippet(line.text[indent:]), "`- ` and a value", ops)


def _wrapped(block: Block, line: Line, indent: int, above: int) -> Draft:
    message = f"An item of {block.label} runs over its line."
    where = line.number, line.column(indent)
    expected = "each item on one line"
    return Draft(
        "ENV212", block.label, *where, message, snippet(line.text[indent:]), expected, (Join(above, line.number),)
    )


def _stray(block: Block, line: Line, indent: int) -> Draft:
    message = f"A line of {block.label} is not an item."
    where = line.number, line.column(indent)
    ops = (Delete(line.number, line.number),)
    return Draft("ENV212", block.label, *where, message, snippet(line.text[indent:]), "only lines `- item`", ops)


def _steps(lines: list[Line]) -> bool:
    return any(_STEP.match(line.text) or _NEAR_STEP.match(line.text) for line in lines)


def _numbered(lines: list[Line], items: list[Item], ops: list[Op], reading: Reading) -> list[Line]:
    """Read the lines under NEXT_ACTIONS into items; return the lines after the last step."""
    last_step = max((i for i, line in enumerate(lines) if _STEP.match(line.text)), default=-1)
    for index, line in enumerate(lines):
        text = line.text
        indent = len(text) - len(text.lstrip(BLANKS))
        step = _STEP.match(text)
        near = None if step or _RULER.match(text) else _NEAR_STEP.match(text)
        if step:
            items.append(item_at(line, step.end(), step[1], step.start(1)))
        elif _EMPTY_BULLET.fullmatch(text):
            reading.drafts.append(_empty_step(line, indent))
        elif near:
            items.append(item_at(line, near.end(), near[1], near.start(1)))
            at = line.column(near.start(1))
            ops.append(Patch(line.number, at, line.column(near.end()), f"{len(items)}. "))
        elif items and indent and items[-1].line == line.number - 1 and not _RULER.match(text):
            draft = _wrapped(Block("NEXT_ACTIONS", line, 0), line, indent, items[-1].line)
            reading.drafts.append(draft)
        elif last_step < 0 and not _RULER.match(text) and (not items or not items[-1].marker):
            item = item_at(line, indent)
            items.append(item)
            ops.append(Patch(line.number, item.column, item.column, f"{len(items)}. "))
        elif index < last_step:
            reading.drafts.append(_stray(Block("NEXT_ACTIONS", line, 0), line, indent))
        else:
            return lines[index:]
    return []


def _empty_step(line: Line, indent: int) -> Draft:
    message = "A step of NEXT_ACTIONS is empty."
    where = line.number, line.column(indent)
    ops = (Delete(line.number, line.number),)
    return Draft("ENV215", "NEXT_ACTIONS", *where, message, snippet(line.text[indent:]), "`1. ` and a step", ops)


def _after(rest: list[Line], *, final: bool) -> Draft:
    first = rest[0]
    ops = (Delete(first.number, rest[-1].number),)
    found = snippet(first.text.strip(BLANKS))
    where = first.number, first.column(0)
    if final:
        message = "Text stands after the last step of NEXT_ACTIONS."
        return Draft("ENV202", "", *where, message, found, "nothing after the last step", ops)
    message = "Lines of NEXT_ACTIONS are not steps."
    return Draft("ENV212", "NEXT_ACTIONS", *where, message, found, "only numbered lines", ops)
