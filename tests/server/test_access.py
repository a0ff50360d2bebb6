"""Access to the server over HTTP, asked directly: address, token, pace and body, each refused with its own code."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.server.http.access import AddressGate, BodyGate, TokenGate, is_loopback, served_hosts
from interlock.server.http.bounds import Limits
from interlock.server.http.tokens import TokenStore
from interlock.server.message_validation import inspect
from tests.table import each_row

HOSTS = served_hosts("127.0.0.1", 8765)
CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


class Answer:
    """What came back: status, headers, body."""

    def __init__(self, messages: list[Message]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])
        self.ended = not messages[-1].get("more_body", False)

    @property
    def code(self) -> str:
        """The code of the refusal."""
        error = json.loads(self.body)["error"]
        assert error["data"]["fix"]
        assert error["message"]
        return error["data"]["code"]


def ask(
    app: ASGIApp,
    *,
    method: str = "POST",
    path: str = "/mcp",
    headers: Sequence[tuple[str, str]] = (("host", "127.0.0.1:8765"),),
    chunks: Sequence[bytes] = (CALL,),
) -> Answer:
    """Send one request into an application; a body that ends with an empty chunk never ends."""

    async def run() -> list[Message]:
        sent: list[Message] = []
        left = list(chunks)

        async def receive() -> Message:
            if not left:
                await anyio.sleep_forever()
            chunk = left.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(left)}

        async def send(message: Message) -> None:
            sent.append(message)

        lines = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        await app({"type": "http", "method": method, "path": path, "headers": lines}, receive, send)
        return sent

    return Answer(anyio.run(run))


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200 with what arrived and who is said to have sent it."""
    message = await receive()
    user = scope.get("user")
    name = user.access_token.client_id.encode() if user else b"-"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": name + b" " + message["body"]})


# Address.


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "[::1]:8765"])
def test_the_names_of_this_machine_with_the_port_are_served(host: str) -> None:
    assert ask(AddressGate(echo, HOSTS, frozenset()), headers=[("host", host)]).status == 200


@each_row(
    "hosts",
    [
        [], [""], ["localhost"], ["127.0.0.1"], ["127.0.0.1:80"], ["127.0.0.1:87650"], ["127.0.0.1:8765 "],
        ["127.0.0.1:08765"], ["127.0.0.1:8765:8765"], ["127.1:8765"], ["127.0.0.2:8765"], ["0.0.0.0:8765"],
        ["2130706433:8765"], ["localhost:8765.evil.example"], ["localhost.:8765"], ["localhost.evil.example:8765"],
        ["evil.example:8765"], ["evil.example"], ["localhost:8765@evil.example"], ["evil.example@localhost:8765"],
        ["user:pass@127.0.0.1:8765"], ["http://127.0.0.1:8765"], ["127.0.0.1:8765/mcp"],
        ["127.0.0.1:8765,evil.example"], ["LOCALHOST:8765"], ["Localhost:8765"], ["[::1]"], ["::1:8765"],
        ["[::ffff:127.0.0.1]:8765"], ["127.0.0.1:8765", "127.0.0.1:8765"], ["127.0.0.1:8765", "evil.example"],
        ["evil.example", "127.0.0.1:8765"],
    ],
)  # fmt: skip
@each_row("path", ["/mcp", "/health"])
def test_any_other_host_is_misdirected(hosts: list[str], path: str) -> None:
    answer = ask(AddressGate(echo, HOSTS, frozenset()), path=path, headers=[("host", host) for host in hosts])
    assert (answer.status, answer.code) == (421, "WEB421")


