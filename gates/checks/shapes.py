"""Strict reading of JSON evidence: what its text has to be, and the shape of what it says, as tables.

What is not so raises `MalformedError`, with the part and what is wrong with it.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, cast

from interlock.core.errors import InterlockError


class MalformedError(InterlockError):
    """Bytes are not of the format that a check reads; the message says what is wrong, for `found`."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "Make the file again, as its collector writes it.")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts: the test that it passes, and what is wrong with another one."""

    fits: Callable[[object], bool]
    words: str


Shape: TypeAlias = "Leaf | Mapping[str, Shape] | list[Shape]"
"""What JSON has to look like: a leaf, the keys of an object, or the one shape of every item of a list."""

TEXT: Final = Leaf(lambda value: isinstance(value, str), "is no text")
FILLED: Final = Leaf(lambda value: isinstance(value, str) and value != "", "is no text, or is empty")
FLAG: Final = Leaf(lambda value: isinstance(value, bool), "is neither true nor false")


def one_of(*values: object) -> Leaf:
    """Return the shape of some texts, or None."""
    return Leaf(
        lambda value: (value is None or isinstance(value, str)) and value in values,
        f"is not one of {', '.join(map(str, values))}",
    )


def whole(least: float = -math.inf, *, optional: bool = False) -> Leaf:
    """Return the shape of a whole number; an optional one may be null."""

    def fits(value: object) -> bool:
        number = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return number or (optional and value is None)

    return Leaf(fits, f"is no whole number{f' from {least} up' if least > -math.inf else ''}")


def conform(value: object, shape: Shape, at: str = "the value", *, more: bool = False) -> None:
    """Refuse a JSON value of another shape; with `more` objects may have other keys too, and one that lacks is null."""
    if isinstance(shape, Leaf):
        if not shape.fits(value):
            raise MalformedError(f"{at} {shape.words}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise MalformedError(f"{at} is no list")
        for number, item in enumerate(cast("list[object]", value)):
            conform(item, shape[0], f"{at}[{number}]", more=more)
    elif not isinstance(value, dict):
        raise MalformedError(f"{at} is no object")
    else:
        table = cast("dict[str, object]", value)
        if not more and table.keys() != shape.keys():
            raise MalformedError(f"{at} has not exactly the keys {', '.join(shape)}")
        for name, part in shape.items():
            conform(table.get(name), part, f"`{name}` of {at}", more=more)


def loads(text: str | bytes) -> Any:
    """Read JSON, in UTF-8, strictly: no key twice, no NaN, no nesting that exhausts the stack."""
    try:
        return json.loads(
            decode(text) if isinstance(text, bytes) else text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise MalformedError(f"it is not JSON: {error.msg} (character {error.pos + 1})") from error
    except (RecursionError, ValueError) as error:
        raise MalformedError("it is nested too deeply, or holds a number that is too long") from error


def decode(data: bytes) -> str:
    """Read UTF-8 text without NUL, a byte order mark at its start left out."""
    if b"\0" in data:
        raise MalformedError(f"there is a NUL byte at offset {data.index(0)}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedError(f"byte {error.start} is not UTF-8") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise MalformedError("an object names a key twice")
    return table


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedError(f"{name} is not JSON")
