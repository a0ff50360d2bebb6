"""Bounding what goes into a journal line: long texts and long lists are cut, with a mark that says so."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

Json: TypeAlias = Any

MAX_BYTES: Final = 160 * 1024
"""No bounded value is longer as JSON, so that a journal line has room for it."""

_STEPS: Final = ((2000, 50), (400, 50), (200, 20), (80, 8), (16, 2))
"""How many characters of a text and how many items of a list are kept: the first row that fits."""


def bounded(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy that fits into a journal line: texts of at most 2000 characters and lists of at most 50 items.

    Where that is still too much for one line, all texts and lists are cut further.
    """
    cut: dict[str, Any] = {}
    for chars, items in _STEPS:
        cut = cast("dict[str, Any]", _cut(dict(value), chars, items))
        if len(json.dumps(cut)) <= MAX_BYTES:
            break
    return cut


def _cut(value: Json, chars: int, count: int) -> Json:
    if isinstance(value, str):
        left = len(value) - chars
        return value if left <= 0 else f"{value[:chars]}… ({left} more characters)"
    if isinstance(value, (list, tuple)):
        items = cast("list[Json] | tuple[Json, ...]", value)
        kept = [_cut(item, chars, count) for item in items[:count]]
        return kept if len(items) <= count else [*kept, f"… ({len(items) - count} more)"]
    if isinstance(value, dict):
        return {key: _cut(item, chars, count) for key, item in cast("dict[str, Json]", value).items()}
    return value
