"""Reading a well-formed response: the grammar's tree has every value and its place.

`envelope.lark` alone says what is well-formed. Its tokens are labels, single values, lists and texts; what is left to
do here is to take the lines of a list or a text apart.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from interlock.envelope.model import Envelope, FieldText, Item
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.envelope.tables import LARK_VERSION, TABLES

if TYPE_CHECKING:
    from lark import Lark

_BLANKS: Final = " \t"
_LEADING_BLANK: Final = re.compile(r"\A(?>(?:[ \t]*+\r?\n)*)")
_ITEM: Final = re.compile(r"[ \t]*+(-|[0-9]++\.)[ \t]++(.*[^ \t\r])")
_ITEM_TEXT: Final = re.compile(r"(?:-|[0-9]++\.)[ \t]++([^\n]*[^ \t\r\n])")
_ENTRY: Final = re.compile(r"[^ \t,\[\]](?>(?:[^,\[\]]*[^ \t,\[\]])?)")


class Token(Protocol):
    """What of lark's tokens is read here; lines and columns are 1-based, ends exclusive."""

    type: str
    value: str
    line: int
    column: int
    end_line: int
    end_column: int


class Tree(Protocol):
    """What of lark's trees is read here: a field's label and value, and in EVIDENCE a tree for each key."""

    data: str
    children: list[Any]


@cache
def grammar() -> "Lark":
    """Return the Lark parser built from the text of the grammar, which is the authority."""
    from lark import Lark  # noqa: PLC0415  # --version and --help answer without it

    return Lark.open_from_package(  # pyright: ignore[reportUnknownMemberType]
        "interlock.envelope", "envelope.lark", ("",), parser="lalr", lexer="contextual", maybe_placeholders=False
    )


@cache
def _reader() -> "Lark":
    """Return the parser from its stored tables, ten times sooner; another version of lark builds its own."""
    from lark import Lark, __version__  # noqa: PLC0415

    return Lark.load(TABLES) if __version__ == LARK_VERSION else grammar()  # pyright: ignore[reportUnknownMemberType]


def read_tree(text: str) -> Tree | None:
    """Read a text by the grammar.

    Returns:
        The tree, with a branch for each of the twelve fields; None when the grammar refuses the text.
    """
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    try:
        return cast("Tree", _reader().parse(text))  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput:
        return None


def to_envelope(tree: Tree) -> Envelope:
    """Return what a tree says."""
    fields: list[list[Any]] = [branch.children for branch in tree.children]
    status, task_id, task, agent, reports_to, inputs, required, passed, evidence, reasons, output, actions = fields
    listed = _texts(reasons)
    return Envelope(
        status[1].value,
        task_id[1].value,
        task[1].value,
        agent[1].value,
        reports_to[1].value,
        _texts(inputs),
        _texts(required),
        _texts(passed),
        {key: _texts(under.children) for key, under in zip(EVIDENCE_KEYS, evidence[1:], strict=True)},
        () if listed == ("NONE",) else listed,
        _output(output[1].value),
        _texts(actions),
    )


def _texts(field: Sequence[Token]) -> tuple[str, ...]:
    """Return the items of a list; none when the label has no value or `NONE`."""
    token = field[-1]
    if token.type in {"ITEMS", "STEPS"}:
        return tuple(_ITEM_TEXT.findall(token.value))
    return tuple(_ENTRY.findall(token.value)) if token.type == "INLINE" else ()


def _output(text: str) -> str:
    """Return free text without blank lines around it, lines ended by a newline alone."""
    return _LEADING_BLANK.sub("", text).rstrip(" \t\r\n").replace("\r\n", "\n")


def to_fields(tree: Tree, numbers: Sequence[int] | None = None) -> dict[str, FieldText]:
    """Return the fields of a tree and their places, by label and by `EVIDENCE.key`.

    For lines taken from a longer text, `numbers` has the 1-based number of each there.
    """
    fields: dict[str, FieldText] = {}
    for branch in cast("list[Tree]", tree.children):
        label, *values = branch.children
        if branch.data != "evidence":
            fields[label.type] = _field(label.type, label, *values)
            continue
        keys = {f"EVIDENCE.{key.data}": key.children for key in values}
        under = {name: _field(name, *tokens) for name, tokens in keys.items()}
        last = max(key.end_line for key in under.values())
        fields |= {"EVIDENCE": _field("EVIDENCE", label)._replace(end_line=last), **under}
    return fields if numbers is None else {name: _numbered(field, numbers) for name, field in fields.items()}


def _numbered(field: FieldText, numbers: Sequence[int]) -> FieldText:
    items = tuple(item._replace(line=numbers[item.line - 1]) for item in field.items)
    return field._replace(line=numbers[field.line - 1], end_line=numbers[field.end_line - 1], items=items)


def _field(name: str, label: Token, value: Token | None = None) -> FieldText:
    """Return one field; where its label ends, its value begins."""
    line, column = label.end_line, label.end_column
    if value is None:
        return FieldText(name, line, line, (), column, column)
    if value.type in {"ITEMS", "STEPS"}:
        items = _items(value)
        return FieldText(name, line, items[-1].line, items, column, column)
    if value.type == "TEXT":
        return _text(name, value)
    if value.type == "INLINE":
        return FieldText(name, line, line, tuple(_entries(value)), column, value.end_column, inline=True)
    items = (Item(value.value, line, column, value.end_column, "", column),)
    return FieldText(name, line, line, items, column, value.end_column)


def _entries(value: Token) -> Iterator[Item]:
    """Yield the items between the brackets of a list."""
    for found in _ENTRY.finditer(value.value):
        column = value.column + found.start()
        yield Item(found[0], value.line, column, value.column + found.end(), "", column)


def _items(block: Token) -> tuple[Item, ...]:
    """Return the items of a list, one a line; blank lines between them are skipped."""
    return tuple(
        [
            Item(found[2], number, found.start(2) + 1, found.end() + 1, found[1], found.start(1) + 1)
            for number, line in enumerate(block.value.split("\n"), block.line)
            if (found := _ITEM.match(line))
        ]
    )


def _text(name: str, block: Token) -> FieldText:
    """Return a field of free text: the rest of the label's line, then each line under it."""
    first, *rest = [line.removesuffix("\r") for line in block.value.split("\n")]
    line, column = block.line, block.column
    end = column + len(first.rstrip(_BLANKS))
    items = [Item(first, line, column, column + len(first), "", column)] if first else []
    items += [Item(text, number, 1, len(text) + 1, "", 1) for number, text in enumerate(rest, line + 1)]
    while not items[-1].text.strip(_BLANKS):
        items.pop()
    blank = next(at for at, item in enumerate(items) if item.text.strip(_BLANKS))
    return FieldText(name, line, items[-1].line, tuple(items[blank:]), column, end)
