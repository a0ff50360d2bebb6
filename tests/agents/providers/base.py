"""A model provider on loopback: what it was asked, what it answers by its script, and how it fails on request."""

import itertools
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast
from urllib.parse import urlsplit

from tests.serving import Quiet

Fault: TypeAlias = Literal["401", "429", "500", "cut", "blank", "length", "hang"]
"""How an answer fails.

Numbers are errors of that status in the provider's own words; `cut` ends the connection in the middle of the answer;
`blank` holds no byte;
`length` ends at its limit of tokens, and the arguments of its tool calls are cut where they are a text;
`hang` never answers.
"""

_STATUSES = frozenset({"401", "429", "500"})

MAX_PIECES = 8
"""In how many pieces a text is streamed at most."""


ToolCall: TypeAlias = tuple[str, Mapping[str, Any] | str]
"""Name and arguments, or name and text for a custom tool of OpenAI."""


@dataclass(frozen=True)
class Reply:
    """What the model says next.

    Args:
        text: Its text; empty for none.
        tool_calls: Its tool calls.
        usage: Tokens read and written.
        fault: How the answer fails, if it does.
        retry_after: What a 429 asks to wait, in seconds.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: tuple[int, int] = (11, 7)
    fault: Fault | None = None
    retry_after: str = "1"


@dataclass(frozen=True)
class Request:
    """What a client asked.

    Args:
        path: The path, with its query.
        headers: The headers, their names in small letters.
        json: The body.
        tools: The names of the tools that are offered to the model.
    """

    path: str
    headers: Mapping[str, str]
    json: dict[str, Any]
    tools: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Every string of the body, a line each."""
        return "\n".join(_strings(self.json))


Script: TypeAlias = Sequence[Reply] | Callable[[Request], Reply]


@dataclass(frozen=True)
class Body:
    """An answer on its way.

    Args:
        content_type: Its type.
        chunks: Its events when it is streamed, else one.
        streamed: Whether it is sent chunk by chunk.
    """

    content_type: str
    chunks: Sequence[bytes]
    streamed: bool


