"""Access to the server over HTTP: who may call, from where, and how often.

Small ASGI applications, each around the next. What they refuse never reaches the MCP server.
"""

import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import anyio
from anyio.lowlevel import checkpoint
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.server.http.bounds import Limits, Meter, TooMuchError
from interlock.server.http.refusal import Refusal, header, refusal, send_json
from interlock.server.http.tokens import TOKEN_PREFIX, TokenError, TokenRecord, TokenStore
from interlock.server.rules import BadMessage

PATH: Final = "/mcp"
HEALTH: Final = "/health"
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")

_CHALLENGE: Final = 'Bearer realm="interlock"'


def served_hosts(address: str, port: int, extra: Iterable[str] = ()) -> frozenset[str]:
    """Return every Host header that is accepted: bytes must be equal, no pattern is.

    Besides those of the bound address (IPv6 without brackets) the `extra` ones, such as `interlock.example.org`.
    """
    names = {f"[{address}]" if ":" in address else address}
    if is_loopback(address):
        names.update(LOOPBACK_NAMES)
    return frozenset({f"{name}:{port}" for name in names} | set(extra))


def is_loopback(address: str) -> bool:
    """Return whether an address reaches this machine alone."""
    return address in {"::1", "localhost"} or address.startswith("127.")


def _shown(values: list[str]) -> str:
    return " and ".join(f"`{value[:80]}`" for value in values) or "none"


class AddressGate:
    """Admits what is addressed to this server, by a program or by a page of an allowed origin.

    A page in a browser whose name was rebound to this machine still sends its own name as Host, so one exact comparison
    shuts it out. `/health` is answered here, and anything but `/mcp` is not found.
    """

    def __init__(self, inner: ASGIApp, hosts: frozenset[str], origins: frozenset[str]) -> None:
        self._inner = inner
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(send)
        elif scope["path"] == HEALTH:
            head = [(b"content-type", b"text/plain"), (b"content-length", b"3")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": b"ok\n"})
        else:
            await self._inner(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        hosts, origins = header(scope, b"host"), header(scope, b"origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            allowed = ", ".join(f"`{host}`" for host in sorted(self._hosts))
            return refusal(
                421,
                "This server is not known by that Host.",
                _shown(hosts),
                f"one of {allowed}",
                "Use one of these addresses, or start the server with `--allow-host`.",
            )
        if len(origins) > 1 or (origins and origins[0] not in self._origins):
            allowed = ", ".join(f"`{origin}`" for origin in sorted(self._origins))
            return refusal(
                403,
                "Pages of that origin may not call this server.",
                _shown(origins),
                f"no Origin{', or one of ' + allowed if allowed else ''}",
                "If the page is yours, start the server with `--allow-origin` and its origin.",
            )
        if scope["path"] not in {PATH, HEALTH}:
            return refusal(
                404, "Nothing is served there.", f"`{scope['path'][:80]}`", f"`{PATH}` or `{HEALTH}`", f"Use `{PATH}`."
            )
        return None


class TokenGate:
    """Admits callers with a token, as the agent that it belongs to and at the rate that its limits allow.

    A stream that is open when its token is revoked ends before its next byte. What comes next finds the caller in
    `scope["user"]`.
    """

    def __init__(
        self,
        inner: ASGIApp,
        tokens: TokenStore,
        limits: Limits,
        *,
        clock: Callable[[], float],
        complain: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._inner = inner
        self._tokens = tokens
        self._meter = Meter(limits, clock)
        self._sleep = sleep
        self._complain = complain
        self._complained = ""
        self._streams: set[anyio.CancelScope] = set()

    def end_streams(self) -> None:
        """End every open stream that waits for news: the server stops."""
        for scope in tuple(self._streams):
            scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        caller = self._caller(scope)
        if isinstance(caller, Refusal):
            await caller(send)
            return
        try:
            with self._meter.request(caller.token_id) as wait:
                if wait:
                    await self._sleep(wait)
                await self._serve(caller, scope, receive, send)
        except TooMuchError as error:
            seconds = math.ceil(error.retry_seconds)
            await refusal(
                429,
                "Too much at once.",
                error.found,
                error.expected,
                f"Wait {seconds} s, then send the request again as it was; it was not looked at.",
                {"retry-after": str(seconds)},
            )(send)

    async def _serve(self, caller: TokenRecord, scope: Scope, receive: Receive, send: Send) -> None:
        # The subject makes two tokens of one agent two principals: a session belongs to the token that opened it.
        access = AccessToken(token="", client_id=caller.agent, subject=caller.token_id, scopes=[])
        open_answer = False

        async def guarded(message: Message) -> None:
            nonlocal open_answer
            # Only a stream is cut: an answer that is complete was asked for while the token was valid.
            if message.get("more_body") and not self._tokens.still_valid(caller):
                own.cancel()
                await checkpoint()
                return
            open_answer = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        waits = scope["method"] == "GET" or header(scope, b"mcp-method") == ["subscriptions/listen"]
        with anyio.CancelScope() as own:
            if waits:
                self._streams.add(own)
            try:
                await self._inner({**scope, "user": AuthenticatedUser(access)}, receive, guarded)
            finally:
                self._streams.discard(own)
        if own.cancelled_caught and open_answer:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _caller(self, scope: Scope) -> TokenRecord | Refusal:
        given = header(scope, b"authorization")
        if len(given) != 1:
            found = "no token" if not given else "more than one Authorization header"
            return _unknown_caller(found, _CHALLENGE)
        scheme, _, token = given[0].partition(" ")
        if scheme.lower() != "bearer" or not token:
            return _unknown_caller(_instead_of_bearer(given[0]), _CHALLENGE)
        try:
            record = self._tokens.verify(token)
        except TokenError as error:
            if self._complained != error.message:
                self._complained = error.message
                self._complain(f"nobody is let in: {error.message}. fix: {error.fix}")
            return refusal(
                503,
                "The tokens of this server cannot be read.",
                "a token file that is not safe to use",
                "a file of its own",
                "Ask whoever runs the server to look at its output.",
            )
        self._complained = ""
        if record is None:
            return _unknown_caller("a token that is unknown or revoked", f'{_CHALLENGE}, error="invalid_token"')
        return record


def _instead_of_bearer(given: str) -> str:
    """Return what is in an Authorization header that does not read `Bearer TOKEN`; never any part of a token."""
    scheme, blank, _ = given.partition(" ")
    if scheme.lower() == "bearer":
        return "the scheme `Bearer` without a token"
    if not blank and given.startswith(TOKEN_PREFIX):
        return "a token without the scheme `Bearer` in front"
    return "another kind of Authorization"


def _unknown_caller(found: str, challenge: str) -> Refusal:
    return refusal(
        401,
        "This server answers known callers alone.",
        found,
        "`Authorization: Bearer TOKEN` with a valid token",
        "Create one where the server runs: `interlock token create AGENT`.",
        {"www-authenticate": challenge},
    )


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
