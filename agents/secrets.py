"""The values of the environment that look like keys, taken out of every text that is kept or shown."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, cast
from urllib.parse import quote, quote_plus

MIN_CHARS: Final = 8
"""A shorter value is no key; it would be found in texts by chance."""
MIN_LINE_CHARS: Final = 16
"""So long is a line of a key of several lines that is one by itself."""

_KEYLIKE: Final = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(?:[_\-.]|\d|$)", re.IGNORECASE | re.ASCII
)


@cache
def looks_like_key(name: str) -> bool:
    """Say whether a variable holds a key by its name: a word of it ends with KEY, TOKEN, SECRET, PASSWORD and such."""
    return _KEYLIKE.search(name) is not None


class Redactor:
    """Puts `[NAME]` in place of the value of each variable NAME that looks like a key, in any of its usual spellings.

    Found are the value itself, URL-quoted, escaped as in JSON, as part of a base64 text, and each line of a key of
    several lines. The environment is looked at each time, for a program may load its keys late; a key that was set
    once stays known.

    Args:
        also: Names of variables that hold keys, whatever they are called.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._also = frozenset(also)
        self._known: frozenset[tuple[str, str]] = frozenset()
        self._names: dict[str, str] = {}
        self._found: re.Pattern[str] | None = None
        self._look()

    def _look(self) -> bool:
        """Learn the keys that are set now, and say whether any is known."""
        names = [name for name in list(os.environ) if name in self._also or looks_like_key(name)]
        now = {(name, value) for name in names if len(value := os.environ.get(name, "").strip()) >= MIN_CHARS}
        if not now <= self._known:
            known, found = self._known | now, dict[str, str]()
            for name, value in sorted(known):
                for spelling in _spellings(value):
                    found.setdefault(spelling, name)
            self._names = found
            self._found = re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))
            self._known = known  # last, for other threads that look meanwhile
        return bool(self._known)

    def text(self, text: str) -> str:
        """Return a text without the keys."""
        return self._clean(text) if self._look() else text

    def _clean(self, text: str) -> str:
        assert self._found is not None
        return self._found.sub(lambda match: f"[{self._names[match[0]]}]", text)

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a file without the keys."""
        if not self._look():
            return data
        # Every byte comes back as it was; half a character cannot be part of a key.
        return self._clean(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """Return a JSON value without the keys, in its texts and its names."""
        return self._cleaned(value) if self._look() else value

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, (list, tuple)):
            return [self._cleaned(item) for item in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            return {self._clean(key): self._cleaned(item) for key, item in cast("Mapping[str, Any]", value).items()}
        return value


def redact(text: str) -> str:
    """Return a text without the values of variables that look like keys: each is replaced by `[NAME]`."""
    return Redactor().text(text)


def _spellings(value: str) -> Iterator[str]:
    yield value
    # A key of several lines is quoted with other indents and line ends, and in part; what holds blanks is prose.
    yield from (row for line in value.splitlines() if len(row := line.strip()) >= MIN_LINE_CHARS and " " not in row)
    yield quote(value, errors="surrogateescape")
    yield quote(value, safe="", errors="surrogateescape")
    yield quote_plus(value, errors="surrogateescape")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    data = value.encode("utf-8", "surrogateescape")
    for before in range(3):
        # Of three bytes that become four characters, what stands around the key may share the first and the last.
        text = b64encode(b"\0" * before + data).decode("ascii").rstrip("=")
        whole = text[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        if len(whole) >= MIN_CHARS:
            yield whole
            yield whole.translate(str.maketrans("+/", "-_"))
