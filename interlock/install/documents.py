"""The texts of configuration files, JSON and TOML: read into tables, and written back in the layout that they had."""

import json
import re
from collections.abc import MutableMapping
from typing import Any, Final, TypeAlias, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError

from interlock.install.errors import not_editable

Table: TypeAlias = MutableMapping[str, Any]

_INDENT: Final = re.compile(r"\n([ \t]+)\S")


def parse(path: str, text: str) -> Table:
    """Return what a file holds, by the ending of its name: `.toml`, or else JSON. An empty text holds nothing.

    Raises:
        InstallError: `INI101` it cannot be read, or a rewrite would lose a part of it.
    """
    if path.endswith(".toml"):
        try:
            return tomlkit.parse(text)
        except (TOMLKitError, RecursionError) as error:
            message = f"the file is not valid TOML: {error}."
            raise not_editable("INI101", message, "a text that cannot be read", "TOML") from error
    try:
        data: object = json.loads(text or "{}", object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip()
        message = f"the file is not JSON: {error.msg}."
        raise not_editable("INI101", message, quoted(line), "JSON", error.lineno, error.colno) from error
    except RecursionError as error:
        raise not_editable("INI101", "the file is nested too deeply.", "more levels than are read", "JSON") from error
    if not isinstance(data, dict):
        raise not_editable("INI101", "the file holds no JSON object.", quoted(text.strip()), "an object, `{ … }`", 1, 1)
    return cast("Table", data)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice: a rewrite would lose one of its values."""
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise not_editable("INI101", f"the key `{twice}` is twice in one object.", quoted(twice), "each key once")
    return data


def dump(path: str, data: Table, like: str) -> str:
    """Return the text of a table, laid out like the text that it was read from.

    TOML keeps all but what was changed. JSON gets the indentation, the line ends and the way with non-ASCII of `like`;
    in an indented text, a list or an object that was on one line is spread over several.
    """
    if path.endswith(".toml"):
        text = tomlkit.dumps(data)
        # tomlkit writes what is new with `\n`, and keeps `\r\n` in what it read.
        return re.sub(r"(?<!\r)\n", "\r\n", text) if "\r\n" in like else text
    indent = _INDENT.search(like)
    # An empty object says nothing about how its owner lays a file out.
    is_on_one_line = bool(like.strip(" \t\r\n{}")) and indent is None
    width = None if is_on_one_line else indent[1] if indent else "  "
    # A file that is all ASCII may have escaped what is not, and gets that back as it was.
    text = json.dumps(data, ensure_ascii=bool(like) and like.isascii(), indent=width)
    # The end of the text stays as it was, with or without a last line end.
    end = like[len(like.rstrip()) :] if like.strip() else "\n"
    return text.replace("\n", "\r\n") + end if "\r\n" in like else text + end


def subtable(data: Table, name: str, *, make: bool = False) -> Table:
    """Return a table in a table, an empty one where there is none; with `make` it is put there.

    Raises:
        InstallError: `INI102` something else has the name.
    """
    if make:
        data.setdefault(name, {})
    found: object = data.get(name, {})
    if not isinstance(found, MutableMapping):
        raise not_editable("INI102", f"`{name}` is not a table.", quoted(str(found)), f"a table `{name}`")
    return cast("Table", found)


def quoted(text: str) -> str:
    """Return a text in backticks, cut to a length that a line of an error holds."""
    return f"`{text[:77]}…`" if len(text) > 78 else f"`{text}`"
