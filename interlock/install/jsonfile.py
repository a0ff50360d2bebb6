"""JSON settings of a client: read strictly, written back with the indentation and the line ends that they had."""

import json
import re
from typing import Any, Final, NoReturn, TypeAlias, cast

from interlock.install.errors import EditError

Entry: TypeAlias = dict[str, Any]

_INDENT: Final = re.compile(r"\n([ \t]+)\S")


def read_json(text: str) -> Entry:
    """Return the object of a text, `{}` for an empty one.

    Raises:
        EditError: It is no JSON object, has a key twice, a number that is none, or what UTF-8 cannot say.
    """
    try:
        data = json.loads(text or "{}", object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip()
        comment = text.startswith(("//", "/*", "#"), error.pos)
        message = "the file holds a comment, and JSON has none." if comment else f"the file is no JSON: {error.msg}."
        raise EditError("INI101", message, _short(line), "JSON", error.lineno, error.colno) from error
    except RecursionError as error:
        raise EditError("INI101", "the file is nested too deeply.", "more levels than are read", "JSON") from error
    if not isinstance(data, dict):
        raise EditError("INI101", "the file holds no JSON object.", _short(text.strip()), "an object, `{ … }`", 1, 1)
    return cast("Entry", data)


def write_json(data: Entry, like: str = "") -> str:
    """Return the text of an object, laid out like another text: its indentation, line ends and way with non-ASCII.

    An empty text, or one of an empty object, is laid out with two blanks. In an indented text a list or an object that
    stood on one line is spread over several.

    Raises:
        EditError: A string holds half of a character that needs two.
    """
    indent = _INDENT.search(like)
    on_one_line = bool(like.strip(" \t\r\n{}")) and indent is None
    text = json.dumps(
        data, ensure_ascii=bool(like) and like.isascii(), indent=None if on_one_line else indent[1] if indent else "  "
    )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EditError("INI101", "the file holds half a character.", _short(ascii(error.object)), "UTF-8") from error
    end = like[len(like.rstrip()) :] if like.strip() else "\n"
    return text.replace("\n", "\r\n") + end if "\r\n" in like else text + end


def table_of(data: Entry, name: str) -> Entry:
    """Return an object in an object, empty where there is none.

    Raises:
        EditError: Something else has the name.
    """
    rows: object = data.get(name, {})
    if not isinstance(rows, dict):
        found = _short(json.dumps(rows))
        raise EditError("INI102", f"`{name}` is no object.", found, f'`"{name}": {{ … }}`')
    return cast("Entry", rows)


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


def _short(text: str) -> str:
    return f"`{text[:77]}…`" if len(text) > 78 else f"`{text}`"
