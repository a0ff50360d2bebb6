"""Access to the server over HTTP: who may call, and under which addresses the server is known."""

import logging
from collections.abc import Iterable
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.server.http.tokens import TokenError, TokenRecord, TokenStore

PATH: Final = "/mcp"
HEALTH: Final = "/health"
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")

_LOG: Final = logging.getLogger("interlock.server")


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


class TokenGate:
    """Admits callers with a token, as the agent that it belongs to, and answers `/health` to everybody.

    What comes next finds the caller in `scope["user"]`.
    """

    def __init__(self, inner: ASGIApp, tokens: TokenStore) -> None:
        self._inner = inner
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # The start and the end of the application come this way too, and have no caller.
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        # Says that the server runs, which whoever reaches the port knows anyway.
        if scope["path"] == HEALTH:
            await PlainTextResponse("ok\n")(scope, receive, send)
            return
        caller = self._caller(scope)
        if isinstance(caller, Response):
            await caller(scope, receive, send)
            return
        # The subject makes two tokens of one agent two principals: a session belongs to the token that opened it.
        # The token itself is left out: nothing behind this needs it, and nothing can log it.
        access = AccessToken(token="", client_id=caller.agent, subject=caller.token_id, scopes=[])
        await self._inner({**scope, "user": AuthenticatedUser(access)}, receive, send)

    def _caller(self, scope: Scope) -> TokenRecord | Response:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return _unknown_caller("no token")
        try:
            record = self._tokens.verify(token)
        except TokenError as error:
            _LOG.error("nobody is let in: %s. fix: %s", error.message, error.fix)
            # Not 401: the client would be told to get a new token, which this file could not take up either.
            return _refusal(
                503,
                "The tokens of this server cannot be read.",
                found="a token file that is not safe to use",
                expected="a file of its own",
                fix="Ask whoever runs the server to look at its output.",
            )
        return record or _unknown_caller("a token that is unknown or revoked")


def _unknown_caller(found: str) -> Response:
    answer = _refusal(
        401,
        "This server answers known callers alone.",
        found=found,
        expected="`Authorization: Bearer TOKEN` with a valid token",
        fix="Create one where the server runs: `interlock token create AGENT`.",
    )
    answer.headers["www-authenticate"] = 'Bearer realm="interlock"'
    return answer


def _refusal(status: int, message: str, *, found: str, expected: str, fix: str) -> Response:
    """Return the answer that refuses a request: a JSON-RPC error without an id, coded `WEB` and the status."""
    data = {"code": f"WEB{status}", "found": found, "expected": expected, "fix": fix}
    text = f"{message} Found: {found}. Expected: {expected}. Fix: {fix}"
    error = {"code": INVALID_REQUEST, "message": text, "data": data}
    # The caller is checked before the body is read, so the id of the request is not known.
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)
