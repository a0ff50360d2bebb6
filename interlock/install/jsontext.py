"""One entry of a JSON object, or item of a list, put into a text or taken out without touching any other byte."""

import json
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, cast

from interlock.install.errors import EditError

Entry: TypeAlias = dict[str, Any]

_WHITE: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """One key of an object: offsets of the key, of the value, and of the end of the value."""

    key: str
    start: int
    value: int
    end: int


def get_entry(text: str, table: str, name: str) -> Entry | None:
    """Return `{table: {name: …}}` of a JSON text, or None when it is not there.

    Raises:
        EditError: The text is no JSON object, or `table` is no object in it.
    """
    return _lookup(_parse(text), table, name)


def add_entry(text: str, table: str, name: str, entry: Entry) -> str:
    """Return the text with `{table: {name: entry}}` put in as the last key; the text must not hold it yet.

    Indentation and line ends are those of the text.

    Raises:
        EditError: As `get_entry`, or the table stands twice.
    """
    if not text.strip(_WHITE):
        return json_text({table: {name: entry}})
    data = _parse(text)
    _lookup(data, table, name)
    top = _members(text, _skip(text, 0))
    at = next((member for member in top if member.key == table), None)
    if at is None:
        edited = _insert(text, _skip(text, 0), top, table, {name: entry})
    else:
        edited = _insert(text, at.value, _members(text, at.value), name, entry)
    expected = {**data, table: {**cast("Entry", data.get(table, {})), name: entry}}
    return _proved(edited, expected)


def remove_entry(text: str, table: str, name: str, *, and_table: bool) -> str:
    """Return the text without `{table: {name: …}}`.

    Args:
        text: A text that holds it.
        table: The key of the table.
        name: The key in it.
        and_table: Take the table out too when nothing is left in it.

    Raises:
        EditError: As `get_entry`.
    """
    data = _parse(text)
    top = _members(text, _skip(text, 0))
    at = next(member for member in top if member.key == table)
    rest = {key: value for key, value in cast("Entry", data[table]).items() if key != name}
    if and_table and not rest:
        return _proved(_cut(text, _skip(text, 0), top, table), {k: v for k, v in data.items() if k != table})
    return _proved(_cut(text, at.value, _members(text, at.value), name), {**data, table: rest})


def get_lists(text: str, table: str) -> dict[str, list[Any]]:
    """Return the lists of `{table: {name: […]}}` of a JSON text; empty when there are none.

    Raises:
        EditError: The text is no JSON object, or `table` is no object in it.
    """
    rows = _table(_parse(text), table)
    return {name: cast("list[Any]", value) for name, value in rows.items() if isinstance(value, list)}


def add_item(text: str, table: str, name: str, item: Entry) -> str:
    """Return the text with an item put at the end of `{table: {name: […]}}`; what is missing of these is made.

    Raises:
        EditError: As `get_lists`, something else than a list has the name, or the layout cannot be edited.
    """
    if not text.strip(_WHITE):
        return json_text({table: {name: [item]}})
    data = _parse(text)
    rows = _table(data, table)
    there: object = rows.get(name, [])
    if not isinstance(there, list):
        raise EditError("INI102", f"`{table}.{name}` is no list.", _short(json.dumps(there)), f'`"{name}": [ … ]`')
    expected = {**data, table: {**rows, name: [*cast("list[Any]", there), item]}}
    top = _members(text, _skip(text, 0))
    if table not in data:
        return _proved(_insert(text, _skip(text, 0), top, table, {name: [item]}), expected)
    at = _member(text, _skip(text, 0), table).value
    if name not in rows:
        return _proved(_insert(text, at, _members(text, at), name, [item]), expected)
    place = _member(text, at, name).value
    return _proved(_append(text, place, _items(text, place), item), expected)


