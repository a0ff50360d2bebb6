"""The MCP server over streamable HTTP: the application behind its checks, its socket, and a clean stop.

Connections that nobody uses are closed, and heads are bounded however they arrive: uvicorn bounds the pause between two
requests, and no other one; h11 bounds what of a head has not arrived in full, and not one that comes at once.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import h11
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from interlock.server.http.access import PATH, AddressGate, BodyGate, TokenGate, served_hosts
from interlock.server.http.bounds import Limits
from interlock.server.http.sessions import SessionGate
from interlock.server.http.tokens import TokenStore
from interlock.server.message_validation import inspect

_CORS_HEADERS: Final = (
    "authorization", "content-type", "last-event-id",
    "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id",
)  # fmt: skip


def caller() -> str:
    """Return the agent whose token the request bears: the only place where identity over HTTP comes from.

    Raises:
        LookupError: Outside a request that came in with a token.
    """
    token = get_access_token()
    if token is None:
        raise LookupError("no caller: this is no request that came in with a token")
    return token.client_id


@dataclass(frozen=True)
class HttpApp:
    """The whole application, and how to end its open streams."""

    app: ASGIApp
    end_streams: Callable[[], None]


def http_app(
    server: MCPServer[Any],
    tokens: TokenStore,
    *,
    hosts: frozenset[str],
    origins: Iterable[str] = (),
    limits: Limits | None = None,
) -> HttpApp:
    """Return an MCP server behind the checks of requests; it was made with `caller=caller` from here.

    Hosts and origins are those that are accepted, in full.
    """
    limits = limits or Limits()
    allowed = frozenset(origins)
    # The address was compared in full before; the SDK's own check knows patterns that match prefixes.
    inner: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=limits.body_bytes,
        session_idle_timeout=limits.session_idle_seconds,
        max_sessions=limits.sessions,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    gate = TokenGate(
        BodyGate(AuthContextMiddleware(SessionGate(inner, limits, time.monotonic)), limits, inspect),
        tokens,
        limits,
        clock=time.monotonic,
        complain=lambda line: print(line, file=sys.stderr),  # noqa: T201 - the operator's line
    )
    app: ASGIApp = gate
    if allowed:
        app = CORSMiddleware(
            app,
            allow_origins=sorted(allowed),
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=_CORS_HEADERS,
            expose_headers=("mcp-session-id", "retry-after", "www-authenticate"),
        )
    return HttpApp(AddressGate(app, hosts, allowed), gate.end_streams)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 picks a free one.

    Raises:
        OSError: The name is unknown (`socket.gaierror`), or the address is taken or not of this machine.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # `localhost` often is both an IPv6 and an IPv4 address; some programs try the latter alone.
    family, kind, protocol, _, address = min(found, key=lambda row: row[0] != socket.AF_INET)
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError:
        bound.close()
        raise
    return bound


def serve(
    app: HttpApp, bound: socket.socket, limits: Limits | None = None, *, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until SIGINT or SIGTERM; returns when the last call has ended, or some seconds after the signal.

    `ready` is called once a signal ends the server well; whoever hears of the server from it may stop it at once.
    """
    limits = limits or Limits()
    config = uvicorn.Config(
        app.app,
        http=timed_protocol(limits.head_seconds, limits.header_bytes),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_graceful_shutdown=limits.stop_seconds,
    )
    _Server(config, app.end_streams, limits.stop_seconds, ready).run(sockets=[bound])


class _Server(uvicorn.Server):
    """uvicorn, but one that ends normally when a signal stops it, instead of dying by that signal."""

    def __init__(
        self, config: uvicorn.Config, end_streams: Callable[[], None], stop_seconds: int, ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._end_streams = end_streams
        self._stop_seconds = stop_seconds
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take the signals over while the server runs; one that is ignored stays ignored."""
        loop = asyncio.get_running_loop()
        heard = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
        for number in heard:
            loop.add_signal_handler(number, self._stop, number)
        try:
            self._ready()
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)

    def _stop(self, number: int) -> None:
        self.handle_exit(number, None)
        self._end_streams()
        # A tool that runs in a thread cannot be cancelled. What it has written down is whole, as after a kill.
        last = threading.Timer(self._stop_seconds + 2, os._exit, (0,))
        last.daemon = True
        last.start()


def url_of(bound: socket.socket) -> str:
    """Return the address of the MCP endpoint behind a socket."""
    address, port = bound.getsockname()[:2]
    return f"http://{f'[{address}]' if ':' in address else address}:{port}{PATH}"


def hosts_of(bound: socket.socket, extra: Iterable[str] = ()) -> frozenset[str]:
    """Return every Host header that belongs to a socket, and the extra ones."""
    address, port = bound.getsockname()[:2]
    return served_hosts(address, port, extra)


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

    The time runs from the connection, or from the first byte after an answer, to the whole head. The same time ends a
    connection on which a body is still sent after its request was answered.
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
