"""Extraction: find the one envelope inside a message that wraps it in prose, a heading or code fences."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from interlock.envelope.blocks import BLANKS
from interlock.envelope.characters import Line
from interlock.envelope.labels import find_label, fold
from interlock.envelope.mend import Draft, snippet

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)")
_STATUS: Final = re.compile(r"STATUS[ \t]*:")
_TASK_ID: Final = re.compile(r"TASK_ID[ \t]*:")
_OUTPUT: Final = re.compile(r"OUTPUT[ \t]*:")
_ACTIONS: Final = re.compile(r"NEXT_ACTIONS[ \t]*:")
_STEP: Final = re.compile(r"[ \t]*[0-9]+\.[ \t]")
_LOOK_AHEAD: Final = 3


class Extract(NamedTuple):
    """The lines of one envelope.

    Args:
        lines: The lines that are left, with their numbers in the text as given.
        normalised: What was left out, one sentence each.
        drafts: Why nothing, or not one thing, could be extracted.
    """

    lines: tuple[Line, ...]
    normalised: tuple[str, ...] = ()
    drafts: tuple[Draft, ...] = ()


def extract(lines: Sequence[Line]) -> Extract:
    """Find the one envelope in a message.

    Args:
        lines: The lines of the whole message.

    Returns:
        The lines to read. With two candidates there are none; with no candidate they are all there, for the
        tolerant reading to explain.
    """
    starts = _starts(lines)
    if len(starts) > 1:
        second = lines[starts[1]]
        places = ", ".join(str(lines[start].number) for start in starts[:5])
        message = f"The message holds {len(starts)} envelopes (they begin in lines {places})."
        draft = Draft("ENV224", "", second.number, 1, message, snippet(second.text), "exactly one envelope")
        return Extract((), (), (draft,))
    if not starts:
        return Extract(tuple(lines))
    return _cut(lines, starts[0])


def _starts(lines: Sequence[Line]) -> list[int]:
    """Return the indexes at which an envelope begins: STATUS with TASK_ID soon after it, else the first STATUS."""
    status = [index for index, line in enumerate(lines) if _STATUS.match(line.text)]
    whole = [i for i in status if any(_TASK_ID.match(line.text) for line in lines[i + 1 : i + 1 + _LOOK_AHEAD])]
    if whole or status:
        return whole or status[:1]
    for index, line in enumerate(lines):
        label = find_label(fold(line.text), ()) if ":" in line.text[:40] else None
        if label and label.label in {"STATUS", "TASK_ID"}:
            return [index]
    return []


def _fence(line: Line) -> tuple[str, bool] | None:
    """Return the marks of a fence line and whether it can close one."""
    match = _FENCE.fullmatch(line.text)
    return (match[1], not match[2].strip(BLANKS)) if match else None


def _cut(lines: Sequence[Line], start: int) -> Extract:
    dropped: dict[int, str] = {}
    opener = next((i for i in range(start - 1, -1, -1) if lines[i].text.strip(BLANKS)), None)
    fenced = opener is not None and _fence(lines[opener]) is not None
    for index in range(start):
        dropped[index] = "text before the envelope"
    if fenced and opener is not None:
        dropped[opener] = "a code fence"
    output = next((i for i in range(start, len(lines)) if _OUTPUT.match(lines[i].text)), start)
    actions = next((i for i in range(len(lines) - 1, output, -1) if _ACTIONS.match(lines[i].text)), None)
    fences = [i for i in range(start, len(lines)) if _fence(lines[i])]
    if fenced and opener is not None:
        _drop_fences(lines, dropped, fences, output, actions, opener)
    if actions is not None:
        _drop_tail(lines, dropped, actions, fences)
    kept = tuple(line for index, line in enumerate(lines) if index not in dropped)
    return Extract(kept, _told(lines, dropped))


def _drop_fences(
    lines: Sequence[Line], dropped: dict[int, str], fences: Sequence[int], output: int, actions: int | None, opener: int
) -> None:
    """Leave out the fences that wrap the envelope and keep those that belong to OUTPUT.

    The first fence closes right after `OUTPUT:` (Markdown follows, and NEXT_ACTIONS may stand in a second fence), or it
    closes after NEXT_ACTIONS, and every fence between is part of OUTPUT.
    """
    marks = _fence(lines[opener])
    wide = [i for i in fences if (mark := _fence(lines[i])) and marks and mark[0].startswith(marks[0])]
    inside = [i for i in wide if actions is None or i < actions]
    closers = [i for i in inside if (mark := _fence(lines[i])) and mark[1]]
    first = closers[0] if closers else None
    early = first is not None and (
        first < output or all(not line.text.strip(BLANKS) for line in lines[output + 1 : first])
    )
    if first is not None and (early or len(inside) % 2):
        dropped[first] = "a code fence"
    second = [i for i in fences if first is not None and i > first and (actions is None or i < actions)]
    if early and actions is not None and len(second) % 2:
        dropped[second[-1]] = "a code fence"


def _drop_tail(lines: Sequence[Line], dropped: dict[int, str], actions: int, fences: Sequence[int]) -> None:
    """Leave out the closing fence after NEXT_ACTIONS and whatever follows the steps."""
    end = next((i for i in fences if i > actions), len(lines))
    if end < len(lines):
        dropped[end] = "a code fence"
    steps = blank = False
    for index in range(actions + 1, end):
        text = lines[index].text
        step = _STEP.match(text) is not None
        if steps and blank and not step and text.strip(BLANKS):
            end = index
            break
        steps, blank = steps or step, not text.strip(BLANKS)
    rest = [index for index in range(end, len(lines)) if index not in dropped]
    if any(lines[index].text.strip(BLANKS) for index in rest):
        dropped.update(dict.fromkeys(rest, "text after the envelope"))


def _told(lines: Sequence[Line], dropped: dict[int, str]) -> tuple[str, ...]:
    """Say what was left out, one sentence for each run of lines, in the order of the text."""
    told: list[str] = []
    runs = groupby(enumerate(sorted(dropped)), key=lambda pair: (dropped[pair[1]], pair[1] - pair[0]))
    for (why, _), run in runs:
        numbers = [lines[index].number for _, index in run]
        where = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]}-{numbers[-1]}"
        told.append(f"{where}: left out {why}")
    return tuple(told)
