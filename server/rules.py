"""The rules that messages and calls are checked against before anything acts on them, and the finding of one."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias, cast

from interlock.redaction import redact, redactor_for

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The longest message that is read; the SDK bounds an HTTP body by the same number."""
MAX_DEPTH: Final = 64
"""How deep objects and arrays of one message may be nested; a ticket needs 8 levels."""
MAX_VALUES: Final = 100_000
"""How many values one message may hold; each costs time on the loop that answers everybody."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600

RequestId: TypeAlias = str | int

_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class GuardRule:
    """One row: what a message or a call must be.

    Args:
        code: Stable code.
        title: The rule, one sentence.
        expected: What would be right, a phrase.
        fix: What to do, in the imperative.
        rpc_code: The JSON-RPC code that a refused message is answered with; 0 where a call is refused.
    """

    code: str
    title: str
    expected: str
    fix: str
    rpc_code: int = 0


RULES: Final = {
    row.code: row
    for row in (
        GuardRule("MCP101", "A message is JSON.", "one JSON object", "Send one JSON object per line.", PARSE_ERROR),
        GuardRule("MCP102", "A message is UTF-8.", "UTF-8 text", "Encode the message as UTF-8.", PARSE_ERROR),
        GuardRule("MCP103", "A message is bounded.", f"at most {MAX_MESSAGE_BYTES} bytes",
                  "Send less; put long texts into files below the root and name those.", INVALID_REQUEST),
        GuardRule("MCP104", "No object has a key twice.", "each key once",
                  "Keep one of the two, so that nobody has to guess which one counts.", INVALID_REQUEST),
        GuardRule("MCP105", "Numbers are those of JSON.", "a finite number of at most 4300 digits",
                  "Write a finite number, null, or a text.", INVALID_REQUEST),
        GuardRule("MCP106", "Nesting is bounded.", f"at most {MAX_DEPTH} levels", "Send a flatter value.",
                  INVALID_REQUEST),
        GuardRule("MCP107", "Texts hold characters.", "surrogates in pairs",
                  "Escape a character beyond U+FFFF as a pair, or write it as UTF-8.", INVALID_REQUEST),
        GuardRule("MCP108", "A message is JSON-RPC 2.0.", 'an object with "jsonrpc": "2.0"',
                  "Send one request, notification or response; batches are not taken.", INVALID_REQUEST),
        GuardRule("MCP109", "The number of values is bounded.", f"at most {MAX_VALUES} values",
                  "Send less; put long lists into files below the root and name those.", INVALID_REQUEST),
        GuardRule("MCP201", "The tool is one that is listed.", "a name of `tools/list`", "Call a tool that is listed."),
        GuardRule("MCP202", "An argument is one that the tool has.", "the tool's own arguments",
                  "Leave the argument out, or write the name that was meant."),
        GuardRule("MCP203", "A required argument is there.", "every required argument", "Add the argument."),
        GuardRule("MCP204", "An argument has its type.", "the type in the tool's schema", "Send it as that type."),
        GuardRule("MCP205", "What names something holds no key of the server's environment.", "a name without a key",
                  "Leave the key out. It is taken out of prose, and not out of what names something."),
    )
}  # fmt: skip
"""Every rule of this module by code."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a message or a call is refused.

    Args:
        code: The rule, a row of `RULES`.
        message: What is wrong, one sentence.
        place: Where: `params.arguments.revision`, or `character 17`; empty for the whole.
        found: What stands there, bounded.
        expected: What should.
        fix: What to do, in the imperative.
        request_id: The id to answer with, where it could be read.
    """

    code: str
    message: str
    place: str
    found: str
    expected: str
    fix: str
    request_id: RequestId | None = None

    def to_json(self) -> dict[str, str]:
        """Return the finding as JSON values, without the request's id and without keys of the environment."""
        data = asdict(self)
        del data["request_id"]
        return redactor_for().value(data)

    def to_rpc(self) -> dict[str, Any]:
        """Return the JSON-RPC error that answers a refused message; its `data` is the finding."""
        data = self.to_json()
        error = {"code": RULES[self.code].rpc_code, "message": f"{self.code}: {data['message']} {data['fix']}"}
        return {"jsonrpc": "2.0", "id": self.request_id, "error": {**error, "data": data}}


def problem(code: str, message: str, *, place: str = "", found: str = "", expected: str = "", fix: str = "") -> Problem:
    """Return a finding of a rule; what is not said comes from its row."""
    row = RULES[code]
    return Problem(code, message, place, cut(found), expected or row.expected, fix or row.fix)


def is_broken(text: str) -> bool:
    """Say whether a text holds half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def kind(value: object) -> str:
    """Return in words what sort of JSON value this is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return "a number"


def shown(value: object) -> str:
    """Return a value for `found`: scalars as JSON, the rest by its sort."""
    if isinstance(value, dict | list):
        return kind(cast("object", value))
    return f"the text {json.dumps(value)}" if isinstance(value, str) else json.dumps(value)


def said(value: Mapping[str, Any], key: str) -> str:
    """Return what stands under a key, for `found`."""
    return shown(value[key]) if key in value else "nothing"


def cut(text: str) -> str:
    """Return a text as it may be shown: without keys, bounded, and free of half surrogate pairs."""
    text = redact(text)  # before it is cut: the beginning of a key would not be known as one
    safe = text.encode("ascii", "backslashreplace").decode() if is_broken(text) else text
    return safe if len(safe) <= _SHOWN else safe[: _SHOWN - 1] + "…"
