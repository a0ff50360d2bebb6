"""Reading a well-formed response: the grammar's tree has every value and its place.

`envelope.lark` alone says what is well-formed. Its tokens are labels, single values, lists and texts. A list is one
token, since a token for each item would make the reading half as slow again; two patterns take its items apart here.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from interlock.envelope.characters import Line
from interlock.envelope.model import OR_NONE, Envelope, FieldText, Item
from interlock.envelope.protocol import EVIDENCE_KEYS

if TYPE_CHECKING:
    from lark import Lark

BLANKS: Final = " \t"
_LEADING_BLANK: Final = re.compile(r"\A(?>(?:[ \t]*+\r?\n)*)")
_ITEM: Final = re.compile(r"(?:-|[0-9]++\.)[ \t]++([^\n]*[^ \t\r\n])")
"""An item behind its bullet or number; in a token of the grammar only blanks come before these."""
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
    """Return the Lark parser of the grammar."""
    from lark import Lark  # noqa: PLC0415  # --version and --help answer without it

    # The contextual lexer tries the terminals alone that may come next, so that VALUE and TEXT never compete.
    return Lark.open_from_package(  # pyright: ignore[reportUnknownMemberType]
        "interlock.envelope",
        "envelope.lark",
        ("",),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
    )


def read_tree(text: str) -> Tree | None:
    """Read a text by the grammar.

    Returns:
        The tree, with a branch for each of the twelve fields; None when the grammar refuses the text.
    """
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    try:
        # Each token costs 3 % of the reading: blanks after the envelope are not worth one.
        return cast("Tree", grammar().parse(text.rstrip(f"{BLANKS}\r\n")))  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput:
        return None


def to_envelope(tree: Tree) -> Envelope:
    """Return what a tree says."""
    fields: list[list[Any]] = [branch.children for branch in tree.children]
    # The grammar has the fields in their fixed order, each a label and its value.
    status, task_id, task, agent, reports_to, inputs, required, passed, evidence, reasons, output, actions = fields
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
        _unless_none(_texts(reasons)),
        _LEADING_BLANK.sub("", output[1].value).rstrip(" \t\r\n").replace("\r\n", "\n"),
        _texts(actions),
    )


def _texts(field: Sequence[Token]) -> tuple[str, ...]:
    """Return the items of a list; none when the label has no value or `NONE`."""
    token = field[-1]
    if token.type in {"ITEMS", "STEPS"}:
        return tuple(_ITEM.findall(token.value))
    return tuple(_ENTRY.findall(token.value)) if token.type == "INLINE" else ()


def _unless_none(texts: tuple[str, ...]) -> tuple[str, ...]:
    # `- NONE` is a list of one item to the grammar.
    return () if texts == ("NONE",) else texts


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
        # The tree gives EVIDENCE its label alone; the field reaches to the end of its last key.
        last = max(key.end_line for key in under.values())
        fields |= {"EVIDENCE": _field("EVIDENCE", label)._replace(end_line=last), **under}
    return fields if numbers is None else {name: _numbered(field, numbers) for name, field in fields.items()}


def _numbered(field: FieldText, numbers: Sequence[int]) -> FieldText:
    items = tuple(item._replace(line=numbers[item.line - 1]) for item in field.items)
    return field._replace(line=numbers[field.line - 1], end_line=numbers[field.end_line - 1], items=items)


def _field(name: str, label: Token, value: Token | None = None) -> FieldText:
    """Return one field; where its label ends, its value begins."""
    line, column = label.end_line, label.end_column
    if value is None or value.type == "NONE":
        return FieldText(name, line, line, (), column)
    if value.type in {"ITEMS", "STEPS"}:
        items = _items(value)
        last = items[-1].line
        if name in OR_NONE and len(items) == 1 and items[0].text == "NONE" and not items[0].number:
            items = ()
        return FieldText(name, line, last, items, column)
    if value.type == "TEXT":
        items = _lines(value)
        return FieldText(name, value.line, items[-1].line, items, value.column)
    if value.type == "INLINE":
        return FieldText(name, line, line, tuple(_entries(value)), column)
    return FieldText(name, line, line, (Item(value.value, line, column),), column)


def _entries(value: Token) -> Iterator[Item]:
    """Yield the items between the brackets of a list."""
    for entry in _ENTRY.finditer(value.value):
        yield Item(entry[0], value.line, value.column + entry.start())


def _items(block: Token) -> tuple[Item, ...]:
    """Return the items of a list, one a line; blank lines between them are skipped."""
    items: list[Item] = []
    for number, line in enumerate(block.value.split("\n"), block.line):
        item = _ITEM.search(line)
        if item:
            start = item.start(1)
            # For a step it is the number as written, which a rule looks at.
            marker = line[:start].strip(BLANKS)
            items.append(Item(item[1], number, start + 1, "" if marker == "-" else marker))
    return tuple(items)


def _lines(block: Token) -> tuple[Item, ...]:
    """Return the lines of free text, without blank ones around them: the rest of the label's line, and those under it.

    Blanks at the end belong to a line, but not to the text.
    """
    lines = enumerate(block.value.split("\n"), block.line)
    return output_items([Line(number, line.removesuffix("\r")) for number, line in lines], block.column)


def output_items(lines: Sequence[Line], column: int) -> tuple[Item, ...]:
    """Return the items of OUTPUT: its lines from the first to the last that is not blank.

    Args:
        lines: The rest of the label's line, then the lines under it.
        column: 1-based column of the first line.
    """
    # The scanner reads OUTPUT with this function too, so the two cannot differ about its lines.
    filled = [index for index, line in enumerate(lines) if line.text.strip(BLANKS)]
    if not filled:
        return ()
    first, last = filled[0], filled[-1]
    items = [Item(line.text, line.number, 1) for line in lines[first : last + 1]]
    items[-1] = items[-1]._replace(text=items[-1].text.rstrip(BLANKS))
    if first == 0:
        items[0] = items[0]._replace(column=column)
    return tuple(items)
