"""The values of the environment that look like keys, taken out of every text that is kept or shown.

A text that is prose, such as a reason or a message, is kept with `[NAME]` in place of a key. A text that names
something, such as a path, a pattern or a run id, is refused: with another text in it, it would name something else.
`clean_arguments` distinguishes the two by the names of arguments; one that it does not know counts as a name.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final, cast

from interlock.core.errors import InterlockError
from interlock.core.json import each_once

MIN_CHARS: Final = 8
"""A shorter value is no key; it would be found in texts by chance."""
_LONG_CHARS: Final = 4096
_MAX_CONFIGURATION: Final = 1024 * 1024
MIN_LINE_CHARS: Final = 16
"""So long is a line of a key of several lines that is one by itself."""

PROSE: Final = frozenset(
    {
        "acceptance_criteria",
        "actions_taken",
        "body",
        "checkpoints",
        "constraints",
        "description",
        "envelope",
        "final_summary",
        "intent",
        "outputs",
        "reason",
        "retrieval_justification",
        "snippet",
        "task.task",
        "text",
        "title",
        "topic",
        "unknowns",
    }
)
"""The arguments of tools and commands, and the keys in them, that hold prose; a dotted one counts below that argument.
"""

_KEYLIKE: Final = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(?:[_\-.]|\d|$)", re.IGNORECASE | re.ASCII
)


@cache
def looks_like_key(name: str) -> bool:
    """Return whether a variable holds a key by its name: a word of it ends in KEY, TOKEN, SECRET, PASSWORD and such."""
    return _KEYLIKE.search(name) is not None


class Redactor:
    """Puts `[NAME]` in place of the value of each variable NAME that looks like a key, in any of its usual spellings.

    Found are the value itself, URL-quoted, escaped as in JSON (once or twice) or as Python quotes it, as part of a
    base64 text, and each line of a key of several lines. The environment is looked at each time, for a program may load
    its keys late; a key that was set once stays known. Variables named in `also` hold keys, whatever they are called.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._also = frozenset(also)
        self._known: frozenset[tuple[str, str]] = frozenset()
        self._names: dict[str, str] = {}
        self._found: re.Pattern[str] | None = None
        self.has_keys()

    def has_keys(self) -> bool:
        """Learn the keys that are set now; return whether any is known."""
        names = [name for name in list(os.environ) if name in self._also or looks_like_key(name)]
        now = {(name, value) for name in names if len(value := os.environ.get(name, "").strip()) >= MIN_CHARS}
        if not now <= self._known:
            known, found = self._known | now, dict[str, str]()
            for name, value in sorted(known):
                for spelling in _spellings(value):
                    found.setdefault(spelling, name)
            self._names = found
            # The longest first: a key may begin with another one, and the rest of it would stay in the text.
            self._found = re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))
            self._known = known  # last, for other threads that look meanwhile
        return bool(self._known)

    def text(self, text: str) -> str:
        """Return a text without the keys."""
        return self._clean(text) if self.has_keys() else text

    def _clean(self, text: str) -> str:
        assert self._found is not None
        if len(text) > _LONG_CHARS and not any(spelling in text for spelling in self._names):
            return text  # ten times as fast as the pattern, and what is so long seldom holds a key
        return self._found.sub(lambda match: f"[{self._names[match[0]]}]", text)

    def name_of_key(self, text: str) -> str | None:
        """Return the variable whose key a text holds, or None when it holds none."""
        if not self.has_keys():
            return None
        assert self._found is not None
        found = self._found.search(text)
        return None if found is None else self._names[found[0]]

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a file without the keys."""
        if not self.has_keys():
            return data
        # Every byte comes back as it was; half a character cannot be part of a key.
        return self._clean(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """Return a JSON value without the keys, in its texts and its names."""
        return self._cleaned(value) if self.has_keys() else value

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, (list, tuple)):
            return [self._cleaned(item) for item in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            return {self._clean(key): self._cleaned(item) for key, item in cast("Mapping[str, Any]", value).items()}
        return value


class KeyRefused(InterlockError):  # noqa: N818 - reads as what it says at the place that catches it
    """A text that names something holds a key.

    Fix: Keys are taken out of prose, but a name is kept as it is, in journals and messages. Take the key out of the
    name; where it was shown already, replace the key.
    """

    code = "KEY101"

    def __init__(self, place: str, name: str) -> None:
        message = f"`{place}` holds the value of the environment variable {name}, which is a key"
        fix = f"Leave the key out of `{place}`: what names something is kept as it is, and a key is not kept."
        super().__init__(message, fix)
        self.place = place


def clean_arguments(arguments: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return the arguments of a call with the keys taken out of prose.

    A text that is a JSON object or array is looked into; where it holds a key it comes back as JSON of the same value.

    Raises:
        KeyRefused: A key is in something that is no prose, or in a name.
    """
    if not redactor.has_keys():
        return dict(arguments)

    def clean(value: Any, place: str, path: str, *, free: bool) -> Any:
        free = free or path in PROSE or path.rpartition(".")[2] in PROSE
        if isinstance(value, str):
            # A payload may be sent as a text of JSON, whose prose may hold keys and whose names may not.
            held = _json_in(value)
            if held is not None and (found := clean(held, place, path, free=free)) != held:
                return json.dumps(found, ensure_ascii=False)
            return redactor.text(value) if free else unkeyed(value, place)
        if isinstance(value, (list, tuple)):
            items = enumerate(cast("list[Any]", value))
            return [clean(item, f"{place}[{at}]", path, free=free) for at, item in items]
        if isinstance(value, Mapping):
            rows = cast("Mapping[str, Any]", value).items()
            return {
                unkeyed(str(name), place): clean(
                    item, f"{place}.{name}" if place else str(name), f"{path}.{name}" if path else str(name), free=free
                )
                for name, item in rows
            }
        return value

    def unkeyed(text: str, place: str) -> str:
        if (name := redactor.name_of_key(text)) is not None:
            raise KeyRefused(redactor.text(place) or "arguments", name)
        return text

    return clean(arguments, "", "", free=False)


