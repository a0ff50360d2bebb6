"""Reading one block by the kind of its field: one value, a list, the reasons of FAIL_REASONS, or numbered steps."""

import re
from collections.abc import Sequence
from typing import Final

from interlock.core.text import closest
from interlock.envelope.blocks import BLANKS, Block, Gap, draft_at, indent, misplaced
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Draft, Join, Move, Op, Patch, snippet
from interlock.envelope.lookalikes import folded, non_ascii, plain
from interlock.envelope.model import Item
from interlock.envelope.protocol import EVIDENCE_KEYS

_BULLET: Final = re.compile(r"[ \t]*+(-)[ \t]++(?=[^ \t])")
_NEAR_BULLET: Final = re.compile(
    r"[ \t]*+([*+\u2022\u2023\u25e6\u25cf\u25aa\u00b7\u2013\u2014]|-(?!-)|\(?[0-9]{1,9}[.)])[ \t]*+(?=[^ \t])"
)
EMPTY_BULLET: Final = re.compile(r"[ \t]*+(?:[-*+\u2022]|[0-9]{1,9}[.)])[ \t]*+")
_INLINE: Final = re.compile(r"\[[ \t]*+(?:[^ \t,\[\]][^,\[\]]*+(?>(?:,[ \t]*+[^ \t,\[\]][^,\[\]]*+)*))?\]")
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
            message = f"FAIL_REASONS says that there are no failures in words of its own.{non_ascii(value)}"
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
        message = f"{block.label} says that it is empty in words of its own.{non_ascii(value)}"
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
    above = block.first
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
            report_stray(block, line, above)
        above = line.number
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


def report_stray(block: Block, line: Line, above: int, advice: str = "") -> None:
    """Report a line that is no item, with those right above it; `above` is the number of the line before it."""
    last = block.drafts[-1] if block.drafts and block.drafts[-1].code == "ENV212" else None
    if last is not None and isinstance(op := last.ops[0], Delete) and op.last == above:
        message = f"Lines of {block.label} are not items."
        block.drafts[-1] = last._replace(message=message, ops=(Delete(op.first, line.number),))
        return
    message = f"A line of {block.label} is not an item."
    ops = (Delete(line.number, line.number),)
    block.report(line, indent(line.text), "ENV212", message, "only lines `- item`", ops, advice)


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
            report_stray(block, line, lines[index - 1].number if index else block.first)
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


_KEY: Final = re.compile(
    r"[ \t]*+(?>(?:[-*][ \t]++)?)[*_`\"']{0,3}([A-Za-z0-9][A-Za-z0-9_ \-]{0,31}?)[*_`\"']{0,3}[ \t]*+:"
)
_EXACT_KEY: Final = re.compile(rf"[ \t]*+({'|'.join(EVIDENCE_KEYS)}):")
_SINGLE: Final = frozenset({"STATUS", "TASK_ID", "TASK", "ASSIGNED_AGENT", "REPORTS_TO"})
_MAX_WRAPPED: Final = 3
_KEY_RANK: Final = 1


def read_block(block: Block, *, final: bool) -> None:
    """Read the values of one block. After the `final` block, what follows the last value is text after the envelope."""
    if block.label in _SINGLE:
        _read_single(block)
    elif block.label == "EVIDENCE":
        _read_evidence(block)
    elif block.label == "FAIL_REASONS":
        read_reasons(block)
    elif block.label == "OUTPUT":
        _read_output(block)
    elif block.label == "NEXT_ACTIONS":
        read_actions(block, final=final)
    else:
        read_list(block)


def _read_single(block: Block) -> None:
    items: tuple[Item, ...] = ()
    extra = block.filled()
    if block.value:
        items = (item_at(block.head, block.value_index),)
    elif extra:
        line = extra.pop(0)
        items = (item_at(line, indent(line.text)),)
        message = f"The value of {block.label} is on another line than its label."
        expected = f"the value behind `{block.label}:`"
        ops = (Join(block.first, line.number),)
        block.report(line, indent(line.text), "ENV211", message, expected, ops, found=items[0].text)
    else:
        block.report_empty()
    if extra:
        _report_surplus(block, extra)
    block.keep(items, last=block.last)


def _report_surplus(block: Block, extra: list[Line]) -> None:
    first = extra[0]
    if block.label == "TASK" and len(extra) <= _MAX_WRAPPED:
        ops = tuple(Join(block.first, line.number) for line in extra)
    else:
        ops = (Delete(first.number, extra[-1].number),)
    message = f"{block.label} has one line, and more text follows under it."
    expected = f"one line of {block.label}, then the next label"
    block.report(first, 0, "ENV211", message, expected, ops, found=first.text.strip(BLANKS))


