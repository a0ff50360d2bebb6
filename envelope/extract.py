"""Extraction: find the one envelope inside a message that wraps it in prose, a heading or code fences."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, groupby, pairwise
from typing import Final, NamedTuple

from interlock.envelope.blocks import BLANKS
from interlock.envelope.characters import Line
from interlock.envelope.draft import Draft, snippet
from interlock.envelope.labels import find_label
from interlock.envelope.lookalikes import fold
from interlock.envelope.protocol import LABELS, STATUSES
from interlock.envelope.scanner import BEGUN, labels_begun

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)")
_STATUS: Final = re.compile(r"STATUS[ \t]*:")
_TASK_ID: Final = re.compile(r"TASK_ID[ \t]*:")
_OUTPUT: Final = re.compile(r"OUTPUT[ \t]*:")
_ACTIONS: Final = re.compile(r"NEXT_ACTIONS[ \t]*:")
_STEP: Final = re.compile(r"[ \t]*[0-9]+\.[ \t]")
_MARK_UP: Final = re.compile(
    r"<!--[^<]*?-->"
    r"|</?[a-z][a-z0-9-]*+(?=[\s/>])(?>(?:\"[^\"<]*+\"|'[^'<]*+'|[^<>])*)>"
    r"|\]\((?>(?:\"[^\"]*+\"|<[^<>]*+>|\([^()]*+\)|[^()])*)\)"
    r"|\]\[[^\[\]]*+\]|\[\^[^\[\]]*+\]",
    re.IGNORECASE,
)
"""What nobody sees of a line: comments, tags, targets of links, and marks of footnotes."""
_GAP: Final = r"(?-i:[^0-9A-Za-z:]*+)"
"""What may be between two letters of a label that is spaced, dotted or marked up."""


def _spelled(names: Sequence[str]) -> str:
    """Return a pattern for names, with anything but letters, digits and what ends a label between their letters."""
    return "|".join(_GAP.join(name.replace("_", "")) for name in sorted(names, key=len, reverse=True))


_LABEL: Final = rf"({_spelled(LABELS)})(?![^\W_])"
_MARKED: Final = re.compile(rf"[\W\d_]*+(?:[a-z]{{1,4}}[.)\]][\W\d_]*+)?{_LABEL}([\W_]*)(.*)", re.IGNORECASE)
"""A label as a person may still read one: behind quotes, bullets, numbers or headings, in any case."""
_WITHIN: Final = re.compile(rf"(?<![^\W_]){_LABEL}[\W_]*?[:=|]", re.IGNORECASE)
"""A label within a line."""
_FAILED: Final = re.compile(
    rf"(?<![^\W_])(?i:{_spelled(['STATUS'])})(?![^\W_])[\W_]*?[^\w\s][\W_]*{_spelled(['BLOCKED'])}(?![^\W_])"
)
"""What says anywhere that the status is another one."""
_SOFT: Final = " \t*_`~\"'\\"
"""Marks that may surround a word of a sentence; any other one behind a label sets it apart."""
_SIX: Final = rf"[\W_]*+(?:{_spelled(STATUSES)})(?![^\W_])"
_STATE: Final = re.compile(rf"(?i:{_SIX})(?:(?<=[A-Z])|(?![ \t]*\w))")
"""A status in any case; `blocked by the build` is a sentence."""
_LATER_STATE: Final = re.compile(rf"[^\w\s]{_SIX}")
"""A status in capitals that a mark sets apart, as behind `STATUS (final): `."""
_MANY: Final = 3
"""So many labels around an envelope are another one."""


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

    Returns:
        The lines to read. With two candidates there are none; with no candidate they are all there, for the
        tolerant reading to explain.
    """
    starts = _starts(lines)
    if not starts:
        return Extract(tuple(lines))
    if len(starts) > 1:
        second = lines[starts[1]]
        places = ", ".join(str(lines[start].number) for start in starts[:5])
        message = f"The message holds {len(starts)} envelopes (they begin in lines {places})."
    else:
        found = _cut(lines, starts[0])
        kept = {line.number for line in found.lines}
        second = _second([line for line in lines if line.number not in kept], lines[starts[0]].text)
        if second is None:
            return found
        message = f"Another envelope is in line {second.number}, around the one in line {lines[starts[0]].number}."
    draft = Draft("ENV224", "", second.number, 1, message, snippet(second.text), "exactly one envelope")
    return Extract((), (), (draft,))


