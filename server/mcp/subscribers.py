"""Clients of older protocol revisions that subscribed to changes of resources."""

from typing import Final

import anyio
from mcp.server.connection import Connection
from mcp.server.session import ServerSession

from interlock.server.rules import CallError

MAX_SUBSCRIPTIONS: Final = 200
"""How many resources one connection may subscribe to."""
MAX_URI_CHARS: Final = 500
PATIENCE_SECONDS: Final = 2.0
"""How long a client may take to take a notice; whoever waits until the others are notified waits no longer."""


class Subscribers:
    """Who subscribed to what, by connection. Clients of the 2026 revision listen on streams of their own instead."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._rows: dict[Connection, tuple[ServerSession, set[str]]] = {}

    def add(self, session: ServerSession, uri: str) -> None:
        """Remember a subscription until its connection ends; a repeated one changes nothing.

        Raises:
            CallError: The connection has too many, or the address is too long.
        """
        if len(uri) > MAX_URI_CHARS:
            raise CallError(
                "MCP303",
                f"the address has {len(uri)} characters; one of a resource has at most {MAX_URI_CHARS}",
                "Subscribe to a resource of `resources/templates/list`.",
            )
        connection = _connection_of(session)
        if connection not in self._rows:
            self._rows[connection] = session, set()
            connection.exit_stack.callback(self._rows.pop, connection, None)
        uris = self._rows[connection][1]
        if uri not in uris and len(uris) >= MAX_SUBSCRIPTIONS:
            raise CallError(
                "MCP303",
                f"this connection is subscribed to {len(uris)} resources, and may be to so many",
                "Unsubscribe from what is over, then subscribe again.",
            )
        uris.add(uri)

    def remove(self, session: ServerSession, uri: str) -> None:
        """Forget a subscription."""
        row = self._rows.get(_connection_of(session))
        if row is not None:
            row[1].discard(uri)

    async def notify(self, uri: str) -> None:
        """Notify every subscriber of a resource that it changed; one that does not take the notice is removed."""
        async with anyio.create_task_group() as group:
            for connection, (session, uris) in self._rows.items():
                if uri in uris:
                    group.start_soon(self._notify, connection, session, uri)

    async def _notify(self, connection: Connection, session: ServerSession, uri: str) -> None:
        with anyio.move_on_after(self._patience_seconds) as patience:
            await session.send_resource_updated(uri)
        if patience.cancelled_caught:
            self._rows.pop(connection, None)


def _connection_of(session: ServerSession) -> Connection:
    """Return the connection that a request came over: a session is made anew for each request."""
    # The SDK has the end of a connection cleaned up by its `exit_stack`, and gives a request no public way to it.
    return session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
