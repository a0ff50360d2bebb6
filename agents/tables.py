"""Tables of configuration files, read into dataclasses: closed keys, checked types, and a fix for each slip."""

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast

from annotated_types import Ge, MinLen

from interlock.agents.ask import AgentConfigError
from interlock.core.text import closest

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_ModelT = TypeVar("_ModelT")

Text: TypeAlias = Annotated[str, MinLen(1)]
"""A text that is not empty where it is given; only as a default, "" stands for none."""

Positive: TypeAlias = Annotated[int, Ge(1)]


class Table:
    """One table of a configuration file, which knows its key: `agents.visual-qa`, or nothing for the whole file.

    What reads a value raises `AgentConfigError`, with the key and a fix, for one that is not as it says.
    """

    def __init__(self, values: Mapping[str, Any], path: str, where: str) -> None:
        self.values = values
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
        for name in self.values:
            if name in known:
                continue
            near = closest(name, known)
            fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(known) or 'none'}."
            raise self.error(name, f"unknown key `{name}`", fix)

    def read(self, model: type[_ModelT], keys: Collection[str] | None = None) -> _ModelT:
        """Return a dataclass with the values of some keys, or of all keys, which then are those of the dataclass."""
        from pydantic import ValidationError  # noqa: PLC0415 - 0.1 s that runs without agents of their own do not pay

        if keys is None:
            keys = [each.name for each in fields(cast("Any", model))]
            self.close(keys)
        given = {name: value for name, value in self.values.items() if name in keys}
        for name, value in given.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                fix = "Write it as text or as a finite number."
                raise self.error(name, f"`{name}` holds a date, or a number that is not finite", fix) from error
        try:
            # As JSON, whose lists are taken for tuples while nothing else is taken for another type.
            return _adapter(model).validate_json(json.dumps(given), strict=True)
        except ValidationError as error:
            # What was found may be a key, and is not repeated.
            details = error.errors(include_url=False, include_input=False)[0]
            # The place has the names of types in it where one of several may be written.
            parts = map(str, details["loc"])
            name = ".".join(part for part in parts if part.isidentifier() or part.isdecimal())
            fix = f"Add `{name} = …`." if details["type"] == "missing" else f"Correct `{name}`."
            raise self.error(name, f"`{name}` is refused: {details['msg']}", fix) from error

    def table(self, name: str) -> "Table":
        """Return a table in this table; a missing one is empty."""
        value = self.values.get(name, {})
        if not isinstance(value, Mapping):
            raise self.error(name, f"`{name}` is no table", f"Write its keys below `[{self.key(name)}]`.")
        return Table(cast("Mapping[str, Any]", value), self.path, self.key(name))


@cache
def _adapter(model: type[_ModelT]) -> "TypeAdapter[_ModelT]":
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(model)
