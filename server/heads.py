"""HTTP connections that nobody uses are closed, and heads are bounded however they arrive.

uvicorn bounds the pause between two requests, and no other one; h11 bounds what of a head has not arrived in full, and
not one that comes at once.
"""

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_NOTHING_TO_DO: Final = (h11.IDLE, h11.DONE)
"""What the server's side is in while it works on no request: none came yet, or the last one is answered."""


class BoundedConnection(h11.Connection):
    """The server's side of a connection on which no request line with its headers is larger than a bound."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(h11.SERVER, most_bytes)
        self._most_bytes = most_bytes

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            RemoteProtocolError: It cannot be read, or is a head that is too large.
        """
        before = len(self.trailing_data[0]) if self.their_state is h11.IDLE else 0
        event = super().next_event()
        if isinstance(event, h11.Request) and before - len(self.trailing_data[0]) > self._most_bytes:
            raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)
        return event


def timed_protocol(head_seconds: float, head_bytes: int) -> type[H11Protocol]:
    """Return uvicorn's protocol, with bounds on the size of a request's head and on the time in which it arrives.

    The same time ends a connection on which a body is still sent after its request was answered.

    Args:
        head_seconds: From the connection, or from the first byte after an answer, to the whole head.
        head_bytes: The largest request line with its headers.
    """

    class TimedProtocol(H11Protocol):
        """See `timed_protocol`."""

        _deadline: asyncio.TimerHandle | None = None

        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self.conn = BoundedConnection(head_bytes)

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _look(self) -> None:
            """Let the time run while there is no request to work on."""
            if self.conn.our_state not in _NOTHING_TO_DO:
                self._stop()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(head_seconds, self.transport.close)

        def _stop(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return TimedProtocol
