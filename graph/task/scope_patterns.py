"""From the scope of a task to patterns of leases: never less than the scope says, and mostly the same."""

import re
from collections.abc import Sequence
from typing import Final

from interlock.gates.patterns import expand
from interlock.reservations.patterns import Pattern, canonical, quote

MAX_ALTERNATIVES: Final = 64
"""A pattern whose braces mean more than so many is held by the folder that they have in common."""

_TOKEN: Final = re.compile(r"\*+|\?|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
_PLAIN_CLASS: Final = re.compile(r"\[[!^]?(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?)+\]", re.ASCII)


def lease_patterns(scope: Sequence[str], below: str = "") -> tuple[str, ...]:
    """Return patterns of leases that cover every path of a scope.

    The two languages differ in corners: braces around brackets, odd classes. There a class becomes `?`, and
    what still is no pattern of a lease becomes the folder before its first wildcard. What `!` takes out is covered all
    the same.

    Args:
        scope: The scope of a task; it compiles.
        below: Where the task's root lies in the checkout; empty when it is the checkout.
    """
    prefix = f"{quote(below)}/" if below else ""
    found: dict[str, None] = {}
    for pattern in scope:
        if not pattern.startswith("!"):
            alternatives = expand(pattern)
            if len(alternatives) > MAX_ALTERNATIVES:
                alternatives = [_folder(pattern.partition("{")[0] + "*")]
            found |= dict.fromkeys(_pattern(prefix, plain) for plain in alternatives)
    return tuple(sorted(found))


def _pattern(prefix: str, plain: str) -> str:
    """Return the pattern of a lease for a scope pattern without braces."""
    written = "/".join("**" if step == "**" else _step(step) for step in plain.split("/"))
    read = canonical(prefix + written)
    return read.text if isinstance(read, Pattern) else prefix + _folder(plain)


def _step(step: str) -> str:
    return "".join(_token(match[0]) for match in _TOKEN.finditer(step))


def _token(text: str) -> str:
    if text[0] == "*":
        return "*"
    if text == "?" or (text[0] == "[" and len(text) > 1 and not _is_plain(text)):
        return "?"
    return text if len(text) > 1 else quote(text)


def _is_plain(text: str) -> bool:
    """Say whether a class means the same in both languages: letters and digits, and ranges that go forwards."""
    return _PLAIN_CLASS.fullmatch(text) is not None and isinstance(canonical(text), Pattern)


def _folder(plain: str) -> str:
    """Return everything below the folders before the first wildcard."""
    names: list[str] = []
    for step in plain.split("/")[:-1]:
        if not {"*", "?", "["}.isdisjoint(step):
            break
        names.append(quote(step))
    return "/".join([*names, "**"])
