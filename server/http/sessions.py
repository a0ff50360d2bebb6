"""How many sessions of the older protocol one token may have open, so that no token takes them all."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.server.http.bounds import Limits
from interlock.server.http.refusal import Refusal, header, refusal

_SESSION: Final = b"mcp-session-id"
_VERSION: Final = b"mcp-protocol-version"


@dataclass(slots=True)
class _Session:
    """A session as its requests show it: how many are open, and since when there is none."""

    requests: int = 0
    quiet_since: float = 0.0


class SessionGate:
    """Counts the sessions of each token, and refuses to open more than its share.

    A session is over when it was deleted, when it is not found any more, or when it had no request for as long as the
    MCP server keeps it.
    """

    def __init__(self, inner: ASGIApp, limits: Limits, clock: Callable[[], float]) -> None:
        self._inner = inner
        self._limits = limits
        self._clock = clock
        # By token, then by name; one that is being opened has none yet and is kept under an object of its own.
        self._sessions: dict[str, dict[object, _Session]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        token = get_access_token() if scope["type"] == "http" else None
        if token is None or token.subject is None:
            await self._inner(scope, receive, send)
            return
        named = header(scope, _SESSION)
        if named:
            await self._within(token.subject, named[0], scope, receive, send)
        elif set(header(scope, _VERSION)[:1]) <= set(HANDSHAKE_PROTOCOL_VERSIONS):
            await self._open(token.subject, scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    async def _within(self, token_id: str, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of a session; one that is not of this token is the MCP server's to refuse."""
        session = self._sessions.get(token_id, {}).get(name)
        if session is None:
            await self._inner(scope, receive, send)
            return
        over = False

        async def watch(message: Message) -> None:
            nonlocal over
            if message["type"] == "http.response.start":
                over = message["status"] == 404 or (scope["method"] == "DELETE" and message["status"] < 400)
            await send(message)

        session.requests += 1
        try:
            await self._inner(scope, receive, watch)
        finally:
            self._leave(session)
            if over:
                self._forget(token_id, name)

    async def _open(self, token_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that opens a session, while one more is allowed."""
        refusal = self._refusal(token_id)
        if refusal is not None:
            await refusal(send)
            return
        session, opening = _Session(requests=1), object()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                for key, value in message["headers"]:
                    if key.lower() == _SESSION:
                        mine[value.decode("latin-1")] = mine.pop(opening, session)
            await send(message)

        mine = self._sessions.setdefault(token_id, {})
        mine[opening] = session
        try:
            await self._inner(scope, receive, watch)
        finally:
            self._leave(session)
            self._forget(token_id, opening)

    def _leave(self, session: _Session) -> None:
        session.requests -= 1
        session.quiet_since = self._clock()

    def _forget(self, token_id: str, name: object) -> None:
        mine = self._sessions.get(token_id, {})
        mine.pop(name, None)
        if not mine:
            self._sessions.pop(token_id, None)

    def _refusal(self, token_id: str) -> Refusal | None:
        """Return why a token may open no further session, once those that are over are forgotten."""
        oldest = self._clock() - self._limits.session_idle_seconds
        mine = self._sessions.get(token_id, {})
        for name in [name for name, each in mine.items() if not each.requests and each.quiet_since <= oldest]:
            self._forget(token_id, name)
        if len(mine) < self._limits.sessions_of_token:
            return None
        quiet = [each.quiet_since - oldest for each in mine.values() if not each.requests]
        seconds = math.ceil(min(quiet, default=self._limits.session_idle_seconds))
        return refusal(
            429,
            "Too many sessions.",
            f"{len(mine)} sessions are open with this token",
            f"at most {self._limits.sessions_of_token}",
            "End one with DELETE; one without a request is closed after "
            f"{self._limits.session_idle_seconds / 60:g} minutes.",
            {"retry-after": str(max(1, seconds))},
        )
