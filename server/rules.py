"""The rules that calls are checked against before anything acts on them, and the finding of one."""

import json
from typing import Final

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import Rule, rules
from interlock.redaction import redact, redactor_for

_SHOWN: Final = 80


def _row(code: str, title: str, expected: str, remedy: str) -> Rule:
    return Rule(code, "error", title, remedy=remedy, expected=expected)


RULES: Final = {
    row.code: row
    for row in (
        _row("MCP201", "The tool is one that is listed.", "a name of `tools/list`", "Call a tool that is listed."),
        _row(
            "MCP202",
            "The arguments are those of the tool.",
            "what the tool's schema says",
            "Call the tool as the fix shows it; an argument with a question mark may be left out.",
        ),
        _row(
            "MCP205",
            "What names something holds no key of the server's environment.",
            "a name without a key",
            "Leave the key out. It is taken out of prose, and not out of what names something.",
        ),
    )
}
"""Every rule of calls (MCP2xx), by code."""


CODES: Final = rules(
    {
        "MCP301": ("A toolset is one that exists.", "Name one of those that the message lists."),
        "MCP401": ("A token answers for its own role.", "Name that role, or call with the token of the other."),
        "MCP402": ("A role is one of the roster.", "Name one of the roles that the message lists."),
        "MCP403": (
            "A task that comes in through a tool leaves the configuration alone.",
            "Leave out what the message names: interlock.toml says it for every task.",
        ),
        "MCP408": ("A caller with a token names files that git shares.", "Name tracked files, by narrow patterns."),
        "TOK901": ("The token file is this user's alone, and what Interlock wrote.", "Do what the message says."),
        "TOK903": ("A token is for an agent or a role.", "Write small letters, digits and single hyphens."),
        "TOK904": (
            "A token that is named or needed exists.",
            "Name one that `interlock token list` shows, or create one: `interlock token create AGENT`.",
        ),
        "WEB401": ("A request carries a good token.", "Send `Authorization: Bearer TOKEN`."),
        "WEB403": ("A session does what it may.", "Do what the message says."),
        "WEB404": ("A path of the server exists.", "Send requests to /mcp; a page names the way on."),
        "WEB409": ("A page answers what a run still asks.", "Look at the run: somebody may have answered."),
        "WEB500": ("A page is made without a defect.", "Report it with what the server printed."),
        "WEB901": (
            "The file of the pages' sessions is the owner's alone, and what Interlock wrote.",
            "Whoever reads it can act as a person: `chmod 600` it where its folder is yours, or remove it.",
        ),
        "WEB503": ("The token file is safe to use.", "Read what the server prints."),
    }
)
"""What the codes of refused calls, tokens and HTTP requests mean and what to do, for `interlock explain`."""


class CallError(InterlockError):
    """A call that is refused by the server with `MCP3nn` or `MCP4nn`."""

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)


def refusal_data(finding: Finding) -> dict[str, str]:
    """Return a finding as JSON values without keys of the environment."""
    return redactor_for().value(finding.to_refusal())


def problem(code: str, message: str, *, place: str = "", found: str = "", expected: str = "", fix: str = "") -> Finding:
    """Return a finding of a rule; what is not said comes from its row."""
    row = RULES[code]
    return Finding(code, row.level, place, message, cut(found), expected or row.expected, fix or row.remedy)


def shown(value: object) -> str:
    """Return a value for `found`: scalars as JSON, the rest by its sort."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    # In quotes, so that the text "1" is not taken for the number.
    return f"the text {json.dumps(value)}" if isinstance(value, str) else json.dumps(value)


def cut(text: str) -> str:
    """Return a text as it may be shown: without keys, and bounded."""
    text = redact(text)  # before it is cut: the beginning of a key would not be known as one
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