def remove_item(text: str, table: str, name: str, index: int) -> str:
    """Return the text without an item of a list; the list stays, though empty.

    Raises:
        EditError: As `get_lists`.
    """
    data = _parse(text)
    rows = _table(data, table)
    left = [row for number, row in enumerate(rows[name]) if number != index]
    place = _member(text, _member(text, _skip(text, 0), table).value, name).value
    return _proved(_cut_at(text, place, _items(text, place), index), {**data, table: {**rows, name: left}})


def replace_item(text: str, table: str, name: str, index: int, item: Entry) -> str:
    """Return the text with another item in the place of one in a list.

    Raises:
        EditError: As `get_lists`.
    """
    data = _parse(text)
    rows = _table(data, table)
    new = [item if number == index else row for number, row in enumerate(rows[name])]
    start = _member(text, _member(text, _skip(text, 0), table).value, name).value
    old = _items(text, start)[index]
    lead = _lead(text, old.start)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = json.dumps(item, ensure_ascii=False) if lead is None else _render(item, _unit(text), newline, lead)
    return _proved(text[: old.start] + body + text[old.end :], {**data, table: {**rows, name: new}})


def remove_key(text: str, *path: str) -> str:
    """Return the text without the member that some keys lead to, one or two of them.

    Raises:
        EditError: The layout cannot be edited.
    """
    data = _parse(text)
    start = _skip(text, 0)
    inner = data
    for key in path[:-1]:
        start = _member(text, start, key).value
        inner = cast("Entry", inner[key])
    left = {key: value for key, value in inner.items() if key != path[-1]}
    return _proved(_cut(text, start, _members(text, start), path[-1]), {**data, path[0]: left} if path[1:] else left)


def json_text(value: Entry, unit: str = "  ", newline: str = "\n") -> str:
    """Return a JSON file as this package writes it: short lists on one line, a final line end."""
    return _render(value, unit, newline, "") + newline


def _parse(text: str) -> Entry:
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip() if text else ""
        comment = text.startswith(("//", "/*", "#"), error.pos)
        message = "the file holds a comment, and JSON has none." if comment else f"the file is no JSON: {error.msg}."
        raise EditError("INI101", message, _short(line), "JSON", error.lineno, error.colno) from error
    except RecursionError as error:
        raise EditError("INI101", "the file is nested too deeply.", "more levels than are read", "JSON") from error
    if not isinstance(data, dict):
        raise EditError("INI101", "the file holds no JSON object.", _short(text.strip()), "an object, `{ … }`", 1, 1)
    return cast("Entry", data)


def _table(data: Entry, table: str) -> Entry:
    rows: object = data.get(table, {})
    if not isinstance(rows, dict):
        found = _short(json.dumps(rows))
        raise EditError("INI102", f"`{table}` is no object.", found, f'`"{table}": {{ … }}`')
    return cast("Entry", rows)


def _lookup(data: Entry, table: str, name: str) -> Entry | None:
    entry: object = _table(data, table).get(name)
    if entry is not None and not isinstance(entry, dict):
        found = _short(json.dumps(entry))
        raise EditError("INI102", f"`{table}.{name}` is no object.", found, f'`"{name}": {{ … }}`')
    return cast("Entry | None", entry)


def _once(pairs: list[tuple[str, Any]]) -> Entry:
    """Refuse a key that stands twice: which one counts differs between programs."""
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise EditError("INI101", f"the key `{twice}` stands twice in one object.", _short(twice), "each key once")
    return data


def _refuse_constant(word: str) -> NoReturn:
    raise EditError("INI101", f"{word} is no JSON number.", word, "a finite number")


def _members(text: str, start: int) -> list[_Member]:
    """List the members of the object that begins at `start`; the text was parsed before."""
    found: list[_Member] = []
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, end = cast("tuple[str, int]", _DECODER.raw_decode(text, at))
        value = _skip(text, _skip(text, end) + 1)
        _, stop = _DECODER.raw_decode(text, value)
        found.append(_Member(key, at, value, stop))
        at = _skip(text, stop)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _member(text: str, start: int, key: str) -> _Member:
    return next(member for member in _members(text, start) if member.key == key)


