"""Reading one block by the kind of its field."""

import re
from typing import Final

from interlock.envelope.blocks import BLANKS, Block, Gap, Reading, kept_in_place
from interlock.envelope.characters import Line
from interlock.envelope.draft import Delete, Draft, Join, Move, Patch, snippet
from interlock.envelope.labels import closest
from interlock.envelope.lists import read_list, read_reasons
from interlock.envelope.lookalikes import folded, strange
from interlock.envelope.model import FieldText, Item
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.envelope.steps import read_actions

_KEY: Final = re.compile(
    r"[ \t]*+(?>(?:[-*][ \t]++)?)[*_`\"']{0,3}([A-Za-z0-9][A-Za-z0-9_ \-]{0,31}?)[*_`\"']{0,3}[ \t]*+:"
)
_EXACT_KEY: Final = re.compile(rf"[ \t]*+({'|'.join(EVIDENCE_KEYS)}):")
_SINGLE: Final = frozenset({"STATUS", "TASK_ID", "TASK", "ASSIGNED_AGENT", "REPORTS_TO"})
_MAX_WRAPPED: Final = 3
_KEY_RANK: Final = 1


def read_block(block: Block, *, final: bool) -> Reading:
    """Read the values of one block.

    Args:
        block: The label and the lines under it.
        final: Whether no other block follows; what stands after the last value is then text after the envelope.
    """
    if block.label in _SINGLE:
        return _read_single(block)
    if block.label == "EVIDENCE":
        return _read_evidence(block)
    if block.label == "FAIL_REASONS":
        return read_reasons(block)
    if block.label == "OUTPUT":
        return _read_output(block)
    if block.label == "NEXT_ACTIONS":
        return read_actions(block, final=final)
    return read_list(block)


def _read_single(block: Block) -> Reading:
    reading = Reading()
    head, value, start = block.head, block.value, block.value_index
    items: tuple[Item, ...] = ()
    extra = block.filled()
    if value:
        column = head.column(start)
        items = (Item(value, head.number, column, head.column(start + len(value)), "", column),)
    elif extra:
        line = extra.pop(0)
        text = line.text.strip(BLANKS)
        start_index = len(line.text) - len(line.text.lstrip(BLANKS))
        column = line.column(start_index)
        items = (Item(text, line.number, column, line.column(start_index + len(text)), "", column),)
        message = f"The value of {block.label} stands on another line than its label."
        expected = f"the value behind `{block.label}:`"
        ops = (Join(head.number, line.number),)
        reading.drafts.append(Draft("ENV211", block.label, line.number, column, message, snippet(text), expected, ops))
    else:
        reading.gaps.append(Gap(block.label, "empty", head.number, head.column(block.value_at), 0, (block.label,)))
    if extra:
        reading.drafts.append(_surplus(block, extra))
    value_column = head.column(start)
    end = head.column(start + len(value))
    reading.fields[block.label] = FieldText(block.label, block.first, block.last, items, value_column, end)
    return reading


def _surplus(block: Block, extra: list[Line]) -> Draft:
    """Report lines under a field that has one line."""
    first = extra[0]
    if block.label == "TASK" and len(extra) <= _MAX_WRAPPED:
        ops = tuple(Join(block.first, line.number) for line in extra)
    else:
        ops = (Delete(first.number, extra[-1].number),)
    message = f"{block.label} has one line, and more text stands under it."
    found = snippet(first.text.strip(BLANKS))
    expected = f"one line of {block.label}, then the next label"
    return Draft("ENV211", block.label, first.number, first.column(0), message, found, expected, ops)


def _read_output(block: Block) -> Reading:
    reading = Reading()
    head, value, start = block.head, block.value, block.value_index
    items: list[Item] = []
    if value:
        column = head.column(start)
        items.append(Item(head.text[start:], head.number, column, head.column(len(head.text)), "", column))
    items += [Item(line.text, line.number, 1, line.column(len(line.text)), "", 1) for line in block.body]
    while items and not items[-1].text.strip(BLANKS):
        items.pop()
    first = next((index for index, item in enumerate(items) if item.text.strip(BLANKS)), len(items))
    del items[:first]
    if not items:
        reading.gaps.append(Gap("OUTPUT", "empty", block.first, head.column(block.value_at), 0, ("OUTPUT",)))
    value_column = head.column(start)
    end = head.column(start + len(value))
    reading.fields["OUTPUT"] = FieldText("OUTPUT", block.first, block.last, tuple(items), value_column, end)
    return reading


def _read_evidence(block: Block) -> Reading:
    reading = Reading()
    head, value = block.head, block.value
    column, end = head.column(block.value_index), head.column(block.value_index + len(value))
    if value:
        message = "EVIDENCE has a value of its own instead of the four keys."
        ops = (Patch(head.number, head.column(block.value_at), end, ""),)
        expected = "the keys " + ", ".join(f"`{key}:`" for key in EVIDENCE_KEYS) + " on lines of their own"
        reading.drafts.append(Draft("ENV214", "EVIDENCE", head.number, column, message, snippet(value), expected, ops))
    reading.fields["EVIDENCE"] = FieldText("EVIDENCE", block.first, block.last, (), column, end)
    keys = _key_blocks(block, reading)
    for key in keys:
        part = read_list(key)
        reading.fields.update(part.fields)
        reading.drafts += part.drafts
    _order_keys(block, keys, reading)
    return reading