def test_an_address_of_the_network_is_not_also_known_as_localhost() -> None:
    assert served_hosts("192.0.2.7", 8765) == {"192.0.2.7:8765"}
    assert served_hosts("2001:db8::7", 8765, ["interlock.example.org"]) == {
        "[2001:db8::7]:8765",
        "interlock.example.org",
    }
    assert [is_loopback(address) for address in ("127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "192.0.2.7")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


ORIGINS = frozenset({"https://app.example.org"})


@each_row(
    "origins",
    [
        ["null"], [""], ["http://127.0.0.1:8765"], ["http://localhost:8765"], ["https://app.example.org:443"],
        ["https://app.example.org.evil.example"], ["https://app.example.org:8443"], ["http://app.example.org"],
        ["https://APP.example.org"], ["https://app.example.org/"], ["https://evil@app.example.org"],
        ["https://app.example.org", "https://app.example.org"], ["https://app.example.org", "https://evil.example"],
    ],
)  # fmt: skip
def test_any_other_origin_is_forbidden(origins: list[str]) -> None:
    headers = [("host", "127.0.0.1:8765"), *(("origin", origin) for origin in origins)]
    answer = ask(AddressGate(echo, HOSTS, ORIGINS), headers=headers)
    assert (answer.status, answer.code) == (403, "WEB403")


def test_an_allowed_origin_passes_and_is_allowed_to_this_gate_alone() -> None:
    headers = [("host", "127.0.0.1:8765"), ("origin", "https://app.example.org")]
    assert ask(AddressGate(echo, HOSTS, ORIGINS), headers=headers).status == 200
    assert ask(AddressGate(echo, HOSTS, frozenset()), headers=headers).status == 403


def test_health_answers_ok_and_nothing_else() -> None:
    answer = ask(AddressGate(echo, HOSTS, frozenset()), method="GET", path="/health")
    assert (answer.status, answer.body) == (200, b"ok\n")


@each_row("path", ["/", "/mcp/", "/MCP", "/mcp/../mcp", "//mcp", "/health/x", "/.well-known/x"])
def test_nothing_else_is_served(path: str) -> None:
    answer = ask(AddressGate(echo, HOSTS, frozenset()), path=path)
    assert (answer.status, answer.code) == (404, "WEB404")


# Tokens.


class Server:
    """A token gate with a clock of its own that notes how long it held requests back."""

    def __init__(self, root: Path, inner: ASGIApp = echo, **limits: Any) -> None:
        self.store = TokenStore(root)
        _, self.token = self.store.create("claude")
        self.now = 0.0
        self.slept: list[float] = []
        self.lines: list[str] = []
        self.gate = TokenGate(
            inner, self.store, Limits(**limits), clock=lambda: self.now, complain=self.lines.append, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def ask(self, *authorization: str, **more: Any) -> Answer:
        """Ask with these Authorization headers."""
        return ask(self.gate, headers=[("authorization", value) for value in authorization], **more)


def test_the_caller_is_the_agent_of_the_token(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.ask(f"Bearer {server.token}").body == b"claude " + CALL
    assert server.ask(f"bearer {server.token}").status == 200


def wrong_headers(token: str) -> list[list[str]]:
    return [
        [], [""], ["Bearer"], ["Bearer "], [token], [f"Basic {token}"], [f"Bearer  {token}"], [f"Bearer {token} "],
        [f"Bearer {token}x"], [f"Bearer {token},Bearer {token}"], [f"Bearer {token}", f"Bearer {token}"],
        [f"Bearer {token}", "Bearer x"], ["Bearer \xe9\xff"],
    ]  # fmt: skip


@pytest.mark.parametrize("at", range(len(wrong_headers(""))))
def test_without_one_whole_token_the_answer_is_401_with_a_challenge(tmp_path: Path, at: int) -> None:
    server = Server(tmp_path)
    answer = server.ask(*wrong_headers(server.token)[at])
    assert (answer.status, answer.code) == (401, "WEB401")
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert server.token.encode() not in answer.body


def test_a_token_without_its_scheme_is_refused_as_such_and_not_repeated(tmp_path: Path) -> None:
    server = Server(tmp_path)
    token = server.token
    for given, word in ((token, b"without the scheme"), ("Bearer", b"without a token"), (f"Basic {token}", b"kind of")):
        answer = server.ask(given)
        assert (answer.status, word in answer.body, token.encode() in answer.body) == (401, True, False)


def test_a_revoked_token_is_refused_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.ask(f"Bearer {server.token}").status == 200
    TokenStore(tmp_path).revoke("claude")
    answer = server.ask(f"Bearer {server.token}")
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_an_unsafe_token_file_lets_nobody_in_and_the_operator_hears_it_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.store.path.chmod(0o644)
    answers = [server.ask(f"Bearer {server.token}") for _ in range(3)]
    assert ([(answer.status, answer.code) for answer in answers], len(server.lines)) == ([(503, "WEB503")] * 3, 1)
    assert server.token not in server.lines[0]
    assert str(server.store.path).encode() not in answers[0].body
    server.store.path.chmod(0o600)
    assert server.ask(f"Bearer {server.token}").status == 200
    server.store.path.chmod(0o640)
    server.ask(f"Bearer {server.token}")
    assert len(server.lines) == 2


def test_a_flood_is_held_back_then_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    server = Server(tmp_path, rate=2.0, burst=2, patience_seconds=1.0)
    statuses = [server.ask(f"Bearer {server.token}").status for _ in range(5)]
    assert (statuses, server.slept) == ([200, 200, 200, 200, 429], [0.5, 1.0])
    refused = server.ask(f"Bearer {server.token}")
    assert (refused.code, refused.headers["retry-after"]) == ("WEB429", "1")
    server.now += 1.0
    assert server.ask(f"Bearer {server.token}").status == 200


def test_requests_that_are_open_at_once_are_bounded_for_each_token(tmp_path: Path) -> None:
    inside: list[Answer] = []

    async def asks_again(scope: Scope, receive: Receive, send: Send) -> None:
        for token in tokens if scope["path"] == "/mcp" else ():
            sent: list[Message] = []

            async def keep(message: Message, sent: list[Message] = sent) -> None:
                sent.append(message)

            headers = [(b"authorization", f"Bearer {token}".encode())]
            await server.gate({**scope, "path": "/again", "headers": headers}, receive, keep)
            inside.append(Answer(sent))
        await echo(scope, receive, send)

    server = Server(tmp_path, inner=asks_again, in_flight=1)
    tokens = [server.token, server.store.create("claude")[1]]
    assert server.ask(f"Bearer {tokens[0]}", chunks=(CALL, CALL)).status == 200
    assert ([answer.status for answer in inside], inside[0].code) == ([429, 200], "WEB429")


def streaming(then: Callable[[], object]) -> ASGIApp:
    """Return an application that streams a part, lets something happen, and streams on."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"before ", "more_body": True})
        then()
        await send({"type": "http.response.body", "body": b"after", "more_body": True})
        await anyio.sleep_forever()

    return app


def test_an_open_stream_ends_before_its_next_byte_when_its_token_is_revoked(tmp_path: Path) -> None:
    server = Server(tmp_path, inner=streaming(lambda: TokenStore(tmp_path).revoke("claude")))
    answer = server.ask(f"Bearer {server.token}", method="GET")
    assert (answer.body, answer.ended) == (b"before ", True)


def test_open_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    def stop() -> None:
        server.gate.end_streams()

    server = Server(tmp_path, inner=streaming(stop))
    answer = server.ask(f"Bearer {server.token}", method="GET")
    assert answer.ended


# Bodies.


def bodies(**limits: Any) -> BodyGate:
    return BodyGate(echo, Limits(**limits), inspect)


def test_a_body_arrives_whole_however_it_was_cut() -> None:
    assert ask(bodies(), chunks=[CALL[:5], b"", CALL[5:9], CALL[9:]]).body == b"- " + CALL


def padded(size: int) -> bytes:
    return b'{"jsonrpc": "2.0", "method": "ping", "params": {"x": "' + b"a" * (size - 57) + b'"}}'


def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not() -> None:
    assert len(padded(1000)) == 1000
    assert ask(bodies(body_bytes=1000), chunks=[padded(1000)]).status == 200
    refused = ask(bodies(body_bytes=1000), chunks=[padded(1001)])
    assert (refused.status, refused.code) == (413, "WEB413")
    assert b"1000 bytes" in refused.body


@each_row(
    ("limits", "length", "chunks", "status"),
    [
        ({"body_bytes": 1000}, None, [b"a" * 600] * 100, 413),
        *(({"body_bytes": 1000}, length, [], 413) for length in ("1001", "99999999999999999999999999", "0001001")),
        ({"body_seconds": 0.01}, None, [], 408),
    ],
)
def test_a_body_that_grows_or_says_it_is_too_large_or_does_not_arrive_is_given_up(
    limits: dict[str, Any], length: str | None, chunks: list[bytes], status: int
) -> None:
    refused = ask(bodies(**limits), headers=[("content-length", length)] if length else [], chunks=chunks)
    assert (refused.status, refused.code) == (status, f"WEB{status}")


@each_row(
    "body",
    [
        b"", b"not json", b"[]", b"null", b'{"jsonrpc": "2.0", "id": 7, "id": 8, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"a": NaN}}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"jsonrpc": "2.0", "id": 7, "method": "\\ud800"}', b'{"jsonrpc": "2.0", "id": 7, "method": "\xff"}',
    ],
)  # fmt: skip
def test_a_body_that_reads_in_more_than_one_way_goes_no_further(body: bytes) -> None:
    refused = ask(bodies(), chunks=[body])
    assert refused.status == 400
    assert refused.code.startswith("MCP1")


def test_a_caller_that_goes_away_is_not_answered() -> None:
    async def run() -> list[Message]:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await bodies()({"type": "http", "method": "POST", "path": "/mcp", "headers": []}, receive, send)
        return sent

    assert anyio.run(run) == []