def _items(text: str, start: int) -> list[_Member]:
    """List the items of the list that begins at `start`, without keys."""
    found: list[_Member] = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        _, stop = _DECODER.raw_decode(text, at)
        found.append(_Member("", at, at, stop))
        at = _skip(text, stop)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _append(text: str, start: int, items: list[_Member], value: Entry) -> str:
    """Put an item behind the last one of the list at `start`."""
    newline, unit = "\r\n" if "\r\n" in text else "\n", _unit(text)
    if not items:
        outer = _line_indent(text, start)
        body = _render([value], unit, newline, outer)
        return text[:start] + body + text[_skip(text, start + 1) + 1 :]
    head, tail = text[: items[-1].end] + ",", text[items[-1].end :]
    lead = _lead(text, items[-1].start)
    if lead is None:
        return f"{head} {json.dumps(value, ensure_ascii=False)}{tail}"
    return f"{head}{newline}{lead}{_render(value, unit, newline, lead)}{tail}"


def _insert(text: str, start: int, members: list[_Member], key: str, value: Any) -> str:
    """Put a member behind the last one of the object at `start`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    if members:
        lead = _lead(text, members[-1].start)
        head, tail = text[: members[-1].end] + ",", text[members[-1].end :]
        if lead is None:
            return f"{head} {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}{tail}"
        return f"{head}{newline}{lead}{json.dumps(key)}: {_render(value, unit, newline, lead)}{tail}"
    close = _skip(text, start + 1)
    outer = _line_indent(text, start)
    lead = outer + unit
    body = f"{newline}{lead}{json.dumps(key)}: {_render(value, unit, newline, lead)}{newline}{outer}"
    return text[: start + 1] + body + text[close:]


def _cut(text: str, start: int, members: list[_Member], key: str) -> str:
    """Take a member out of the object at `start`, with its comma."""
    return _cut_at(text, start, members, next(index for index, member in enumerate(members) if member.key == key))


def _cut_at(text: str, start: int, members: list[_Member], place: int) -> str:
    """Take a member of an object, or an item of a list, out of what begins at `start`, with its comma."""
    if place + 1 < len(members):
        return text[: members[place].start] + text[members[place + 1].start :]
    if place:
        return text[: members[place - 1].end] + text[members[place].end :]
    return text[: start + 1] + text[_skip(text, members[place].end) :]


def _proved(edited: str, expected: Entry) -> str:
    """Return the text when it reads as it should, in the same order."""
    if json.dumps(_parse(edited)) != json.dumps(expected):
        raise EditError("INI101", "the file has a layout that cannot be edited safely.", "this layout", "plain JSON")
    return edited


def _render(value: Any, unit: str, newline: str, lead: str) -> str:
    inner = lead + unit
    if isinstance(value, list) and any(isinstance(item, dict) for item in cast("list[Any]", value)):
        items = [f"{inner}{_render(item, unit, newline, inner)}" for item in cast("list[Any]", value)]
        return "[" + newline + f",{newline}".join(items) + newline + lead + "]"
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    rows = [
        f"{inner}{json.dumps(key)}: {_render(item, unit, newline, inner)}" for key, item in cast("Entry", value).items()
    ]
    return "{" + newline + f",{newline}".join(rows) + newline + lead + "}"


def _unit(text: str) -> str:
    """Return the indentation of the text's first key, two blanks where it has none."""
    first = _members(text, _skip(text, 0))
    return (_lead(text, first[0].start) or "  ") if first else "  "


def _lead(text: str, at: int) -> str | None:
    """Return the white space before `at` when it begins its line, else None."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if "\n" in text[:at] and not before.strip(" \t") else None


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITE:
        at += 1
    return at


def _short(text: str) -> str:
    return f"`{text[:77]}…`" if len(text) > 78 else f"`{text}`"
