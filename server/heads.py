"""HTTP connections that nobody uses are closed: uvicorn bounds the pause between two requests, and no other one."""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_NOTHING_TO_DO: Final = (h11.IDLE, h11.DONE)
"""What the server's side is in while it works on no request: none came yet, or the last one is answered."""


def timed_protocol(head_seconds: float) -> type[H11Protocol]:
    """Return uvicorn's protocol, with a bound on the time in which a request's head arrives.

    The same bound ends a connection on which a body is still sent after its request was answered.

    Args:
        head_seconds: From the connection, or from the first byte after an answer, to the whole head.
    """

    class TimedProtocol(H11Protocol):
        """See `timed_protocol`."""

        _deadline: asyncio.TimerHandle | None = None

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
