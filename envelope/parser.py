"""The fast path: well-formed text in, Envelope out, or None. The grammar is the authority for "well-formed"."""

import re
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Final, cast

from interlock.envelope.model import Envelope
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.envelope.tables import LARK_VERSION, TABLES

if TYPE_CHECKING:
    from lark import Lark

_LEADING_BLANK: Final = re.compile(r"(?>(?:[ \t]*+\r?\n)*)")
_BLANKS: Final = " \t\r\n"
_FOREVER: Final = repeat(_BLANKS)
_SINGLE: Final = 5
"""How many fields, from STATUS to REPORTS_TO, hold one value on their label's line."""


@cache
def grammar() -> "Lark":
    """Return the Lark parser built from the text of the grammar, which is the authority."""
    from lark import Lark  # noqa: PLC0415  # --version and --help answer without it

    return Lark.open_from_package(  # pyright: ignore[reportUnknownMemberType]
        "interlock.envelope", "envelope.lark", ("",), parser="lalr", lexer="basic", maybe_placeholders=False
    )


@cache
def _reader() -> "Lark":
    """Return the parser from its stored tables, ten times sooner; another version of lark builds its own."""
    from lark import Lark, __version__  # noqa: PLC0415

    return Lark.load(TABLES) if __version__ == LARK_VERSION else grammar()  # pyright: ignore[reportUnknownMemberType]


def read_envelope(text: str) -> Envelope | None:
    """Parse clean text by the grammar.

    Args:
        text: Text without refused characters; a final newline is optional.

    Returns:
        The envelope, or None when the grammar refuses the text.
    """
    blocks = _parse(text if text.endswith("\n") else text + "\n")
    if blocks is None:
        return None
    fields, output, actions = blocks
    lines = _lines(fields)
    # Every line that is not an item begins with a label or a key, and the grammar fixed which and in what order.
    starts = [number for number, line in enumerate(lines) if line[0] != "-"]
    inputs, required, passed, evidence, *keys, reasons = starts[_SINGLE:]
    bounds = [*keys, reasons]
    status, task_id, task, agent, reports_to = [line.partition(":")[2].lstrip(_BLANKS) for line in lines[:_SINGLE]]
    return Envelope(
        status,
        task_id,
        task,
        agent,
        reports_to,
        _list(lines, inputs, required),
        _list(lines, required, passed),
        _list(lines, passed, evidence),
        {key: _list(lines, bounds[at], bounds[at + 1]) for at, key in enumerate(EVIDENCE_KEYS)},
        _unless_none(_list(lines, reasons, len(lines))),
        _output(output[7:]),
        _steps(_lines(actions)),
    )


def _parse(text: str) -> list[str] | None:
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    try:
        return cast("list[str]", _reader().parse(text).children)  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput:
        return None


def _lines(block: str) -> list[str]:
    """Return the lines of a block without the blanks around them; blank lines are left out."""
    return [line for line in map(str.strip, block.split("\n"), _FOREVER) if line]


def _list(lines: list[str], start: int, end: int) -> tuple[str, ...]:
    """Return the items of the list whose label stands at `start`."""
    if end - start > 1:
        return tuple([line[1:].lstrip(_BLANKS) for line in lines[start + 1 : end]])
    head = lines[start]
    if head[-1] != "]":
        return ()
    inner = head[head.index("[") + 1 : -1].strip(_BLANKS)
    return tuple([item.strip(_BLANKS) for item in inner.split(",")]) if inner else ()


def _unless_none(items: tuple[str, ...]) -> tuple[str, ...]:
    return () if items == ("NONE",) else items


def _output(text: str) -> str:
    """Return free text without blank lines around it, lines ended by a newline alone."""
    blank = _LEADING_BLANK.match(text)
    start = blank.end() if blank else 0
    body = text[start:].rstrip(_BLANKS).replace("\r\n", "\n")
    return body if start else body.lstrip(" \t")


def _steps(lines: list[str]) -> tuple[str, ...]:
    return tuple([line.partition(".")[2].lstrip(_BLANKS) for line in lines[1:]])