def _read_output(block: Block) -> None:
    head = block.head
    items: list[Item] = []
    if block.value:
        column = head.column(block.value_index)
        text = head.text[block.value_index :]
        items.append(Item(text, head.number, column, head.column(len(head.text)), "", column))
    items += [Item(line.text, line.number, 1, line.column(len(line.text)), "", 1) for line in block.body]
    filled = [index for index, item in enumerate(items) if item.text.strip(BLANKS)]
    if not filled:
        block.report_empty()
    block.keep(items[filled[0] : filled[-1] + 1] if filled else (), last=block.last)


def _read_evidence(block: Block) -> None:
    if block.value:
        message = "EVIDENCE has a value of its own instead of the four keys."
        expected = "the keys " + ", ".join(f"`{key}:`" for key in EVIDENCE_KEYS) + " on lines of their own"
        block.report_value("ENV214", message, expected, (block.patch_value("", blanks=True),))
    block.keep((), last=block.last)
    keys = _key_blocks(block)
    for key in keys:
        read_list(key)
        block.fields |= key.fields
        block.drafts += key.drafts
    _order_keys(block, keys)


def _key_blocks(block: Block) -> list[Block]:
    """Split EVIDENCE at its keys and report the keys that it should not have."""
    exact = {match[1] for line in block.body if (match := _EXACT_KEY.match(line.text))}
    keys: list[Block] = []
    refused: list[tuple[Block, str, str]] = []
    current: Block | None = None
    above = block.first
    for line in block.filled():
        read = folded(line.text)
        match = _KEY.match(read.text)
        if match and read.text.lstrip(BLANKS)[:1] in {"-", "*"} and match[1].lower() not in set(EVIDENCE_KEYS) - exact:
            match = None
        if match is None:
            if current is not None:
                current.add(line)
            else:
                report_stray(block, line, above, "Put a path under the key that it belongs to.")
            above = line.number
            continue
        key = _meant_key(match[1], exact)
        label = f"EVIDENCE.{key or match[1].strip()}"
        current = Block(label, line, read.end(match.end()))
        if not key:
            refused.append((current, "ENV217", f"`{match[1].strip()}` is not a key of EVIDENCE."))
        elif any(other.label == label for other in keys):
            refused.append((current, "ENV218", f"The key `{key}` occurs a second time."))
        else:
            exact.add(key)
            keys.append(current)
            if not _EXACT_KEY.match(line.text):
                _report_misspelt(current, key)
    expected = "the keys " + ", ".join(f"`{key}`" for key in EVIDENCE_KEYS) + ", each once"
    for other, code, message in refused:
        ops = (Delete(other.first, other.last),)
        advice = "Say it in OUTPUT if it matters." if code == "ENV217" else ""
        other.report(other.head, 0, code, message, expected, ops, advice, found=other.head.text.strip(BLANKS))
        block.drafts += other.drafts
    return keys


def _meant_key(written: str, exact: set[str]) -> str:
    word = written.strip().lower().replace("-", "_").replace(" ", "_")
    if word in EVIDENCE_KEYS:
        return word
    return closest(word, [key for key in EVIDENCE_KEYS if key not in exact], 0.75)


def _report_misspelt(block: Block, key: str) -> None:
    line, end = block.head, block.value_at
    start, follows = indent(line.text), line.text[end : end + 1]
    correct = f"{key}:" if not follows or follows in BLANKS else f"{key}: "
    ops = (Patch(line.number, line.column(start), line.column(end), correct),)
    written = line.text[:end]
    message = f"The key `{key}` is not written as the protocol has it.{non_ascii(written)}"
    block.report(line, start, "ENV220", message, f"`{key}:`", ops, found=written.strip(BLANKS))


def _order_keys(block: Block, keys: list[Block]) -> None:
    """Report keys that are out of order, and leave a gap for each run of keys that is missing."""
    runs: dict[int, list[int]] = {}
    ranks = [EVIDENCE_KEYS.index(key.label.partition(".")[2]) for key in keys]
    for rank, key, after in misplaced(keys, ranks, len(EVIDENCE_KEYS), block.first):
        if key is None:
            runs.setdefault(after, []).append(rank)
            continue
        name = EVIDENCE_KEYS[rank]
        message = f"The key `{name}` is out of order."
        expected = f"`{name}` " + (f"after `{EVIDENCE_KEYS[rank - 1]}`" if rank else "first")
        ops = (Move(key.first, key.last, after, _KEY_RANK + rank),)
        text = key.head.text.strip(BLANKS)
        block.drafts.append(draft_at(key.head, 0, "ENV219", key.label, message, expected, ops, found=text))
    for after, missing in runs.items():
        labels = tuple(f"EVIDENCE.{EVIDENCE_KEYS[rank]}" for rank in missing)
        field = labels[0] if len(labels) == 1 else "EVIDENCE"
        block.gaps.append(Gap(field, "missing", after, 1, _KEY_RANK + missing[0], labels))
