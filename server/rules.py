"""The rules that messages and calls are checked against before anything acts on them, and the finding of one."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import Rule, rules
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


CODES: Final = rules({
    "MCP301": ("A toolset is one that exists.", "Name one of those that the message lists."),
    "MCP302": ("A role is one of the roster.", "Name one of the roles that the message lists."),
    "MCP303": (
        "A subscription names a resource and fits into the bounds.",
        "Subscribe to one of `resources/templates/list`, and unsubscribe from what is over.",
    ),
    "MCP401": ("A token answers for its own role.", "Name that role, or call with the token of the other."),
    "MCP402": ("A role takes part in the run.", "Name one of the roles of the run."),
    "MCP403": (
        "A task of a caller with a token leaves the configuration alone.",
        "Leave out what the message names: interlock.toml says it for every task.",
    ),
    "MCP404": ("A wait lies within its bounds.", "Wait less, and call again."),
    "MCP405": ("A call names a page or a run, one of the two.", "Leave one out."),
    "MCP406": ("A task id that has runs is not used beside them.", "Leave `task_id` out, or choose another."),
    "MCP407": ("A caller with a token names pages below the root.", "Name an HTML file below the root."),
    "MCP408": ("A caller with a token names files that git shares.", "Name tracked files, by narrow patterns."),
    "MCP409": (
        "A caller with a token ends runs that it began.",
        "Have whoever began it end it, or run `interlock abandon` on the machine of the server.",
    ),
    "TOK901": ("The token file belongs to this user alone.", "Do what the message says, or create tokens anew."),
    "TOK902": ("The token file is what Interlock wrote.", "Remove it, and create tokens anew."),
    "TOK903": ("A token is for an agent or a role.", "Write 1 to 100 printable characters."),
    "TOK904": ("A token that is revoked exists.", "Name one that `interlock token list` shows."),
    "TOK905": ("A server over HTTP has a token.", "Create one: `interlock token create AGENT`."),
    "WEB400": ("A request over HTTP is well-formed.", "Send what the message expects."),
    "WEB401": ("A request carries a good token.", "Send `Authorization: Bearer TOKEN`."),
    "WEB403": ("A page of a browser that calls is an allowed origin.", "Name the origin with `--allow-origin`."),
    "WEB404": ("A path of the server exists.", "Send requests to /mcp; a page names the way on."),
    "WEB405": ("A method is one that the path takes.", "Use one of those that the message lists."),
    "WEB408": ("A request arrives in time.", "Send it without pauses."),
    "WEB409": ("A page answers what a run still asks.", "Look at the run: somebody may have answered."),
    "WEB413": ("The body of a request is bounded.", "Send less; put long texts into files below the root."),
    "WEB421": ("A request is addressed to this server.", "Send the host name that the server serves."),
    "WEB429": ("A caller stays within its share.", "Wait as long as `Retry-After` says."),
    "WEB500": ("A page is made without a defect.", "Report it with what the server printed."),
    "WEB901": (
        "The file of the pages' sessions is the owner's alone.",
        "Whoever reads it can act as a person: `chmod 600` it where its folder is yours, or remove it.",
    ),
    "WEB902": ("The file of the pages' sessions is what Interlock wrote.", "Remove it, and open a new link."),
    "WEB903": ("A session that is ended is open.", "Reload the list."),
    "WEB431": ("The head of a request is bounded.", "Send fewer or shorter headers."),
    "WEB503": ("The server has a place free.", "Wait as long as `Retry-After` says."),
})  # fmt: skip
"""What the codes of refused calls, tokens and HTTP requests mean and what to do, for `interlock explain`."""


class CallError(InterlockError):
    """A call that is refused by the server with `MCP3nn` or `MCP4nn`."""

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)
        self.args = (f"{code}: {message} {fix}",)


class BadMessage(NamedTuple):
    """A message that is refused, and the id to answer with, where it could be read."""

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
    """Return whether a text holds half of a surrogate pair."""
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
    """Return what is under a key, for `found`."""
    return shown(value[key]) if key in value else "nothing"


def cut(text: str) -> str:
    """Return a text as it may be shown: without keys, bounded, and free of half surrogate pairs."""
    text = redact(text)  # before it is cut: the beginning of a key would not be known as one
    safe = text.encode("ascii", "backslashreplace").decode() if is_broken(text) else text
    return safe if len(safe) <= _SHOWN else safe[: _SHOWN - 1] + "…"
