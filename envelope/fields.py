"""Reading one block by the kind of its field."""

import re
from typing import Final

from interlock.core.text import closest
from interlock.envelope.blocks import BLANKS, Block, Gap, draft_at, indent, misplaced
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Join, Move, Patch
from interlock.envelope.lists import item_at, read_list, read_reasons
from interlock.envelope.lookalikes import folded, strange
from interlock.envelope.model import Item
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.envelope.steps import read_actions

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
    for line in block.body:
        read = folded(line.text)
        match = _KEY.match(read.text)
        if match and read.text.lstrip(BLANKS)[:1] in {"-", "*"} and match[1].lower() not in set(EVIDENCE_KEYS) - exact:
            match = None
        if match is None:
            if current is not None:
                current.add(line)
            elif line.text.strip(BLANKS):
                _report_stray_entry(block, line)
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


def _report_stray_entry(block: Block, line: Line) -> None:
    message = "An entry of EVIDENCE comes before any key."
    expected = "each entry under one of the four keys"
    ops = (Delete(line.number, line.number),)
    advice = "Put the path under the key that it belongs to."
    block.report(line, 0, "ENV212", message, expected, ops, advice, found=line.text.strip(BLANKS))


def _report_misspelt(block: Block, key: str) -> None:
    line, end = block.head, block.value_at
    start, follows = indent(line.text), line.text[end : end + 1]
    correct = f"{key}:" if not follows or follows in BLANKS else f"{key}: "
    ops = (Patch(line.number, line.column(start), line.column(end), correct),)
    written = line.text[:end]
    message = f"The key `{key}` is not written as the protocol has it.{strange(written)}"
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
