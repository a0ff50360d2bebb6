"""One line of the journal: its bytes, its hash, and how both are read."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Any, Final, TypeAlias, cast

from interlock.core.finding import Finding
from interlock.core.json import canonical
from interlock.journal.errors import flaw

# Enough for the largest event that runs write (160 KiB, `graph/task/record.py`), its names and its hashes.
MAX_LINE_BYTES: Final = 256 * 1024
"""The longest line that is written or read, its newline included."""

MAX_NAME_CHARS: Final = 512
"""The longest run, key or type."""

# Well below Python's own limit, so that what is written can always be read again.
MAX_DEPTH: Final = 64
"""How deep objects and arrays may be nested."""

_TYPES: Final[dict[str, type]] = {
    "at": str,
    "data": dict,
    "hash": str,
    "key": str,
    "prev": str,
    "run": str,
    "seq": int,
    "type": str,
}
_Fields: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a run: what proves that no line of it was lost.

    Args:
        seq: Number of lines of the run.
        hash: Hash of its last line, 64 hex digits.
    """

    seq: int
    hash: str


# No SHA-256 of a line is all zeros, so the first line of a run cannot stand for a later one.
START: Final = Head(0, "0" * 64)
"""What the first line of a run follows."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a caller wants to have written; the fields are those of an `Entry`."""

    run: str
    key: str
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as the journal holds it.

    Args:
        run: The run that it belongs to.
        seq: Its number in the run, from 1.
        key: What makes a repeated append find this line again; unique in the run.
        type: The kind of event; the journal does not know what it means.
        at: When it was appended, UTC, RFC 3339 with microseconds.
        data: The event, JSON types only.
        prev: Hash of the run's line before, or 64 zeros.
        hash: SHA-256 over the canonical line without this field, 64 hex digits.
    """

    run: str
    seq: int
    key: str
    type: str
    at: str
    data: Mapping[str, Any]
    prev: str
    hash: str


_text = encode_basestring_ascii


def not_json(value: object, depth: int = 0) -> str:
    """Return what in `value` would not come back from JSON as it went in; empty when all of it would."""
    if depth > MAX_DEPTH:
        return f"it is nested deeper than {MAX_DEPTH} levels"
    # The commonest kinds come first: every event that is written goes through here, value by value.
    if isinstance(value, str):
        return ""
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                return f"the key {key!r} is not a string"
            if flaw := not_json(item, depth + 1):
                return flaw
        return ""
    if isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            if flaw := not_json(item, depth + 1):
                return flaw
        return ""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        # Python itself refuses to print very large ones.
        return "" if value.bit_length() <= 1024 else "an integer has more than 1024 bits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is not a JSON number"
    return f"{type(value).__name__} is not a JSON type"


def make(event: Event, *, after: Head, at: str) -> tuple[Entry, bytes]:
    """Make the entry that follows a head, and its line with the newline. The data must have passed `not_json`."""
    data = canonical(event.data)
    seq = after.seq + 1
    # The fields are in alphabetical order, as `canonical` writes them. So the line is canonical JSON with its hash
    # in it, and the hash is that of the same bytes without that one field.
    before = f'{{"at":{_text(at)},"data":'.encode("ascii") + data
    behind = _behind(event.key, after.hash, event.run, seq, event.type)
    digest = sha256(before + behind).hexdigest()
    entry = Entry(event.run, seq, event.key, event.type, at, json.loads(data), prev=after.hash, hash=digest)
    return entry, before + _member(digest) + behind + b"\n"


def decode(raw: bytes) -> Entry | Finding:
    """Read one line, its newline included.

    The hash is that of the bytes as they are without its own field. So no byte can have changed since they were hashed,
    whatever the data look like.
    """
    try:
        fields: Any = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return _damaged(raw, f"the line is not JSON: {str(error)[:120]}")
    # `type(item)`, since `isinstance` takes `true` for a number: `"seq": true` is not what an append writes.
    if not isinstance(fields, dict) or {name: type(item) for name, item in cast("_Fields", fields).items()} != _TYPES:
        return _damaged(raw, "the fields are not those of an entry, each of its type")
    entry = Entry(**cast("_Fields", fields))
    behind = _behind(entry.key, entry.prev, entry.run, entry.seq, entry.type)
    # What follows the data is made anew from the fields and compared byte by byte. A second `"run"`, a blank or another
    # order of the fields would else be read as the same entry, and `files.search` would not find the line.
    ending = _member(entry.hash) + behind + b"\n"
    if not raw.endswith(ending):
        return _damaged(raw, "the fields behind the data are not written as an append writes them", entry.run)
    # Only the data are hashed as they stand: they are the one part that was not just made anew.
    right = sha256(raw[: -len(ending)] + behind).hexdigest()
    if right != entry.hash:
        return flaw("JRN701", "the hash does not belong to the line", entry.hash, right, entry.run)
    return entry


def _behind(key: str, prev: str, run: str, seq: int, type: str) -> bytes:  # noqa: A002
    """Return the end of a line, behind the hash."""
    names = f',"key":{_text(key)},"prev":{_text(prev)},"run":{_text(run)},"seq":{seq},"type":{_text(type)}}}'
    return names.encode("ascii")


def _member(digest: str) -> bytes:
    return b',"hash":' + _text(digest).encode("ascii")


def _damaged(raw: bytes, message: str, run: str = "") -> Finding:
    found = raw[:80].decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    return flaw("JRN701", message, found, f"one JSON object with {', '.join(_TYPES)}", run)
