"""The fast path: well-formed text in, Envelope out, or None. The grammar is the authority for "well-formed"."""

import re
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Final, cast

from interlock.envelope.model import Envelope
from interlock.envelope.protocol import EVIDENCE_KEYS

if TYPE_CHECKING:
    from lark import Lark

_LEADING_BLANK: Final = re.compile(r"(?:[ \t]*+\r?\n)*+")
_BLANKS: Final = " \t\r\n"
_FOREVER: Final = repeat(_BLANKS)


@cache
def grammar() -> "Lark":
    """Return the one Lark parser of envelopes, built on first use."""
    from lark import Lark  # noqa: PLC0415  # --version and --help answer without it

    return Lark.open_from_package(
        "interlock.envelope", "envelope.lark", ("",), parser="lalr", lexer="basic", maybe_placeholders=False
    )


def read_envelope(text: str) -> Envelope | None:
    """Parse clean text by the grammar.

    Args:
        text: Text without refused characters; a final newline is optional.

    Returns:
        The envelope, or None when the grammar refuses the text.
    """
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    try:
        tree = grammar().parse(text if text.endswith("\n") else text + "\n")
    except UnexpectedInput:
        return None
    head, inputs, required, passed, evidence, fails, output, actions = cast("list[str]", tree.children)
    status, task_id, task, agent, reports_to = [line.partition(":")[2].strip(_BLANKS) for line in _lines(head)]
    return Envelope(
        status=status,
        task_id=task_id,
        task=task,
        assigned_agent=agent,
        reports_to=reports_to,
        inputs_used=_list(_lines(inputs)),
        gates_required=_list(_lines(required)),
        gates_passed=_list(_lines(passed)),
        evidence=_evidence(evidence),
        fail_reasons=_reasons(fails),
        output=_output(output[7:]),
        next_actions=_steps(actions),
    )


def _lines(block: str) -> list[str]:
    """Return the lines of a block without the blanks around them; blank lines are left out."""
    return [line for line in map(str.strip, block.split("\n"), _FOREVER) if line]


def _list(lines: list[str]) -> tuple[str, ...]:
    """Return the items of a list whose first line is its label."""
    head = lines[0]
    if head[-1] == "]":
        inner = head[head.index("[") + 1 : -1].strip(_BLANKS)
        return tuple([item.strip(_BLANKS) for item in inner.split(",")]) if inner else ()
    return tuple([line[1:].lstrip(_BLANKS) for line in lines[1:]])


def _evidence(block: str) -> dict[str, tuple[str, ...]]:
    lines = _lines(block)
    starts = [number for number, line in enumerate(lines) if number and line[0] != "-"]
    ends = [*starts[1:], len(lines)]
    return {key: _list(lines[a:b]) for key, a, b in zip(EVIDENCE_KEYS, starts, ends, strict=True)}


def _reasons(block: str) -> tuple[str, ...]:
    lines = _lines(block)
    items = _list(lines)
    return () if items == ("NONE",) else items


def _output(text: str) -> str:
    """Return free text without blank lines around it, lines ended by a newline alone."""
    blank = _LEADING_BLANK.match(text)
    start = blank.end() if blank else 0
    body = text[start:].rstrip(_BLANKS).replace("\r\n", "\n")
    return body if start else body.lstrip(" \t")


def _steps(block: str) -> tuple[str, ...]:
    return tuple([line.partition(".")[2].lstrip(_BLANKS) for line in _lines(block)[1:]])
