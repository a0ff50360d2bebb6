"""A server behind the same checks whose tools say who calls and never end; a program for the tests."""

import argparse
import json
import sys
import threading
from pathlib import Path
from typing import Any

from mcp.server import MCPServer

from interlock.server.http.serving import caller, hosts_of, http_app, listen, serve, url_of
from interlock.server.http.tokens import TokenStore


def main() -> None:
    """Serve until a signal comes."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int)
    options.add_argument("--json", action="store_true")
    options.add_argument("--root", type=Path)
    given = options.parse_args()
    server: MCPServer[Any] = MCPServer("standin", log_level="ERROR")

    @server.tool()
    def whoami() -> str:  # pyright: ignore[reportUnusedFunction]
        """Say who calls."""
        return caller()

    @server.tool()
    async def whoami_async() -> str:  # pyright: ignore[reportUnusedFunction]
        """Say who calls, on the event loop."""
        return caller()

    @server.tool()
    def never_ends() -> str:  # pyright: ignore[reportUnusedFunction]
        """Hold a thread for good."""
        print("held", file=sys.stderr, flush=True)
        threading.Event().wait()
        return ""

    bound = listen("127.0.0.1", given.port)
    app = http_app(server, TokenStore(given.root), hosts=hosts_of(bound))
    print(json.dumps({"url": url_of(bound)}), flush=True)
    serve(app, bound)


if __name__ == "__main__":
    main()
