"""Real server processes and real clients for the tests over HTTP."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from interlock.server.http.tokens import TokenStore
from tests.server import stdio_process

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE = {**stdio_process.INITIALIZE, "id": 1}


@dataclass
class Served:
    """A server that runs."""

    url: str
    root: Path
    process: subprocess.Popen[str]
    log: Path

    @property
    def port(self) -> int:
        """The port it listens on."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def stderr(self) -> str:
        """What it said so far."""
        return self.log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def raw(self, text: bytes) -> bytes:
        """Send bytes over a connection of their own and return what comes until the server closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(text)
            found = b""
            while part := connection.recv(65536):
                found += part
            return found


def new_project(folder: Path) -> Path:
    """Make an empty project."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "interlock.toml").touch()
    return folder


def new_token(root: Path, agent: str = "claude") -> str:
    """Make a token."""
    return TokenStore(root).create(agent)[1]


@contextmanager
def running(root: Path, *options: str, program: Sequence[str] = ("-m", "interlock", "serve")) -> Generator[Served]:
    """Run a server on a free port until the block ends."""
    log = root.parent / f"{root.name}.{len(list(root.parent.glob('*.stderr')))}.stderr"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, *program, "--port", "0", "--json", "--root", str(root), *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Served(json.loads(line)["url"], root, process, log)
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"authorization": f"Bearer {token}"}


@asynccontextmanager
async def connected(url: str, token: str, mode: Literal["auto", "legacy"] = "auto") -> AsyncGenerator[Client]:
    """Connect the SDK's client with a token."""
    async with (
        httpx2.AsyncClient(headers=bearer(token), timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def post(served: Served, token: str | None, message: Any = INITIALIZE, **headers: str) -> httpx2.Response:
    """Post one message as a client of the older protocol would."""
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {**ACCEPT, **(bearer(token) if token else {}), **named}
    with httpx2.Client(timeout=60) as http:
        return http.post(served.url, content=content, headers=given)
