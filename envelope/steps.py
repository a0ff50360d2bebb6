"""Reading NEXT_ACTIONS: numbered steps, or NONE, and what follows the last step."""

import re
from typing import Final

from interlock.envelope.blocks import BLANKS, Block, draft_at, indent
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Draft, Patch, snippet
from interlock.envelope.lists import EMPTY_BULLET, RULER, item_at, report_stray, report_wrapped, says_nothing
from interlock.envelope.model import Item

_STEP: Final = re.compile(r"[ \t]*+([0-9]++\.)[ \t]++(?=[^ \t])")
_NEAR_STEP: Final = re.compile(
    r"[ \t]*+([-*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|\(?[0-9]{1,9}[.):]?|[a-z][.)])"
    r"(?:(?<=[.):\u2022])|[ \t])[ \t]*+(?=[^ \t])"
)


def read_actions(block: Block, *, final: bool) -> None:
    """Read NEXT_ACTIONS: `NONE`, or numbered lines."""
    value, start, head = block.value, block.value_index, block.head
    items: list[Item] = []
    ops: list[Patch] = []
    lines = block.filled()
    if value:
        item = item_at(head, start)
        step = _STEP.match(head.text, start)
        if value == "NONE" and not lines:
            items.append(item)
        elif says_nothing(value):
            steps = any(_STEP.match(line.text) or _NEAR_STEP.match(line.text) for line in lines)
            ops.append(block.patch_value("" if steps else " NONE", blanks=True))
            items += [] if steps else [item._replace(text="NONE")]
        else:
            items.append(item_at(head, step.end(), step[1], start) if step else item)
            ops.append(Patch(head.number, head.column(block.value_at), head.column(start), "\n" if step else "\n1. "))
    rest = _numbered(block, lines, items, ops)
    if ops:
        line, column = (items[0].line, items[0].start) if items else (head.number, head.column(start))
        message = "The steps of NEXT_ACTIONS are not written as numbered lines."
        found = snippet(value or items[0].marker + " " + items[0].text)
        expected = "one line `1. …` for each step, or `NONE`"
        line = min([line, *(op.line for op in ops)])
        block.drafts.append(Draft("ENV221", "NEXT_ACTIONS", line, column, message, found, expected, tuple(ops)))
    if rest:
        _report_rest(block, rest, final=final)
    if not items:
        block.report_empty()
    block.keep(items)


def _numbered(block: Block, lines: list[Line], items: list[Item], ops: list[Patch]) -> list[Line]:
    """Read the lines under NEXT_ACTIONS into items; return the lines after the last step."""
    last_step = max((i for i, line in enumerate(lines) if _STEP.match(line.text)), default=-1)
    for index, line in enumerate(lines):
        text, start = line.text, indent(line.text)
        step = _STEP.match(text)
        near = None if step or RULER.match(text) else _NEAR_STEP.match(text)
        if step:
            items.append(item_at(line, step.end(), step[1], step.start(1)))
        elif EMPTY_BULLET.fullmatch(text):
            ops_here = (Delete(line.number, line.number),)
            block.report(line, start, "ENV215", "A step of NEXT_ACTIONS is empty.", "`1. ` and a step", ops_here)
        elif near:
            items.append(item_at(line, near.end(), near[1], near.start(1)))
            at = line.column(near.start(1))
            ops.append(Patch(line.number, at, line.column(near.end()), f"{len(items)}. "))
        elif items and start and items[-1].line == line.number - 1 and not RULER.match(text):
            report_wrapped(block, line, items[-1].line)
        elif last_step < 0 and not RULER.match(text) and (not items or not items[-1].marker):
            items.append(item_at(line, start))
            ops.append(Patch(line.number, line.column(start), line.column(start), f"{len(items)}. "))
        elif index < last_step:
            report_stray(block, line)
        else:
            return lines[index:]
    return []


def _report_rest(block: Block, rest: list[Line], *, final: bool) -> None:
    first = rest[0]
    ops = (Delete(first.number, rest[-1].number),)
    found = first.text.strip(BLANKS)
    if final:
        message = "There is text after the last step of NEXT_ACTIONS."
        expected = "nothing after the last step"
        block.drafts.append(draft_at(first, 0, "ENV202", "", message, expected, ops, found=found))
    else:
        block.report(
            first, 0, "ENV212", "Lines of NEXT_ACTIONS are not steps.", "only numbered lines", ops, found=found
        )