def _key_blocks(block: Block, reading: Reading) -> list[Block]:
    """Split EVIDENCE at its keys and report the keys that it should not have."""
    standing = {match[1] for line in block.body if (match := _EXACT_KEY.match(line.text))}
    keys: list[Block] = []
    refused: list[tuple[Block, str, str]] = []
    current: Block | None = None
    for line in block.body:
        read = folded(line.text)
        match = _KEY.match(read.text)
        if (
            match
            and read.text.lstrip(BLANKS)[:1] in {"-", "*"}
            and match[1].lower() not in set(EVIDENCE_KEYS) - standing
        ):
            match = None
        if match is None:
            if current is not None:
                current.add(line)
            elif line.text.strip(BLANKS):
                reading.drafts.append(_stray_entry(line))
            continue
        key = _meant_key(match[1], standing)
        label = f"EVIDENCE.{key or match[1].strip()}"
        end = read.end(match.end())
        current = Block(label, line, end)
        if not key:
            refused.append((current, "ENV217", f"`{match[1].strip()}` is not a key of EVIDENCE."))
        elif any(other.label == label for other in keys):
            refused.append((current, "ENV218", f"The key `{key}` stands a second time."))
        else:
            standing.add(key)
            keys.append(current)
            if not _EXACT_KEY.match(line.text):
                reading.drafts.append(_misspelt_key(line, end, key))
    expected = "the keys " + ", ".join(f"`{key}`" for key in EVIDENCE_KEYS) + ", each once"
    for other, code, message in refused:
        where = other.first, other.head.column(0)
        ops = (Delete(other.first, other.last),)
        found = snippet(other.head.text.strip(BLANKS))
        advice = "Say it in OUTPUT if it matters." if code == "ENV217" else ""
        reading.drafts.append(Draft(code, other.label, *where, message, found, expected, ops, advice))
    return keys


def _meant_key(written: str, standing: set[str]) -> str:
    word = written.strip().lower().replace("-", "_").replace(" ", "_")
    if word in EVIDENCE_KEYS:
        return word
    return closest(word, [key for key in EVIDENCE_KEYS if key not in standing], 0.75)


def _misspelt_key(line: Line, end: int, key: str) -> Draft:
    indent = len(line.text) - len(line.text.lstrip(BLANKS))
    follows = line.text[end : end + 1]
    mended = f"{key}:" if not follows or follows in BLANKS else f"{key}: "
    ops = (Patch(line.number, line.column(indent), line.column(end), mended),)
    written = line.text[:end]
    message = f"The key `{key}` is not written as the protocol has it.{strange(written)}"
    found = snippet(written.strip(BLANKS))
    field = f"EVIDENCE.{key}"
    return Draft("ENV220", field, line.number, line.column(indent), message, found, f"`{key}:`", ops)


def _stray_entry(line: Line) -> Draft:
    message = "An entry stands in EVIDENCE before any key."
    expected = "each entry under one of the four keys"
    found = snippet(line.text.strip(BLANKS))
    ops = (Delete(line.number, line.number),)
    advice = "Put the path under the key that it belongs to."
    return Draft("ENV212", "EVIDENCE", line.number, line.column(0), message, found, expected, ops, advice)


def _order_keys(block: Block, keys: list[Block], reading: Reading) -> None:
    """Report keys that are out of order, and leave a gap for each run of keys that is missing."""
    ranks = [EVIDENCE_KEYS.index(key.label.partition(".")[2]) for key in keys]
    stay = kept_in_place(ranks, [1 + len(key.body) for key in keys])
    kept = {ranks[position]: keys[position] for position in stay}
    found = dict(zip(ranks, keys, strict=True))
    runs: dict[int, list[int]] = {}
    for rank in range(len(EVIDENCE_KEYS)):
        if rank in kept:
            continue
        after = max((kept[other].last for other in kept if other < rank), default=block.first)
        key = found.get(rank)
        if key is None:
            runs.setdefault(after, []).append(rank)
            continue
        name = EVIDENCE_KEYS[rank]
        message = f"The key `{name}` is out of order."
        expected = f"`{name}` " + (f"after `{EVIDENCE_KEYS[rank - 1]}`" if rank else "first")
        ops = (Move(key.first, key.last, after, _KEY_RANK + rank),)
        where = key.first, key.head.column(0)
        found_text = snippet(key.head.text.strip(BLANKS))
        reading.drafts.append(Draft("ENV219", f"EVIDENCE.{name}", *where, message, found_text, expected, ops))
    for after, missing in runs.items():
        labels = tuple(f"EVIDENCE.{EVIDENCE_KEYS[rank]}" for rank in missing)
        field = labels[0] if len(labels) == 1 else "EVIDENCE"
        reading.gaps.append(Gap(field, "missing", after, 1, _KEY_RANK + missing[0], labels))
