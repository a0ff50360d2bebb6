"""Extraction: find the one envelope inside a message that wraps it in prose, a heading or code fences."""

import re
import unicodedata
from collections.abc import Sequence
from html import unescape
from itertools import groupby
from typing import Final, NamedTuple

from interlock.envelope.characters import Line
from interlock.envelope.draft import Draft, snippet
from interlock.envelope.parser import BLANKS
from interlock.envelope.protocol import STATUSES
from interlock.envelope.scanner import BEGUN, labels_begun, starts_envelope

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)")
_LABEL: Final = re.compile(r"(STATUS|TASK_ID|OUTPUT|NEXT_ACTIONS)[ \t]*:")
_STEP: Final = re.compile(r"[ \t]*[0-9]+\.[ \t]")
_ASIDE: Final = re.compile(r"\([^()]*\)|<[^<>]*>|\{[^{}]*\}|(?<=\])\[[^\[\]]*\]")
"""What is aside of the words of a line: targets of links, tags, remarks; the innermost first."""
_SIX: Final = "|".join(status.replace("_", "") for status in STATUSES)
_STATUS: Final = re.compile(rf"(?i:STATUS)\n*(?:({_SIX})|((?i:{_SIX}))(?=\n|$))")
_MAX_ASIDES: Final = 4


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
    # Two envelopes may say different things, and which one is meant is not for this program to guess.
    if len(starts) > 1:
        second = lines[starts[1]]
        places = ", ".join(str(lines[start].number) for start in starts[:5])
        message = f"The message holds {len(starts)} envelopes (they begin in lines {places})."
    else:
        dropped = _wrapping(lines, starts[0])
        second = _second([lines[index] for index in sorted(dropped)], lines[starts[0]].text)
        if second is None:
            kept = tuple(line for index, line in enumerate(lines) if index not in dropped)
            return Extract(kept, _left_out(lines, dropped))
        message = f"Another envelope or status is in line {second.number}, around the envelope in {starts[0] + 1}."
    draft = Draft("ENV224", "", second.number, 1, message, snippet(second.text), "exactly one envelope")
    return Extract((), (), (draft,))


def _starts(lines: Sequence[Line]) -> list[int]:
    """Return the indexes at which an envelope begins: each STATUS with TASK_ID before the next STATUS, else the first.

    The text between STATUS and TASK_ID does not matter: another reader may skip it. A plain report has no beginning.
    """
    # The tolerant reading reports it whole, under OUTPUT; no line of it is cut off.
    if len(labels_begun(lines)) < BEGUN:
        return []
    status: list[int] = []
    whole: list[int] = []
    for index, line in enumerate(lines):
        label = _LABEL.match(line.text)
        if label and label[1] == "STATUS":
            status.append(index)
        # A second TASK_ID behind one STATUS begins no other envelope.
        elif label and label[1] == "TASK_ID" and status and status[-1] not in whole[-1:]:
            whole.append(status[-1])
    # A lone STATUS may be an envelope that lacks its TASK_ID.
    if whole or status:
        return whole or status[:1]
    return [index for index, line in enumerate(lines) if starts_envelope(line.text)][:1]


def _second(dropped: Sequence[Line], status: str) -> Line | None:
    """Return where what is left out says another status than the envelope, or is another envelope; None if nowhere.

    A line is reduced to its letters, so that no mark-up and no blanks between them hide a word.
    """
    # Three labels around the envelope are another one, even without a status.
    if len(labels_begun(dropped)) >= BEGUN:
        return dropped[0]
    own = _letters(status, 0).upper()
    # What is aside may hold the status itself, or what comes between the label and it.
    for asides in (0, _MAX_ASIDES):
        text = "\n".join(_letters(line.text, asides) for line in dropped)
        for match in _STATUS.finditer(text):
            # The same status said again, in a heading or a summary, contradicts nothing.
            if not own.endswith((match[1] or match[2]).upper()):
                return dropped[text.count("\n", 0, match.start())]
    return None


def _letters(text: str, asides: int) -> str:
    """Return the letters of a line, without entities, other shapes of letters, and so many layers of asides."""
    # Full-width, circled and mathematical letters become plain ones.
    text = unicodedata.normalize("NFKC", unescape(text))
    # Brackets within brackets need a round each.
    for _ in range(asides):
        text = _ASIDE.sub("", text)
    return re.sub(r"[^A-Za-z]", "", text)