def _second(dropped: Sequence[Line], status: str) -> Line | None:
    """Return where another envelope is in what is left out, or None.

    That is a STATUS with a status, the third label, or a BLOCKED where the envelope has another status.
    """
    seen: set[str] = set()
    readings = [_readings(line.text) for line in dropped]
    for index, line in enumerate(dropped):
        for text in dict.fromkeys(readings[index]):
            name, is_status = _labelled(text, (readings[later][0] for later in range(index + 1, len(readings))))
            within = {_name(found[1]) for found in _WITHIN.finditer(text)}
            seen |= {name} - {""}
            blocked = _FAILED.search(text) is not None and "BLOCKED" not in status
            if is_status or blocked or len(seen) >= _MANY or len(within) >= _MANY:
                return line
    return None


def _readings(text: str) -> tuple[str, ...]:
    """Return a line with look-alikes and entities as what they show: without its mark-up, apart at it, and with it."""
    text = fold(text)
    if "&" in text:
        from html import unescape  # noqa: PLC0415 - a table of two thousand names

        text = fold(unescape(text))
    return _MARK_UP.sub("", text), _MARK_UP.sub("|", text), text


def _name(written: str) -> str:
    return re.sub(r"[\W_]", "", written).upper()


def _labelled(text: str, following: Iterable[str]) -> tuple[str, bool]:
    """Return the label that a line begins with, nothing for a sentence, and whether it is a STATUS with a status.

    A label is set apart by a mark, is alone on its line, or is in capitals before what is no word of a sentence.
    """
    found = _MARKED.match(text)
    if found is None:
        return "", False
    label, marks, value = found[1], found[2], found[3]
    name, mark = _name(label), marks.strip(_SOFT)
    if not (mark or not value or (label.isupper() and marks and not value[0].islower())):
        return "", False
    values = (each for each in chain((value,), following) if re.search(r"\w", each))
    if name == "STATUS" and (_STATE.match(next(values, "")) or _LATER_STATE.search(value)):
        return name, True
    # `## Evidence` and `Task - …` head sections of a message; of these, labels of two words count.
    is_plain = name in LABELS and not set(mark) & set(":=|")
    return ("" if is_plain else name), False


def _starts(lines: Sequence[Line]) -> list[int]:
    """Return the indexes at which an envelope begins: each STATUS with TASK_ID before the next STATUS, else the first.

    The text between STATUS and TASK_ID does not matter: another reader may skip it. A plain report has no beginning.
    """
    if len(labels_begun(lines)) < BEGUN:
        return []
    status = [index for index, line in enumerate(lines) if _STATUS.match(line.text)]
    stretches = pairwise([*status, len(lines)])
    whole = [start for start, end in stretches if any(_TASK_ID.match(line.text) for line in lines[start:end])]
    if whole or status:
        return whole or status[:1]
    near = [
        (index, label.written.islower())
        for index, line in enumerate(lines)
        if ":" in fold(line.text[:40]) and (label := find_label(line.text, ())) and label.label in {"STATUS", "TASK_ID"}
    ]
    # `status: string;` is code, where another line is a label for sure.
    return [index for index, _ in sorted(near, key=lambda row: row[1])[:1]]


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
    return Extract(kept, _left_out(lines, dropped))


def _drop_fences(
    lines: Sequence[Line], dropped: dict[int, str], fences: Sequence[int], output: int, actions: int | None, opener: int
) -> None:
    """Leave out the fences that wrap the envelope and keep those that belong to OUTPUT.

    The first fence closes right after `OUTPUT:` (Markdown follows, and NEXT_ACTIONS may be in a second fence), or it
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


def _left_out(lines: Sequence[Line], dropped: dict[int, str]) -> tuple[str, ...]:
    """Return what was left out, one sentence for each run of lines, in the order of the text."""
    sentences: list[str] = []
    runs = groupby(enumerate(sorted(dropped)), key=lambda pair: (dropped[pair[1]], pair[1] - pair[0]))
    for (why, _), run in runs:
        numbers = [lines[index].number for _, index in run]
        where = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]}-{numbers[-1]}"
        sentences.append(f"{where}: left out {why}")
    return tuple(sentences)
