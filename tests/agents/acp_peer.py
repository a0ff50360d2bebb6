"""The other side of the Agent Client Protocol for the tests: a scripted agent over real stdio. Standard library alone.

A script imports all of it, calls `start`, and then does what its test is about.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = str(Path.cwd())
__all__ = [
    "OPTIONS",
    "ROOT",
    "SESSION",
    "ask",
    "done",
    "given",
    "json",
    "leave",
    "os",
    "permitted",
    "raw",
    "read",
    "say",
]
__all__ += ["send", "start", "sys", "update"]

SESSION = "s-1"
_numbers = iter(range(100, 10**9))

given: dict[str, Any] = {}
"""The parameters of the last request of each method."""


def send(**row: Any) -> None:
    """Send a message."""
    raw(json.dumps({"jsonrpc": "2.0", **row}).encode() + b"\n")


def raw(data: bytes) -> None:
    """Send bytes as they are."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def read() -> dict[str, Any]:
    """Return the next message of the client; ends the program when there is none."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def start(hello: Mapping[str, Any] | None = None, session: Mapping[str, Any] | None = None) -> str:
    """Answer what is asked until a prompt comes, and return its text."""
    while True:
        row = read()
        method = row.get("method")
        given[str(method)] = row.get("params")
        if method == "initialize":
            send(id=row["id"], result={"protocolVersion": 1, **(hello or {})})
        elif method == "session/new":
            send(id=row["id"], result={"sessionId": SESSION, **(session or {})})
        elif method == "session/prompt":
            given["id"] = row["id"]
            return row["params"]["prompt"][0]["text"]
        elif "id" in row:
            send(id=row["id"], result={"configOptions": []} if "config" in str(method) else {})


def update(kind: str, /, **row: Any) -> None:
    """Send what is going on."""
    send(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": kind, **row}})


def say(text: str, **row: Any) -> None:
    """Say a piece of a message."""
    update("agent_message_chunk", content={"type": "text", "text": text}, **row)


def ask(method: str, **params: Any) -> dict[str, Any]:
    """Ask the client and return its whole answer; what it says meanwhile is kept in `given`."""
    number = next(_numbers)
    send(id=number, method=method, params={"sessionId": SESSION, **params})
    while True:
        row = read()
        if row.get("id") == number and "method" not in row:
            return row
        given[str(row.get("method"))] = row.get("params")


OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def permitted(kind: str, /, *paths: str, options: Any = None, **call: Any) -> str:
    """Ask for permission and return what was chosen: the id of an option, or `cancelled`."""
    locations = [{"path": path if path.startswith("/") else f"{ROOT}/{path}"} for path in paths]
    number = f"call-{next(_numbers)}"
    row = ask(
        "session/request_permission",
        options=OPTIONS if options is None else options,
        toolCall={"toolCallId": number, "kind": kind, "title": "a tool", "locations": locations, **call},
    )
    if "error" in row:
        return f"error {row['error']['code']}"
    outcome = row["result"]["outcome"]
    return outcome.get("optionId", outcome["outcome"])


def done(reason: str = "end_turn", **row: Any) -> None:
    """End the turn."""
    send(id=given["id"], result={"stopReason": reason, **row})


def leave() -> None:
    """Read until the client has closed its side."""
    while True:
        read()
