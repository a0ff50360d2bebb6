"""Messages are checked before the SDK parses them: each line of standard input, each body of a request."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.redaction import redact
from interlock.server.rules import (
    MAX_DEPTH,
    MAX_MESSAGE_BYTES,
    MAX_VALUES,
    BadMessage,
    RequestId,
    cut,
    is_broken,
    kind,
    problem,
    said,
)

_HEAD_BYTES: Final = 64 * 1024
_TAIL_BYTES: Final = 1024
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_LAST_ID: Final = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*\}\s*$')
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def inspect(raw: bytes) -> BadMessage | None:
    """Return what keeps a line of standard input, or the body of a request, from being acted on, or None.

    Of one that is longer than `MAX_MESSAGE_BYTES` the middle may be missing: its id is looked for at both ends.
    """
    message = read_message(raw)
    return message if isinstance(message, BadMessage) else None


def read_message(raw: bytes) -> dict[str, Any] | BadMessage:
    """Return the JSON-RPC message that some bytes hold, or why they hold none (see `inspect`)."""
    if len(raw) > MAX_MESSAGE_BYTES:
        return _of(raw, problem("MCP103", "The message is too long.", found=f"more than {MAX_MESSAGE_BYTES} bytes"))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x}"
        return _of(raw, problem("MCP102", "The message is not UTF-8.", place=f"byte {error.start}", found=found))
    if _is_crowded(raw):
        return _of(raw, _crowded())
    oddities: list[object] = []
    try:
        value = _decoder(oddities).decode(text)
    except json.JSONDecodeError as error:
        # Where it is no JSON, a key may lie on both sides of the position.
        found = text[error.pos : error.pos + 20] if redact(text) == text else "a text that holds a key"
        found = found or "the end"
        fault = problem("MCP101", f"The message is not JSON: {error.msg}.", place=f"character {error.pos}", found=found)
        return _of(raw, fault)
    except RecursionError:
        return _of(raw, problem("MCP106", "The message is nested too deep.", found="hundreds of levels"))
    except ValueError:
        return _of(raw, problem("MCP105", "A number is too long to be read.", found="more than 4300 digits"))
    opened, commas = _marks(raw)
    # A value is at the beginning, behind a bracket, or behind a comma.
    crowded = opened > MAX_DEPTH or opened + commas >= MAX_VALUES
    fault = _walk(value) if oddities or crowded or _SURROGATE.search(raw) else None
    fault = fault or _not_rpc(value)
    return value if fault is None else BadMessage(fault, _id_of(value))


def _marks(text: bytes) -> tuple[int, int]:
    return text.count(b"[") + text.count(b"{"), text.count(b",")


def _is_crowded(raw: bytes) -> bool:
    """Return whether a message surely holds too many values, before any of them is made.

    Each object and array is a value, and each comma comes before one; those inside of texts are none.
    """
    if max(_marks(raw)) <= MAX_VALUES:
        return False
    quotes_are_ends = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return max(_marks(b"".join(quotes_are_ends.split(b'"')[::2]))) > MAX_VALUES


def _crowded() -> Finding:
    return problem("MCP109", "The message holds too many values.", found=f"more than {MAX_VALUES} values")


class _Twice(dict[str, Any]):
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]


@dataclass(frozen=True, slots=True)
class _NotANumber:
    """What is written in place of a number, and is none in JSON."""

    text: str


def _decoder(oddities: list[object]) -> json.JSONDecoder:
    """Return a decoder that keeps what `json` would let pass, and notes that there is some."""

    def note(item: Any) -> Any:
        oddities.append(item)
        return item

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        return read if len(read) == len(pairs) else note(_Twice(pairs))

    def read_float(text: str) -> Any:
        number = float(text)
        return note(_NotANumber(text)) if number in (float("inf"), float("-inf")) else number

    return json.JSONDecoder(
        object_pairs_hook=read_object, parse_constant=lambda text: note(_NotANumber(text)), parse_float=read_float
    )


def _walk(value: Any) -> Finding | None:
    """Return the first thing in a value that no message may hold; it may be deep or large, so one path is kept."""
    path: list[str | int] = []
    ahead: list[Iterator[tuple[str | int, Any]]] = [iter([("", value)])]
    left = MAX_VALUES
    while ahead:
        step = next(ahead[-1], None)
        if step is None:
            ahead.pop()
            del path[-1:]
            continue
        left -= 1
        if left < 0:
            return _crowded()
        name, item = step
        fault = _fault(name, item, len(ahead))
        if fault is not None:
            return fault._replace(field=_place([*path, name]))
        if isinstance(item, dict | list):
            path.append(name)
            ahead.append(_members(cast("dict[str, Any] | list[Any]", item)))
    return None


def _fault(name: str | int, item: Any, depth: int) -> Finding | None:
    """Return what is wrong with one member, by its name, its value, and its level from 1."""
    for text in (name, item):
        if isinstance(text, str) and is_broken(text):
            return problem("MCP107", "A text holds half of a surrogate pair.", found=ascii(text))
    if isinstance(item, _NotANumber):
        return problem("MCP105", f"`{cut(item.text)}` is not a JSON number.", found=item.text)
    if isinstance(item, dict | list) and depth > MAX_DEPTH:
        return problem("MCP106", "The message is nested too deep.", found=f"more than {MAX_DEPTH} levels")
    if isinstance(item, _Twice):
        text = f"The key {json.dumps(cut(item.names[0]))} is twice in one object."
        return problem("MCP104", text, found=item.names[0])
    return None


def _members(item: dict[str, Any] | list[Any]) -> Iterator[tuple[str | int, Any]]:
    return iter(enumerate(item)) if isinstance(item, list) else iter(item.items())


def _place(path: Sequence[str | int]) -> str:
    return cut("".join(f"[{part}]" if isinstance(part, int) else f".{cut(part)}" for part in path).lstrip("."))


def _not_rpc(given: Any) -> Finding | None:
    if not isinstance(given, dict):
        return problem("MCP108", "The message is not an object.", found=kind(given))
    value = cast("dict[str, Any]", given)
    if value.get("jsonrpc") != "2.0":
        return problem("MCP108", "The message is not JSON-RPC 2.0.", place="jsonrpc", found=said(value, "jsonrpc"))
    if "method" not in value:
        if "result" in value or "error" in value:
            return None
        return problem("MCP108", "The message has no method.", place="method", found="nothing")
    if not isinstance(value["method"], str):
        return problem("MCP108", "The method is not a text.", place="method", found=said(value, "method"))
    if redact(value["method"]) != value["method"]:
        return problem(
            "MCP108", "The method holds a key of the server's environment.", place="method",
            found=value["method"], expected="a method of the protocol", fix="Leave the key out.",
        )  # fmt: skip
    if "id" in value and _id_of(value) is None:
        return problem(
            "MCP108", "The id is neither a text nor a whole number.", place="id", found=said(value, "id"),
            expected="a text or a whole number; none for a notification", fix="Number the requests.",
        )  # fmt: skip
    if not isinstance(value.get("params", {}), dict):
        return problem("MCP108", "The parameters are not an object.", place="params", found=said(value, "params"))
    return None


def _id_of(value: Any) -> RequestId | None:
    if not isinstance(value, dict) or (isinstance(value, _Twice) and "id" in value.names):
        return None
    given: object = cast("dict[str, Any]", value).get("id")
    if isinstance(given, str):
        return None if is_broken(given) else given
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _of(raw: bytes, fault: Finding) -> BadMessage:
    """Return the finding with the request's id, read from a message that cannot be parsed."""
    tail = _LAST_ID.search(raw[-_TAIL_BYTES:])
    found = _first_id(raw[:_HEAD_BYTES]) or (tail and tail.group(1))
    try:
        value = json.loads(found) if found else None
    except ValueError:
        value = None
    return BadMessage(fault, _id_of({"id": value}))


def _first_id(head: bytes) -> bytes | None:
    """Return the value of the key `id` of the outermost object, as it is written at the beginning of a message."""
    depth, before, last = 0, b"", b""
    for match in _TOKEN.finditer(head):
        token = match.group()
        if depth == 1 and before == b'"id"' and last == b":":
            return token
        depth += (token in b"{[") - (token in b"}]")
        before, last = last, token
    return None
