"""Standard input and output as a transport: one process, one client, nothing but protocol on the wire.

The SDK parses each line as it comes, answers nothing to one that it cannot parse, and reads in a thread that no signal
can stop. Here each line is inspected first and answered if it is refused, and waiting is left to the event loop.
"""

import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import anyio
from anyio.lowlevel import checkpoint
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from interlock.redaction import redactor_for
from interlock.server.message_validation import read_message
from interlock.server.rules import MAX_MESSAGE_BYTES, BadMessage, RequestId

_READ_BYTES: Final = 256 * 1024
_WRITE_BYTES: Final = 4096
"""A pipe that is ready takes at least so much without blocking (PIPE_BUF)."""
_TAIL_BYTES: Final = 4096

SETTLE_SECONDS: Final = 15.0
"""How long requests that came before the end of input have to be answered."""


async def serve_stdio(server: Server[Any], *, leaving: Callable[[], None] = lambda: None) -> None:
    """Serve one client until its side closes, or SIGINT or SIGTERM comes; what is under way is finished first.

    Raises:
        OSError: Standard input or output cannot be used.
    """
    with _wire() as (source, target):
        async with anyio.create_task_group() as group:

            def end() -> None:
                leaving()
                group.cancel_scope.cancel()

            group.start_soon(_call_on_signal, end)
            sink = _Sink(target, end)
            # The SDK asks for an `AsyncFile`, and iterates over the one and calls `write` and `flush` of the other.
            reading, writing = cast("Any", _messages(source, sink, leaving)), cast("Any", sink)
            async with stdio_server(stdin=reading, stdout=writing) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()


@contextmanager
def _wire() -> Generator[tuple[int, int]]:
    """Take the descriptors to read from and to write to: what else reads here meets the end, or prints to stderr."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield source, target
    finally:
        os.dup2(source, 0)
        os.dup2(target, 1)
        for descriptor in (source, target, nothing):
            os.close(descriptor)


async def _call_on_signal(end: Callable[[], None]) -> None:
    """Call at the first signal; a second one finds the handlers of the system again."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            break
    end()


class _Sink:
    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._gone = gone
        self._lock = anyio.Lock()
        self._open: Counter[RequestId] = Counter()
        self._settled = anyio.Event()

    def expect(self, message: dict[str, Any]) -> None:
        """Note a request that is to be answered; one that listens is not, it ends with the service."""
        if "id" in message and message.get("method") not in (None, "subscriptions/listen"):
            self._open[message["id"]] += 1

    async def settle(self) -> None:
        """Wait until every request has been answered, or for as long as a client may be expected to wait."""
        with anyio.move_on_after(SETTLE_SECONDS):
            while self._open:
                self._settled = anyio.Event()
                await self._settled.wait()

    async def write(self, text: str) -> None:
        """Write a text, and return when the system has all of it; errors quote requests, and go without keys."""
        message: Any = json.loads(text)
        if "error" in message:
            clean = redactor_for().value(message["error"])
            text = json.dumps({**message, "error": clean}, separators=(",", ":")) + "\n"
        await self._write(text)
        if "method" not in message and (asked := message.get("id")) in self._open:
            self._open.subtract([asked])
            if not self._open[asked]:
                del self._open[asked]
            self._settled.set()

    async def _write(self, text: str) -> None:
        async with self._lock:
            rest = memoryview(text.encode())
            try:
                while rest:
                    await _ready(anyio.wait_writable, self._descriptor)
                    rest = rest[os.write(self._descriptor, rest[:_WRITE_BYTES]) :]
            except (BrokenPipeError, ConnectionResetError):
                self._gone()
                await checkpoint()

    async def refuse(self, problem: BadMessage) -> None:
        """Answer a message that is not acted on."""
        await self._write(json.dumps(problem.to_rpc(), separators=(",", ":")) + "\n")

    async def flush(self) -> None:
        """Do nothing: what is written is with the system."""


async def _messages(source: int, sink: _Sink, leaving: Callable[[], None]) -> AsyncIterator[str]:
    async for line in _lines(source):
        if not line.strip():
            continue
        message = read_message(line)
        if isinstance(message, BadMessage):
            await sink.refuse(message)
        else:
            sink.expect(message)
            yield line.decode()
    leaving()
    await sink.settle()


async def _lines(source: int) -> AsyncIterator[bytes]:
    """Yield each line, and what comes after the last one; from one that is too long the middle is left out."""
    line = bytearray()
    while True:
        await _ready(anyio.wait_readable, source)
        chunk = os.read(source, _READ_BYTES)
        if not chunk:
            break
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            _extend(line, part)
            yield bytes(line)
            line.clear()
        _extend(line, rest)
    if line:
        yield bytes(line)


def _extend(line: bytearray, part: bytes) -> None:
    line += part
    if len(line) > MAX_MESSAGE_BYTES + 2 * _TAIL_BYTES:
        del line[MAX_MESSAGE_BYTES + 1 : -_TAIL_BYTES]


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:
        # A regular file cannot be waited for, and need not be.
        await checkpoint()
