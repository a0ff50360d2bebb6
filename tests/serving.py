"""Servers of the tests' own, on ports of this machine."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

S = TypeVar("S", bound=ThreadingHTTPServer)


class Quiet(BaseHTTPRequestHandler):
    """Answers without a line of log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass


@contextmanager
def running(server: S) -> Generator[S]:
    """Let a server answer while the block runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
