"""Patterns as steps, for who walks a tree folder by folder and leaves out what cannot match: the scopes of tasks."""

import re
from typing import TypeAlias

from interlock.core.finding import Finding, FindingError
from interlock.reservations.patterns.charsets import NAME, STAR, Item, single
from interlock.reservations.patterns.globs import read
from interlock.reservations.patterns.overlap import DOUBLE, Part

Step: TypeAlias = re.Pattern[str] | None
"""What one name of a path must match; None stands for any number of names, none included."""

ANY_NAME = re.compile(".*", re.DOTALL)


def steps_of(text: str) -> list[tuple[Step, ...]] | Finding:
    """Return the steps of each alternative of a pattern, or why it is not one; a path is matched by case, in form NFC.

    Everything below a folder is the step None and then `ANY_NAME`.
    """
    try:
        return [
            tuple(each for part in parts for each in [_step(part)])
            + ((ANY_NAME,) if parts[-1] == DOUBLE else ())
            for parts in read(text)
        ]  # fmt: skip
    except FindingError as error:
        return error.finding


def _step(part: Part) -> Step:
    if part == DOUBLE:
        return None
    return ANY_NAME if part == (STAR,) else re.compile("".join(map(_item, part)), re.DOTALL)


def _item(item: Item) -> str:
    if item is None:
        return ".*"
    if item == NAME:
        return "."
    code = single(item)
    if code is not None:
        return re.escape(chr(code))
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in item) + "]"
