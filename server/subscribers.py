"""Clients of older protocol revisions that asked to be told when a resource changes."""

from typing import Final

import anyio
from mcp.server.session import ServerSession

MAX_SUBSCRIPTIONS: Final = 1000
"""How many subscriptions one server keeps; the oldest goes first."""


class Subscribers:
    """Who subscribed to what, by connection. Clients of the 2026 revision listen on streams of their own instead."""

    def __init__(self) -> None:
        self._rows: list[tuple[ServerSession, str]] = []

    def add(self, session: ServerSession, uri: str) -> None:
        """Remember a subscription; a repeated one changes nothing."""
        self.remove(session, uri)
        self._rows = [*self._rows, (session, uri)][-MAX_SUBSCRIPTIONS:]

    def remove(self, session: ServerSession, uri: str) -> None:
        """Forget a subscription."""
        self._rows = [row for row in self._rows if row[1] != uri or not _same(row[0], session)]

    async def tell(self, uri: str) -> None:
        """Send the change of a resource to everybody who subscribed to it; who is gone is forgotten."""
        for session, wanted in self._rows:
            if wanted == uri:
                try:
                    await session.send_resource_updated(uri)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    self._rows = [row for row in self._rows if not _same(row[0], session)]


def _same(one: ServerSession, other: ServerSession) -> bool:
    """Say whether two requests came over one connection, which keeps the parameters of its handshake."""
    return one is other or (one.client_params is not None and one.client_params is other.client_params)
