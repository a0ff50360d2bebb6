"""Refusals of the server over HTTP."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.types import Scope, Send

from interlock.core.finding import Finding

_JSON_RPC_REFUSED: Final = -32600
"""JSON-RPC's `Invalid Request`: what a client shows of a refusal that comes before its message is read."""


class Refusal(NamedTuple):
    """An HTTP answer that refuses a request; its body is a JSON-RPC error without an id, coded `WEB` and the status."""

    status: int
    finding: Finding
    headers: Mapping[str, str]

    async def __call__(self, send: Send) -> None:
        """Send it."""
        code, _, _, message, found, expected, fix = self.finding[:7]
        data = {"code": code, "found": found, "expected": expected, "fix": fix}
        text = f"{message} Found: {found}. Expected: {expected}. Fix: {fix}"
        error = {"code": _JSON_RPC_REFUSED, "message": text, "data": data}
        await send_json(send, self.status, {"jsonrpc": "2.0", "id": None, "error": error}, self.headers)


def refusal(
    status: int, message: str, found: str, expected: str, fix: str, headers: Mapping[str, str] | None = None
) -> Refusal:
    """Return the answer for a request that breaks the rule of a status."""
    return Refusal(status, Finding(f"WEB{status}", "error", "", message, found, expected, fix), headers or {})


async def send_json(send: Send, status: int, value: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Send a whole JSON answer."""
    body = json.dumps(value).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    lines = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in head.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


def header(scope: Scope, name: bytes) -> list[str]:
    """Return every value of a header, in the order sent."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
