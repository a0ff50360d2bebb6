"""A real `interlock mcp` process, driven by raw lines or by the SDK's client."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
COMMAND = [sys.executable, "-m", "interlock", "mcp"]


@dataclass
class Wire:
    """Both ends of a server's standard streams."""

    process: subprocess.Popen[bytes]

    def send(self, message: dict[str, Any] | bytes) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Return the next message; notifications too."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, message: dict[str, Any] | bytes) -> dict[str, Any]:
        """Send one line and return what comes next."""
        self.send(message)
        return self.read()

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Close the input; return the exit code, the messages still on the way, and stderr."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()

    def signal(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def server(root: Path, *options: str, greet: bool = True) -> Generator[Wire]:
    """Start a server in a folder; it is killed if the test leaves it running."""
    process = subprocess.Popen(
        [*COMMAND, *options],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    wire = Wire(process)
    try:
        if greet:
            assert wire.ask(INITIALIZE)["id"] == "hello"
            wire.send(INITIALIZED)
        yield wire
    finally:
        process.kill()
        process.communicate()


def call(name: str, arguments: dict[str, Any], number: int | str = 1) -> dict[str, Any]:
    """Return the request that calls a tool."""
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@asynccontextmanager
async def client(root: Path, *options: str, mode: Literal["auto", "legacy"] = "auto") -> AsyncGenerator[Client]:
    """Connect the SDK's client to a server process of its own."""
    parameters = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], *options],
        cwd=str(root),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    async with Client(parameters, mode=mode) as connected:
        yield connected
