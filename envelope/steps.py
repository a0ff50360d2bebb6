"""Reading NEXT_ACTIONS: numbered steps, or NONE, and what follows the last step."""

import re
from typing import Final

from interlock.envelope.blocks import BLANKS, Block, Gap, Reading
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Draft, Op, Patch, snippet
from interlock.envelope.lists import EMPTY_BULLET, RULER, item_at, keep, says_nothing, stray, wrapped
from interlock.envelope.model import Item

_STEP: Final = re.compile(r"[ \t]*+([0-9]++\.)[ \t]++(?=[^ \t])")
_NEAR_STEP: Final = re.compile(
    r"[ \t]*+([-*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|\(?[0-9]{1,9}[.):]?|[a-z][.)])"
    r"(?:(?<=[.):\u2022])|[ \t])[ \t]*+(?=[^ \t])"
)


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
        elif says_nothing(value):
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
    keep(block, reading, tuple(items))
    return reading


def _steps(lines: list[Line]) -> bool:
    return any(_STEP.match(line.text) or _NEAR_STEP.match(line.text) for line in lines)


def _numbered(lines: list[Line], items: list[Item], ops: list[Op], reading: Reading) -> list[Line]:
    """Read the lines under NEXT_ACTIONS into items; return the lines after the last step."""
    last_step = max((i for i, line in enumerate(lines) if _STEP.match(line.text)), default=-1)
    for index, line in enumerate(lines):
        text = line.text
        indent = len(text) - len(text.lstrip(BLANKS))
        step = _STEP.match(text)
        near = None if step or RULER.match(text) else _NEAR_STEP.match(text)
        if step:
            items.append(item_at(line, step.end(), step[1], step.start(1)))
        elif EMPTY_BULLET.fullmatch(text):
            reading.drafts.append(_empty_step(line, indent))
        elif near:
            items.append(item_at(line, near.end(), near[1], near.start(1)))
            at = line.column(near.start(1))
            ops.append(Patch(line.number, at, line.column(near.end()), f"{len(items)}. "))
        elif items and indent and items[-1].line == line.number - 1 and not RULER.match(text):
            draft = wrapped(Block("NEXT_ACTIONS", line, 0), line, indent, items[-1].line)
            reading.drafts.append(draft)
        elif last_step < 0 and not RULER.match(text) and (not items or not items[-1].marker):
            item = item_at(line, indent)
            items.append(item)
            ops.append(Patch(line.number, item.column, item.column, f"{len(items)}. "))
        elif index < last_step:
            reading.drafts.append(stray(Block("NEXT_ACTIONS", line, 0), line, indent))
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
