"""What a connection or a token may hold over HTTP, against a real server process."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager

import httpx2
import pytest

from tests.server.http_process import Served, bearer, new_project, new_token, post, running

STANDIN = ("-m", "tests.server.http_standin")
LIMITS = {"head_seconds": 0.3, "sessions_of_token": 3}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = new_project(tmp_path_factory.mktemp("bounds") / "project")
    new_token(root)
    with running(root, "--limits", json.dumps(LIMITS), program=STANDIN) as server:
        yield server


@contextmanager
def connection(served: Served) -> Generator[socket.socket]:
    """Open a connection to the server."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as opened:
        yield opened


def rest(opened: socket.socket) -> bytes:
    """Return what comes until the server closes; it is the server that must, since this side keeps its end open."""
    found = b""
    while part := opened.recv(65536):
        found += part
    return found


def request(path: str = "/health", more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n{more}\r\n".encode()


def for_port(served: Served, text: bytes) -> bytes:
    return text.replace(b"PORT", str(served.port).encode())


@pytest.mark.long
@pytest.mark.parametrize("sent", [b"", b"G", request()[:-2]], ids=["nothing", "a byte", "all but the last line"])
def test_a_connection_whose_head_does_not_arrive_is_closed(served: Served, sent: bytes) -> None:
    with connection(served) as opened:
        opened.sendall(for_port(served, sent))
        assert rest(opened) == b""


LARGE = {
    "a header": f"X: {'x' * 70_000}\r\n",
    "many headers": "X: 1\r\n" * 10_000,
    "blanks around a value": f"X:{' ' * 70_000}x\r\n",
    "just too much": f"X: {'x' * 32_768}\r\n",
}


@pytest.mark.parametrize("more", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("first", [b"", request()], ids=["first", "behind another"])
def test_a_head_that_comes_at_once_is_bounded_like_one_in_pieces(served: Served, more: str, first: bytes) -> None:
    with connection(served) as opened:
        opened.sendall(for_port(served, first + request(more=more)))
        answer = rest(opened)
    assert answer.count(b"HTTP/1.1 200") == (1 if first else 0)
    assert answer.count(b"HTTP/1.1 400") == 1


def test_a_long_address_is_bounded_and_a_head_below_the_bound_is_served(served: Served) -> None:
    with connection(served) as opened:
        opened.sendall(for_port(served, request(f"/health?{'x' * 70_000}")))
        assert rest(opened).startswith(b"HTTP/1.1 400")
    with connection(served) as opened:
        opened.sendall(for_port(served, request(more=f"X: {'x' * 32_000}\r\nConnection: close\r\n")))
        assert rest(opened).startswith(b"HTTP/1.1 200")


def test_a_second_head_that_does_not_arrive_is_closed_too(served: Served) -> None:
    with connection(served) as opened:
        opened.sendall(for_port(served, request()))
        answer = b""
        while not answer.endswith(b"ok\n"):
            answer += opened.recv(65536)
        opened.sendall(b"GET /health HT")
        assert rest(opened) == b""


def test_a_body_that_nobody_wants_any_more_does_not_hold_its_connection(served: Served) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Length: 1000000\r\n\r\n"
    with connection(served) as opened:
        opened.sendall(head.encode())
        answer = opened.recv(65536)
        assert answer.startswith(b"HTTP/1.1 401")
        opened.sendall(b"x")
        assert b"HTTP/1.1" not in rest(opened)


def test_a_stream_may_be_open_for_longer_than_its_head_may_take(served: Served) -> None:
    token = new_token(served.root)
    session = post(served, token).headers["mcp-session-id"]
    names = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", "Mcp-Session-Id": session}
    lines = "".join(f"{name}: {value}\r\n" for name, value in names.items())
    with connection(served) as stream, connection(served) as silent:
        stream.sendall(for_port(served, request("/mcp", lines)))
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += stream.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        with connection(served) as later:
            assert rest(later) == b"", "a head that began after that of the stream had no more time"
        stream.setblocking(False)
        with pytest.raises(BlockingIOError):
            stream.recv(65536)
        assert rest(silent) == b""


def test_one_token_cannot_take_the_sessions_of_all(served: Served) -> None:
    token, other = new_token(served.root), new_token(served.root)
    opened = [post(served, token) for _ in range(4)]
    assert [answer.status_code for answer in opened] == [200, 200, 200, 429]
    refusal = opened[-1]
    assert refusal.json()["error"]["data"]["code"] == "WEB429"
    assert int(refusal.headers["retry-after"]) >= 1
    assert post(served, other).status_code == 200
    with httpx2.Client() as http:
        ended = http.delete(
            served.url, headers={**bearer(token), "mcp-session-id": opened[0].headers["mcp-session-id"]}
        )
    assert ended.status_code == 200
    assert post(served, token).status_code == 200
