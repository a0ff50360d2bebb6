"""The last check of a request: a whole body within its bounds, looked at before anything reads it."""

from collections.abc import Callable

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.server.bounds import Limits
from interlock.server.refusal import Refusal, header, refusal, send_json
from interlock.server.rules import BadMessage


class BodyGate:
    """Reads the whole body within its bounds, looks at it, and hands it on."""

    def __init__(self, inner: ASGIApp, limits: Limits, inspect: Callable[[bytes], BadMessage | None]) -> None:
        self._inner = inner
        self._limits = limits
        self._inspect = inspect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        body = await self._read(scope, receive)
        if body is None:
            return
        if isinstance(body, Refusal):
            await body(send)
            return
        problem = self._inspect(body) if scope["method"] == "POST" else None
        if problem is not None:
            await send_json(send, 400, problem.to_rpc(), {})
            return
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._inner(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | Refusal | None:
        """Return the body, why it is refused, or None when the caller is gone."""
        most = self._limits.body_bytes
        declared = header(scope, b"content-length")
        if declared and declared[0].isascii() and declared[0].isdigit() and int(declared[0][:20]) > most:
            return self._too_large(f"{declared[0][:20]} bytes")
        body = bytearray()
        with anyio.move_on_after(self._limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                if len(body) > most:
                    return self._too_large(f"more than {most} bytes")
                if not message.get("more_body", False):
                    return bytes(body)
        return refusal(
            408,
            "The body did not arrive.",
            f"{len(body)} bytes after {self._limits.body_seconds:g} s",
            f"the whole body within {self._limits.body_seconds:g} s",
            "Send it again in one piece.",
            {"connection": "close"},
        )

    def _too_large(self, found: str) -> Refusal:
        return refusal(
            413,
            "The body is too large.",
            found,
            f"at most {self._limits.body_bytes} bytes",
            "Send less: name files by path instead of sending their text.",
        )
