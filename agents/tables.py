"""Strict reading of configuration tables: closed keys, checked types, and a suggestion for each slip."""

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from interlock.agents.ask import AgentConfigError
from interlock.agents.usage import LIMIT_NAMES, Limits
from interlock.core.text import closest

_Default = TypeVar("_Default", int, bool, None)
_Choice = TypeVar("_Choice", bound=str)

_TYPE_NAMES: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    list: "an array",
    dict: "a table",
}


def type_name(value: object) -> str:
    """Return the TOML name of a value's type, for a message."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


class Table:
    """One table of a configuration file, which knows its key: `agents.visual-qa`, or nothing for the whole file.

    What reads a value raises `AgentConfigError`, with the key and a fix, for one that is not as it says.
    """

    def __init__(self, values: Mapping[str, object], path: str, where: str) -> None:
        self._values = values
        self.path = path
        self._where = where

    def key(self, name: str) -> str:
        """Return the full key of a name in this table."""
        return f"{self._where}.{name}" if self._where else name

    def error(self, name: str, message: str, fix: str) -> AgentConfigError:
        """Return the error that a key of this table causes."""
        return AgentConfigError(self.path, self.key(name), message, fix)

    def close(self, known: Collection[str]) -> None:
        """Refuse keys that are not known."""
        for name in self._values:
            if name in known:
                continue
            near = closest(name, known)
            fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(known) or 'none'}."
            raise self.error(name, f"unknown key `{name}`", fix)

    def has(self, name: str) -> bool:
        """Return whether a key is given."""
        return name in self._values

    def raw(self, name: str) -> object:
        """Return a value as read, or None."""
        return self._values.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a non-empty string; a key that is missing has to have a default."""
        if name not in self._values:
            if default is not None:
                return default
            raise self.error(name, f"`{name}` is missing", f'Add `{name} = "…"`.')
        value = self._values[name]
        if not isinstance(value, str):
            raise self.error(name, f"`{name}` is {type_name(value)}, not a string", f'Write `{name} = "…"`.')
        if not value.strip():
            raise self.error(name, f"`{name}` is empty", "Give it a value or remove it.")
        return value

    def number(self, name: str, default: _Default, *, least: int) -> int | _Default:
        """Return a whole number of at least `least`."""
        if name not in self._values:
            return default
        value = self._values[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            message = f"`{name}` is not a whole number from {least}"
            raise self.error(name, message, f"Write `{name} = {max(default or 1, least)}` or another whole number.")
        return value

    def flag(self, name: str, default: _Default) -> bool | _Default:
        """Return true or false."""
        value = self._values.get(name, default)
        if name in self._values and not isinstance(value, bool):
            raise self.error(name, f"`{name}` is {type_name(value)}, not true or false", f"Write `{name} = true`.")
        return cast("bool | _Default", value)

    def choice(self, name: str, choices: Collection[_Choice], default: _Choice) -> _Choice:
        """Return one of several texts."""
        text = self.text(name, default)
        for each in choices:
            if text == each:
                return each
        known = ", ".join(f'"{each}"' for each in choices)
        raise self.error(name, f"`{name}` is `{text}`, which is none of those that are known", f"Write one of {known}.")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; a missing one is empty."""
        value: object = self._values.get(name, [])
        rows = cast("list[object]", value) if isinstance(value, list) else [None]
        texts = [each for each in rows if isinstance(each, str)]
        if len(texts) < len(rows):
            message = f"`{name}` is {type_name(self.raw(name))}, not a list of strings"
            raise self.error(name, message, f'Write `{name} = ["…", "…"]`.')
        return tuple(texts)

    def table(self, name: str) -> "Table":
        """Return a table in this table; a missing one is empty."""
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            message = f"`{name}` is {type_name(value)}, not a table"
            raise self.error(name, message, f"Write its keys below `[{self._heading(name)}]`.")
        return Table(cast("dict[str, object]", value), self.path, self.key(name))

    def tables(self, name: str) -> list["Table"]:
        """Return the tables of an array of tables; a missing key has none."""
        value = self._values.get(name, [])
        fix = f"Write each one as `[[{self._heading(name)}]]`."
        if not isinstance(value, list):
            raise self.error(name, f"`{name}` is {type_name(value)}, not an array of tables", fix)
        rows: list[Table] = []
        for number, row in enumerate(cast("list[object]", value), start=1):
            if not isinstance(row, dict):
                raise self.error(name, f"item {number} of `{name}` is {type_name(row)}, not a table", fix)
            rows.append(Table(cast("dict[str, object]", row), self.path, f"{self.key(name)}[{number}]"))
        return rows

    def _heading(self, name: str) -> str:
        parent = self._where.partition("[")[0]
        return f"{parent}.{name}" if parent else name


def read_limits(table: Table) -> Limits:
    """Return the limits of a `budget` table.

    Raises:
        AgentConfigError: When a key is not known, or a value is no number above 0.
    """
    table.close(LIMIT_NAMES)
    values: dict[str, Any] = {}
    for name in LIMIT_NAMES:
        value = table.raw(name)
        whole = name in ("calls", "tokens")
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not 0 < value < math.inf:
            kind = "whole number" if whole else "number"
            raise table.error(name, f"`{name}` is no {kind} above 0", f"Write `{name} = 100`, or leave it out.")
        values[name] = value
    return Limits(**values)
