"""The MCP server over streamable HTTP: the application behind its tokens, its socket, and a clean stop.

The SDK compares addresses and bounds bodies. Rates, connections and times are for a proxy in front.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from interlock.server.http.access import PATH, TokenGate, served_hosts
from interlock.server.http.tokens import TokenStore

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
STOP_SECONDS: Final = 5
"""How long calls may go on once the server was asked to stop."""


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
    """A whole application, and how to end its open streams."""

    app: ASGIApp
    end_streams: Callable[[], None] = lambda: None


def http_app(server: MCPServer[Any], tokens: TokenStore, *, hosts: frozenset[str]) -> HttpApp:
    """Return an MCP server behind the check of tokens; it was made with `caller=caller` from here.

    Hosts are those that are accepted, in full. No Origin is: pages of browsers may not call.
    """
    inner: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=[*hosts], allowed_origins=[]
        ),
    )
    return HttpApp(TokenGate(AuthContextMiddleware(inner), tokens))


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
        # A server that is started anew does not wait until the kernel forgets the last one's connections.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError:
        bound.close()
        raise
    return bound


def serve(app: HttpApp, bound: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM; returns when the last call has ended, or some seconds after the signal.

    `ready` is called once a signal ends the server well; whoever hears of the server from it may stop it at once.
    """
    config = uvicorn.Config(
        app.app,
        # No proxy headers: an address that a proxy names is nobody's identity. Logging is as the command set it up.
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Server(config, app.end_streams, ready)
    # uvicorn sets these handlers later, and when it has ended it raises the signal that stopped it once more. Here they
    # hear a signal that comes before, and keep the one after from ending the process with another status than 0.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    server.run(sockets=[bound])


class _Server(uvicorn.Server):
    """uvicorn that says when it serves, and that no call keeps from ending."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None], ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        # Only now does a signal end the server in order.
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; a tool that runs in a thread cannot be cancelled, but what it has written down is whole."""
        # Later than uvicorn gives up on calls: it ends the process only where a thread would keep it from ending.
        last = threading.Timer(STOP_SECONDS + 2, os._exit, (0,))
        last.daemon = True
        last.start()
        # uvicorn waits for open answers, and a stream has no end of its own.
        self._end_streams()
        await super().shutdown(sockets)


def url_of(bound: socket.socket) -> str:
    """Return the address of the MCP endpoint behind a socket."""
    address, port = bound.getsockname()[:2]
    return f"http://{f'[{address}]' if ':' in address else address}:{port}{PATH}"


def hosts_of(bound: socket.socket, extra: Iterable[str] = ()) -> frozenset[str]:
    """Return every Host header that belongs to a socket, and the extra ones."""
    address, port = bound.getsockname()[:2]
    return served_hosts(address, port, extra)
