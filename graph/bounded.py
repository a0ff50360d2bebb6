"""Bounding what goes into a journal line: long texts and long lists are cut, with a mark that says so."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

Json: TypeAlias = Any

MAX_TEXT_CHARS = 2000
MAX_ITEMS = 50


def bounded(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy whose texts have at most 2000 characters and whose lists at most 50 items, at every depth."""
    return cast("dict[str, Any]", _cut(dict(value)))


def _cut(value: Json) -> Json:
    if isinstance(value, str):
        left = len(value) - MAX_TEXT_CHARS
        return value if left <= 0 else f"{value[:MAX_TEXT_CHARS]}… ({left} more characters)"
    if isinstance(value, (list, tuple)):
        items = cast("list[Json] | tuple[Json, ...]", value)
        kept = [_cut(item) for item in items[:MAX_ITEMS]]
        return kept if len(items) <= MAX_ITEMS else [*kept, f"… ({len(items) - MAX_ITEMS} more)"]
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in cast("dict[str, Json]", value).items()}
    return value