class Provider:
    """A server of one wire protocol; use it with `with`.

    A script that is used up answers 400, and so does a request that the protocol does not allow. Both are raised at
    the end of the `with` as an AssertionError.

    Args:
        script: The replies in their order, or a function that is called for each request, from several threads.
    """

    base: ClassVar[str] = ""
    """What a client's base URL holds behind the port."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self.others: list[str] = []
        self.problems: list[str] = []
        self._next: Callable[[Request], Reply] = script if callable(script) else self._in_order(script)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._open: set[socket.socket] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name=type(self).__name__)

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.base}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _value: object, _trace: TracebackType | None) -> None:
        self._ending.set()
        self._server.shutdown()
        self._thread.join()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        if kind is None:
            assert not self.problems, self.problems

    def new_id(self, kind: str) -> str:
        """Return a name that no other tool call of this provider has: clients take a repeated one for the same call."""
        return f"{kind}_{next(self._numbers)}"

    # -- what a protocol says of itself

    def serves(self, path: str) -> bool:
        """Return whether a POST to a path asks the model."""
        raise NotImplementedError

    def tools_of(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the tools that a body offers."""
        raise NotImplementedError

    def answer(self, request: Request, reply: Reply) -> Body:
        """Put a reply into the protocol's form."""
        raise NotImplementedError

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Return the body of an error."""
        raise NotImplementedError

    def aside(self, method: str, path: str) -> dict[str, Any] | None:
        """Answer what is no request to the model; None for nothing known."""
        del method, path
        return None

    # -- what the handler calls

    def handle(self, method: str, handler: "_Handler") -> None:
        """Answer one request."""
        path, raw = handler.path, handler.body()
        if method != "POST" or not self.serves(urlsplit(path).path):
            self.others.append(f"{method} {path}")
            known = self.aside(method, urlsplit(path).path)
            handler.send(404 if known is None else 200, self.error(404, path) if known is None else known)
            return
        try:
            body: dict[str, Any] = json.loads(raw)
            headers = {name.lower(): value for name, value in handler.headers.items()}
            request = Request(path, headers, body, self.tools_of(body))
            with self._lock:
                self.requests.append(request)
            reply = self._next(request)
            answer = None if reply.fault in {*_STATUSES, "blank", "hang"} else self.answer(request, reply)
        except Exception as error:  # noqa: BLE001 - raised at the end of the test, which would else wait for ever
            self.problems.append(f"{path}: {type(error).__name__}: {error}")
            handler.send(400, self.error(400, str(error)))
            return
        match reply.fault:
            case "401" | "429" | "500":
                more = {"Retry-After": reply.retry_after} if reply.fault == "429" else {}
                handler.send(int(reply.fault), self.error(int(reply.fault), f"scripted {reply.fault}"), more)
            case "hang":
                self._ending.wait()
            case _:
                handler.send_body(answer or Body("application/json", (b"",), streamed=False), reply.fault)

    def opened(self, connection: socket.socket) -> None:
        """Remember a connection, so that none is open at the end."""
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._open.discard(connection)

    def _in_order(self, script: Sequence[Reply]) -> Callable[[Request], Reply]:
        replies = iter(script)

        def following(_request: Request) -> Reply:
            with self._lock:
                reply = next(replies, None)
            if reply is None:
                raise LookupError(f"the script has {len(script)} replies, and one more was asked for")
            return reply

        return following


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over clients that leave; keep everything else for the end of the test."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.provider.problems.append(f"{type(error).__name__}: {error}")


class _Handler(Quiet):
    protocol_version = "HTTP/1.1"
    timeout = 60
    """Seconds after which a client that connects and asks nothing is let go."""

    @property
    def provider(self) -> Provider:
        """The provider that it answers for."""
        assert isinstance(self.server, _Server)
        return self.server.provider

    def setup(self) -> None:
        self.provider.opened(self.request)
        super().setup()

    def finish(self) -> None:
        self.provider.closed(self.request)
        super().finish()

    def do_GET(self) -> None:
        self.provider.handle("GET", self)

    def do_HEAD(self) -> None:
        self.provider.handle("HEAD", self)

    def do_POST(self) -> None:
        self.provider.handle("POST", self)

    def body(self) -> bytes:
        """Read the body of the request.

        Raises:
            ConnectionError: The client left before it was sent.
        """
        size = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError(f"{len(data)} of {size} bytes came")
        return data

    def send(self, status: int, row: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """Send a JSON object."""
        self._head(status, "application/json", headers or {}, json.dumps(row).encode())

    def send_body(self, body: Body, fault: Fault | None) -> None:
        """Send an answer, cut in its middle when that is wanted."""
        middle = len(body.chunks) // 2
        chunks = list(body.chunks)
        if not body.streamed:
            whole = b"".join(chunks)
            self._head(200, body.content_type, {}, whole, whole[: len(whole) // 2] if fault == "cut" else whole)
        else:
            self._head(200, body.content_type, {"Transfer-Encoding": "chunked"}, None)
            for chunk in chunks[:middle] if fault == "cut" else chunks:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            # Without this last chunk a client knows that the stream is not whole.
            if fault != "cut":
                self.wfile.write(b"0\r\n\r\n")

    def _head(
        self, status: int, kind: str, headers: Mapping[str, str], whole: bytes | None, sent: bytes | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        # One request a connection: nothing is left open when the test ends.
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        if whole is not None:
            self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        if whole is not None and self.command != "HEAD":
            self.wfile.write(whole if sent is None else sent)


def pieces(text: str) -> list[str]:
    """Cut a text into at most `MAX_PIECES` parts of the same size."""
    size = max(1, -(-len(text) // MAX_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def whole(row: Mapping[str, Any]) -> Body:
    """Return an answer in one JSON object."""
    return Body("application/json", (json.dumps(row).encode(),), streamed=False)


def events(rows: Sequence[Mapping[str, Any]], *, named: bool = False, last: str = "") -> Body:
    """Return an answer as server-sent events.

    Args:
        rows: The events.
        named: Whether each has the name that its `type` has.
        last: What follows them as data.
    """
    names = [f"event: {row['type']}\n" if named else "" for row in rows]
    texts = [f"{name}data: {json.dumps(row)}\n\n" for name, row in zip(names, rows, strict=True)]
    if last:
        texts.append(f"data: {last}\n\n")
    return Body("text/event-stream", [text.encode() for text in texts], streamed=True)


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list; of anything else none."""
    rows = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]


def written(reply: Reply, given: Mapping[str, Any]) -> str:
    """Return the arguments of a tool call as far as the model came."""
    text = json.dumps(given)
    return text[: len(text) * 2 // 3] if reply.fault == "length" else text


def arguments(value: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Return the arguments of a tool call in a protocol without custom tools."""
    if isinstance(value, str):
        raise TypeError("this protocol knows no custom tool; give the arguments as a mapping")
    return value


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[str, object]", value).values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _strings(each)
