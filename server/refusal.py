"""How the door of the server over HTTP says no."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.types import Scope, Send

_JSON_RPC_REFUSED: Final = -32600
"""JSON-RPC's `Invalid Request`: what a client shows of a refusal that comes before its message is read."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer that says no. Its code is `WEB` and the status; the body is a JSON-RPC error without an id."""

    status: int
    message: str
    found: str
    expected: str
    fix: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    async def __call__(self, send: Send) -> None:
        """Send it."""
        data = {"code": f"WEB{self.status}", "found": self.found, "expected": self.expected, "fix": self.fix}
        text = f"{self.message} Found: {self.found}. Expected: {self.expected}. Fix: {self.fix}"
        error = {"code": _JSON_RPC_REFUSED, "message": text, "data": data}
        await send_json(send, self.status, {"jsonrpc": "2.0", "id": None, "error": error}, self.headers)


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