def _fence(line: Line) -> tuple[str, bool] | None:
    """Return the marks of a fence line and whether it can close one."""
    match = _FENCE.fullmatch(line.text)
    return (match[1], not match[2].strip(BLANKS)) if match else None


def _wrapping(lines: Sequence[Line], start: int) -> dict[int, str]:
    """Return the indexes of the lines that are no part of the envelope, with what they are."""
    dropped = dict.fromkeys(range(start), "text before the envelope")
    # The line above STATUS, over blank ones: a fence there wraps the envelope.
    opener = next((index for index in range(start - 1, -1, -1) if lines[index].text.strip(BLANKS)), start)
    # The last line with each label, since OUTPUT may quote an envelope before the end.
    labels = {match[1]: index for index, line in enumerate(lines) if (match := _LABEL.match(line.text))}
    output = next((index for index in range(start, len(lines)) if lines[index].text.startswith("OUTPUT")), start)
    actions = labels.get("NEXT_ACTIONS", -1)
    actions = actions if actions > output else len(lines)
    fences = [index for index in range(start, len(lines)) if _fence(lines[index])]
    opened = _fence(lines[opener]) if opener < start else None
    if opened:
        dropped[opener] = "a code fence"
        for index in _inner_fences(lines, fences, opened[0], output, actions):
            dropped[index] = "a code fence"
    if actions < len(lines):
        dropped |= _tail(lines, actions, fences)
    return dropped


def _inner_fences(lines: Sequence[Line], fences: Sequence[int], marks: str, output: int, actions: int) -> list[int]:
    """Return the fences that wrap an envelope whose STATUS is behind one, and not those that belong to OUTPUT.

    The first fence closes right after `OUTPUT:` (Markdown follows, and NEXT_ACTIONS may be in a second fence), or it
    closes after NEXT_ACTIONS, and every fence between is part of OUTPUT.
    """
    inside = [index for index in fences if index < actions and lines[index].text.lstrip(" ").startswith(marks)]
    closing = [index for index in inside if (fence := _fence(lines[index])) and fence[1]]
    if not closing:
        return []
    first = closing[0]
    # Right under `OUTPUT:` nothing can have been opened: the fence closes the one above STATUS.
    is_early = not any(line.text.strip(BLANKS) for line in lines[output + 1 : first])
    # Of an odd number of fences one has no partner inside, so it is the partner of the one above STATUS.
    wrapping = [first] if is_early or len(inside) % 2 else []
    # Behind an early end, NEXT_ACTIONS may be in a fence of its own, which opens right before it.
    later = [index for index in fences if first < index < actions]
    if is_early and actions < len(lines) and len(later) % 2:
        wrapping.append(later[-1])
    return wrapping


def _tail(lines: Sequence[Line], actions: int, fences: Sequence[int]) -> dict[int, str]:
    """Return the closing fence after NEXT_ACTIONS and whatever follows the steps."""
    dropped: dict[int, str] = {}
    end = next((index for index in fences if index > actions), len(lines))
    if end < len(lines):
        dropped[end] = "a code fence"
    has_steps = was_blank = False
    for index in range(actions + 1, end):
        text = lines[index].text
        is_step = _STEP.match(text) is not None
        # Behind the steps, a blank line and then prose is the end; without the blank line it may belong to a step.
        if has_steps and was_blank and not is_step and text.strip(BLANKS):
            end = index
            break
        has_steps, was_blank = has_steps or is_step, not text.strip(BLANKS)
    rest = [index for index in range(end, len(lines)) if index not in dropped]
    if any(lines[index].text.strip(BLANKS) for index in rest):
        dropped |= dict.fromkeys(rest, "text after the envelope")
    return dropped


def _left_out(lines: Sequence[Line], dropped: dict[int, str]) -> tuple[str, ...]:
    """Return what was left out, one sentence for each run of lines, in the order of the text."""
    sentences: list[str] = []
    runs = groupby(enumerate(sorted(dropped)), key=lambda pair: (dropped[pair[1]], pair[1] - pair[0]))
    for (why, _), run in runs:
        numbers = [lines[index].number for _, index in run]
        where = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]}-{numbers[-1]}"
        sentences.append(f"{where}: left out {why}")
    return tuple(sentences)