def _json_in(text: str) -> Any:
    """Return the object or array whose JSON a text is; None for another text, and for a duplicate key."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError):
        return None


def redactor_for(path: str | os.PathLike[str] | None = None, also: Iterable[str] = ()) -> Redactor:
    """Return what takes the keys of a project out of texts; all entry points get it here, and know the same.

    Known are variables that look like keys, and those that `api_key_env` and `webhook_key_env` name in `interlock.toml`
    or `pyproject.toml` in the folder or above it. What was learned of one project stays known in this process. The path
    is the project's root or one in it; `also` names more variables that hold keys.
    """
    _learn(path)
    return Redactor((*_learned, *also))


def long_key_in(text: str, path: str | os.PathLike[str] | None = None) -> str | None:
    """Return the variable whose key of `MIN_LINE_CHARS` or more occurs in a name as it is, or None.

    It is for names that are looked at before each edit of an agent, where there is no time for the other spellings, and
    a refusal for a chance match with a word such as `postgres` would stop the work. Of an agent that is named by its
    session, the name holds `-` in place of marks; so may the key.
    """
    _learn(path)
    for name, value in list(os.environ.items()):
        key = value.strip()
        if len(key) < MIN_LINE_CHARS or not (name in _learned or looks_like_key(name)):
            continue
        if key in text or re.sub(r"[^A-Za-z0-9._-]", "-", key) in text:
            return name
    return None


def _learn(path: str | os.PathLike[str] | None) -> None:
    """Learn which variables the configurations in a folder and above it name as keys."""
    try:
        folder = os.path.abspath(path or os.curdir)  # noqa: PTH100
    except OSError:  # the folder that this process works in was removed
        folder = os.sep
    while True:
        for name in _CONFIGURATIONS:
            _learned.update(_named_in(f"{folder.rstrip(os.sep)}/{name}"))
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            break
        folder = above


def redact(text: str) -> str:
    """Return a text without the values of variables that hold keys: each is replaced by `[NAME]`."""
    return redactor_for().text(text)


_CONFIGURATIONS: Final = ("interlock.toml", "pyproject.toml")
# Read with a pattern: the keys of a file that is no valid TOML have to be known too, for the error quotes it.
_KEY_NAME: Final = rb"""(?:api|webhook)_key_env["']?\s*=\s*["']+([^"'\n]+)"""
_learned: Final[set[str]] = set()


def _named_in(path: str) -> tuple[str, ...]:
    """Return the variables that a configuration names as keys, whether or not it can be used; none where none is."""
    try:
        found = os.stat(path)  # noqa: PTH116
        # The cache is asked by what changes when the file does, since a server lives longer than a configuration.
        return _names_in(path, found.st_ino, found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else ()
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=64)
def _names_in(path: str, *_version: int) -> tuple[str, ...]:
    with open(path, "rb") as file:  # noqa: PTH123
        return tuple(name.decode("utf-8", "replace") for name in re.findall(_KEY_NAME, file.read(_MAX_CONFIGURATION)))


def _spellings(value: str) -> Iterator[str]:
    from base64 import b64encode  # noqa: PLC0415 - commands that start cold need neither where no key is set
    from urllib.parse import quote, quote_plus  # noqa: PLC0415

    yield value
    # A key of several lines is quoted with other indents and line ends, and in part; what holds blanks is prose.
    yield from (row for line in value.splitlines() if len(row := line.strip()) >= MIN_LINE_CHARS and " " not in row)
    for quoted in (
        quote(value, errors="surrogateescape"),
        quote(value, safe="", errors="surrogateescape"),
        quote_plus(value, errors="surrogateescape"),
    ):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield from (escaped, escaped.replace("/", "\\/"))
        yield json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]  # JSON in a text of JSON
        yield from (repr(text)[1:-1] for text in (value, escaped))  # as messages of Python quote it
    data = value.encode("utf-8", "surrogateescape")
    for before in range(3):
        # Of three bytes that become four characters, what is around the key may share the first and the last.
        text = b64encode(b"\0" * before + data).decode("ascii").rstrip("=")
        whole = text[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        if len(whole) >= MIN_CHARS:
            yield whole
            yield whole.translate(str.maketrans("+/", "-_"))
