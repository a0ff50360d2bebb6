"""What the codes of refused calls, tokens and HTTP requests mean and what to do, for `interlock explain`."""

from typing import Final

from interlock.core.rule import rules

CODES: Final = rules({
    "MCP301": ("A toolset is one that exists.", "Name one of those that the message lists."),
    "MCP302": ("A role is one of the roster.", "Name one of the roles that the message lists."),
    "MCP303": ("A subscription names a resource and fits into the bounds.", "Follow the fix of the message."),
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
    "WEB404": ("A path of the server exists.", "Send requests to /mcp."),
    "WEB405": ("A method is one that the path takes.", "Use one of those that the message lists."),
    "WEB408": ("A request arrives in time.", "Send it without pauses."),
    "WEB413": ("The body of a request is bounded.", "Send less; put long texts into files below the root."),
    "WEB421": ("A request is addressed to this server.", "Send the host name that the server serves."),
    "WEB429": ("A caller stays within its share.", "Wait as long as `Retry-After` says."),
    "WEB431": ("The head of a request is bounded.", "Send fewer or shorter headers."),
    "WEB503": ("The server has a place free.", "Wait as long as `Retry-After` says."),
})  # fmt: skip
