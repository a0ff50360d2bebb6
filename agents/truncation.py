"""How much of something fits into an answer: sizes are those of its JSON text in UTF-8."""

import json
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, TypeVar

CONTENT_BYTES: Final = 56 * 1024
"""So much of an answer of a tool is for what files hold; at most 8 KiB more for what is said about them."""

_T = TypeVar("_T")


def cost(value: object) -> int:
    """Return how many bytes a value takes in an answer."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def cut(text: str, limit_bytes: int = CONTENT_BYTES) -> str:
    """Return the longest beginning of a text that costs at most `limit_bytes`."""
    # Each character costs a byte at least, so that nothing behind this can fit.
    text = text[:limit_bytes]
    if cost(text) <= limit_bytes:
        return text
    # The longer the beginning, the more it costs, so that halving finds the place.
    return text[: bisect_right(range(len(text)), limit_bytes, key=lambda size: cost(text[:size])) - 1]


def ends(text: str, limit_bytes: int = CONTENT_BYTES) -> str:
    """Return a text that costs at most `limit_bytes`: beginning and end, with a line where something is missing."""
    if len(text) <= limit_bytes and cost(text) <= limit_bytes:
        return text
    # Twice 32 bytes hold the line in the middle. The end is cut as a beginning is, read backwards.
    half = limit_bytes // 2 - 32
    head, tail = cut(text, half), cut(text[-half:][::-1], half)[::-1]
    return f"{head}\n[{len(text) - len(head) - len(tail)} characters left out]\n{tail}"


def taken(items: Iterable[_T], count: int, limit_bytes: int = CONTENT_BYTES) -> tuple[list[_T], bool]:
    """Return the first items, at most `count`, that cost at most `limit_bytes` together, and whether there are more."""
    fitting: list[_T] = []
    for item in items:
        # A comma and a blank follow each item.
        limit_bytes -= cost(item) + 2
        if len(fitting) == count or limit_bytes < 0:
            return fitting, True
        fitting.append(item)
    return fitting, False
