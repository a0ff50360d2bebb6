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

_KEYLIKE: Final = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(?:[_\-.]|\d|$)", re.IGNORECASE | re.ASCII
)


@cache
def looks_like_key(name: str) -> bool:
    """Say whether a variable holds a key by its name: a word of it ends with KEY, TOKEN, SECRET, PASSWORD and such."""
    return _KEYLIKE.search(name) is not None


class Redactor:
    """Puts `[NAME]` in place of the value of each variable NAME that looks like a key, in any of its usual spellings.

    The environment is read once, when this is made. Found are the value itself, URL-quoted, escaped as in JSON, and
    as part of a base64 text.

    Args:
        also: Names of variables that hold keys, whatever they are called.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        given = frozenset(also)
        self._names: dict[str, str] = {}
        for name, value in sorted(os.environ.items()):
            if (name in given or looks_like_key(name)) and len(value.strip()) >= MIN_CHARS:
                for spelling in _spellings(value.strip()):
                    self._names.setdefault(spelling, name)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._found = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """Return a text without the keys."""
        return text if self._found is None else self._found.sub(lambda match: f"[{self._names[match[0]]}]", text)

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a file without the keys."""
        if self._found is None:
            return data
        # Every byte comes back as it was; half a character cannot be part of a key.
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """Return a JSON value without the keys, in its texts and its names."""
        if self._found is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in cast("Mapping[str, Any]", value).items()}
        return value


def redact(text: str) -> str:
    """Return a text without the values of variables that look like keys: each is replaced by `[NAME]`."""
    return Redactor().text(text)


def _spellings(value: str) -> Iterator[str]:
    yield value
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
