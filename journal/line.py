"""One line of the journal: its canonical bytes, its hash, and the strict reading of both."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, cast

from interlock.core.finding import Finding
from interlock.core.json import canonical
from interlock.journal.errors import flaw

MAX_LINE_BYTES: Final = 256 * 1024
"""The longest line that is written or read, its newline included."""

MAX_NAME_CHARS: Final = 512
"""The longest run, key or type."""

MAX_INT_BITS: Final = 1024
"""How large an integer may be; Python itself refuses to print very large ones."""

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

_NAME: Final = rb"[ !#-\[\]-~]*+"
"""A string whose canonical form is the string itself: printable ASCII without quotes and backslashes."""

_PLAIN: Final = re.compile(
    rb'\{"at":"%(name)b","data":\{.*\}(?P<member>,"hash":"(?P<hash>%(digest)b)"),"key":"(?P<key>%(name)b)"'
    rb',"prev":"(?P<prev>%(digest)b)","run":"(?P<run>%(name)b)","seq":(?P<seq>[1-9][0-9]{0,17}+),"type":"%(name)b"\}\n'
    % {b"name": _NAME, b"digest": rb"[0-9a-f]{64}"},
    re.DOTALL,
)
"""A line as nearly all are: no string around `data` needs an escape.

Between `"data":{` and `},"hash":` anything may come. The quote of `,"hash"` follows a comma, so it can only open or
close a string; in valid JSON it opens one, and what is matched from there to the end are whole members at one depth,
the last of the object that ends the line. So text within `data` that looks like an end is never taken for it.
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a run: what proves that no line of it was lost.

    Args:
        seq: Number of lines of the run.
        hash: Hash of its last line, 64 hex digits.
    """

    seq: int
    hash: str


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


class Link(NamedTuple):
    """What ties a line to the line before; the fields are those of an `Entry`."""

    run: str
    seq: int
    key: str
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
        return "" if value.bit_length() <= MAX_INT_BITS else f"an integer has more than {MAX_INT_BITS} bits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is not a JSON number"
    return f"{type(value).__name__} is not a JSON type"


def make(event: Event, *, after: Head, at: str) -> tuple[Entry, bytes]:
    """Make the entry that follows a head, and its line with the newline. The data must have passed `not_json`."""
    data = canonical(event.data)
    before, behind = _around_hash(
        {"at": at, "key": event.key, "prev": after.hash, "run": event.run, "seq": after.seq + 1, "type": event.type},
        data,
    )
    digest = _digest(before, behind)
    entry = Entry(event.run, after.seq + 1, event.key, event.type, at, json.loads(data), prev=after.hash, hash=digest)
    return entry, _line(before, digest, behind)


def decode(raw: bytes) -> Entry | Finding:
    """Read one line, its newline included, and accept nothing but the exact bytes that `make` would have written."""
    if len(raw) > MAX_LINE_BYTES:
        return flaw("JRN708", "the line is too long", f"more than {MAX_LINE_BYTES} bytes", f"at most {MAX_LINE_BYTES}")
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return _not_json(raw, error)
    if not isinstance(value, dict):
        return flaw("JRN702", "the line is not an object", _shown(raw), "an object with the eight fields of an entry")
    fields = cast("dict[str, Any]", value)
    run = fields.get("run")
    if wrong := _field_flaw(fields, run if isinstance(run, str) else ""):
        return wrong
    try:
        before, behind = _around_hash(fields, canonical(fields["data"]))
        exact = _line(before, fields["hash"], behind)
    except (ValueError, RecursionError) as error:
        return _not_json(raw, error)
    if exact != raw:
        at = next((i for i, (a, b) in enumerate(zip(raw, exact, strict=False)) if a != b), min(len(raw), len(exact)))
        return flaw(
            "JRN701",
            f"the line is not in canonical form from byte {at} on",
            _shown(raw[at : at + 24]),
            _shown(exact[at : at + 24]),
            fields["run"],
        )
    right = _digest(before, behind)
    if right != fields["hash"]:
        return flaw("JRN703", "the hash does not belong to the line", fields["hash"], right, fields["run"])
    return Entry(**fields)


def skim(raw: bytes) -> Link | None:
    """Read what ties a line to the line before, and check its hash, without reading its data.

    Everything around `data` is held to its canonical form, and the hash to the bytes as they are. Of a line that
    `decode` accepts too, both give the same. What `decode` alone sees is a line that was hashed anew after `data` was
    written in another form, or with more fields behind it: `JRN701` and `JRN702`.

    Returns:
        None when the line is wrong, or only unusual, as with an escape in a name: `decode` knows which.
    """
    if len(raw) > MAX_LINE_BYTES:
        return None
    found = _PLAIN.fullmatch(raw)
    if found is None:
        return None
    digest, key, prev, run, seq = found.group("hash", "key", "prev", "run", "seq")
    start, stop = found.span("member")
    right = _digest(raw[:start], raw[stop:-1])
    if right.encode() != digest:
        return None
    return Link(run.decode(), int(seq), key.decode(), prev.decode(), right)


def _around_hash(fields: Mapping[str, Any], data: bytes) -> tuple[bytes, bytes]:
    before = f'{{"at":{_text(fields["at"])},"data":'
    behind = (
        f',"key":{_text(fields["key"])},"prev":{_text(fields["prev"])},"run":{_text(fields["run"])}'
        f',"seq":{fields["seq"]},"type":{_text(fields["type"])}}}'
    )
    return before.encode("ascii") + data, behind.encode("ascii")


def _digest(before: bytes, behind: bytes) -> str:
    return sha256(before + behind).hexdigest()


def _line(before: bytes, digest: str, behind: bytes) -> bytes:
    return b"".join((before, b',"hash":', _text(digest).encode("ascii"), behind, b"\n"))


def _not_json(raw: bytes, error: Exception) -> Finding:
    reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:120]
    return flaw("JRN701", "the line is not JSON", f"{_shown(raw)} ({reason})", "one canonical JSON object")


def _field_flaw(fields: Mapping[str, Any], run: str) -> Finding | None:
    if fields.keys() != _TYPES.keys():
        missing = ", ".join(sorted(_TYPES.keys() - fields.keys()))
        extra = ", ".join(sorted(repr(name) for name in fields.keys() - _TYPES.keys()))
        found = "; ".join(part for part in (missing and f"missing {missing}", extra and f"unknown {extra}") if part)
        return flaw("JRN702", "the fields are not those of an entry", found, ", ".join(_TYPES), run)
    for name, kind in _TYPES.items():
        if type(fields[name]) is not kind:
            message = f"{name} has the wrong type"
            return flaw("JRN702", message, type(fields[name]).__name__, kind.__name__, run)
    return None


def _shown(raw: bytes) -> str:
    text = raw[:80].decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    return text if len(raw) <= 80 else f"{text}…"
