"""The rules that messages and calls are checked against before anything acts on them, and the finding of one."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from interlock.core.finding import Finding
from interlock.core.rule import Rule
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


def _row(code: str, title: str, expected: str, remedy: str) -> Rule:
    return Rule(code, "error", title, remedy=remedy, expected=expected)


RULES: Final = {
    row.code: row
    for row in (
        _row("MCP101", "A message is JSON.", "one JSON object", "Send one JSON object per line."),
        _row("MCP102", "A message is UTF-8.", "UTF-8 text", "Encode the message as UTF-8."),
        _row("MCP103", "A message is bounded.", f"at most {MAX_MESSAGE_BYTES} bytes",
             "Send less; put long texts into files below the root and name those."),
        _row("MCP104", "No object has a key twice.", "each key once",
             "Keep one of the two, so that nobody has to guess which one counts."),
        _row("MCP105", "Numbers are those of JSON.", "a finite number of at most 4300 digits",
             "Write a finite number, null, or a text."),
        _row("MCP106", "Nesting is bounded.", f"at most {MAX_DEPTH} levels", "Send a flatter value."),
        _row("MCP107", "Texts hold characters.", "surrogates in pairs",
             "Escape a character beyond U+FFFF as a pair, or write it as UTF-8."),
        _row("MCP108", "A message is JSON-RPC 2.0.", 'an object with "jsonrpc": "2.0"',
             "Send one request, notification or response; batches are not taken."),
        _row("MCP109", "The number of values is bounded.", f"at most {MAX_VALUES} values",
             "Send less; put long lists into files below the root and name those."),
        _row("MCP201", "The tool is one that is listed.", "a name of `tools/list`", "Call a tool that is listed."),
        _row("MCP202", "An argument is one that the tool has.", "the tool's own arguments",
             "Leave the argument out, or write the name that was meant."),
        _row("MCP203", "A required argument is there.", "every required argument", "Add the argument."),
        _row("MCP204", "An argument has its type.", "the type in the tool's schema", "Send it as that type."),
        _row("MCP205", "What names something holds no key of the server's environment.", "a name without a key",
             "Leave the key out. It is taken out of prose, and not out of what names something."),
    )
}  # fmt: skip
"""Every rule of messages (MCP1xx) and of calls (MCP2xx), by code."""


class BadMessage(NamedTuple):
    """A message that is refused.

    Args:
        finding: Why; its field is `params.arguments.revision`, or `character 17`.
        request_id: The id to answer with, where it could be read.
    """

    finding: Finding
    request_id: RequestId | None = None

    def to_rpc(self) -> dict[str, Any]:
        """Return the JSON-RPC error that answers the message; its `data` is the finding."""
        data = refusal_data(self.finding)
        code = PARSE_ERROR if self.finding.code in ("MCP101", "MCP102") else INVALID_REQUEST
        error = {"code": code, "message": f"{self.finding.code}: {data['message']} {data['fix']}"}
        return {"jsonrpc": "2.0", "id": self.request_id, "error": {**error, "data": data}}


def refusal_data(finding: Finding) -> dict[str, str]:
    """Return a finding as JSON values without keys of the environment."""
    return redactor_for().value(finding.to_refusal())


def problem(code: str, message: str, *, place: str = "", found: str = "", expected: str = "", fix: str = "") -> Finding:
    """Return a finding of a rule; what is not said comes from its row."""
    row = RULES[code]
    return Finding(code, row.level, place, message, cut(found), expected or row.expected, fix or row.remedy)


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
