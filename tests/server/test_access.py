"""Access to the server over HTTP, asked directly: who is let in, and under which addresses the server is known."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.server.http.access import TokenGate, is_loopback, served_hosts
from interlock.server.http.tokens import TokenStore
from tests.table import each_row

CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


class Answer:
    """What came back: status, headers, body."""

    def __init__(self, messages: list[Message]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])

    @property
    def code(self) -> str:
        """The code of the refusal."""
        error = json.loads(self.body)["error"]
        assert error["data"]["fix"]
        assert error["message"]
        return error["data"]["code"]


def ask(app: ASGIApp, *, path: str = "/mcp", headers: Sequence[tuple[str, str]] = ()) -> Answer:
    """Send one request into an application."""

    async def run() -> list[Message]:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": CALL, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        lines = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        await app({"type": "http", "method": "POST", "path": path, "headers": lines}, receive, send)
        return sent

    return Answer(anyio.run(run))


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200 with what arrived and who is said to have sent it."""
    message = await receive()
    name = scope["user"].access_token.client_id.encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": name + b" " + message["body"]})


def test_an_address_of_the_network_is_not_also_known_as_localhost() -> None:
    assert served_hosts("192.0.2.7", 8765) == {"192.0.2.7:8765"}
    assert served_hosts("127.0.0.1", 8765) == {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}
    assert served_hosts("2001:db8::7", 8765, ["interlock.example.org"]) == {
        "[2001:db8::7]:8765",
        "interlock.example.org",
    }
    local = [is_loopback(address) for address in ("127.9.9.9", "::1", "0.0.0.0", "::", "192.0.2.7")]
    assert local == [True, True, False, False, False]


class Server:
    """A token gate and a token of its agent."""

    def __init__(self, root: Path) -> None:
        self.store = TokenStore(root)
        _, self.token = self.store.create("claude")
        self.gate = TokenGate(echo, self.store)

    def ask(self, authorization: str) -> Answer:
        """Ask with this Authorization header."""
        return ask(self.gate, headers=[("authorization", authorization)])


def test_the_caller_is_the_agent_of_the_token(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.ask(f"Bearer {server.token}").body == b"claude " + CALL
    assert server.ask(f"bearer {server.token}").status == 200


def test_health_answers_ok_to_everybody(tmp_path: Path) -> None:
    answer = ask(Server(tmp_path).gate, path="/health")
    assert (answer.status, answer.body) == (200, b"ok\n")


@each_row("given", ["", "Bearer", "Bearer ", "TOKEN", "Basic TOKEN", "Bearer TOKENx", "Bearer \xe9\xff"])
def test_without_one_whole_token_the_answer_is_401_with_a_challenge(tmp_path: Path, given: str) -> None:
    server = Server(tmp_path)
    answer = server.ask(given.replace("TOKEN", server.token))
    assert (answer.status, answer.code) == (401, "WEB401")
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert server.token.encode() not in answer.body


def test_a_revoked_token_is_refused_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.ask(f"Bearer {server.token}").status == 200
    TokenStore(tmp_path).revoke("claude")
    assert server.ask(f"Bearer {server.token}").status == 401


def test_an_unsafe_token_file_lets_nobody_in_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(tmp_path)
    server.store.path.chmod(0o644)
    answer = server.ask(f"Bearer {server.token}")
    assert (answer.status, answer.code) == (503, "WEB503")
    assert str(server.store.path).encode() not in answer.body
    assert (len(caplog.records), caplog.records[0].levelno) == (1, logging.ERROR)
    assert server.token not in caplog.text
    server.store.path.chmod(0o600)
    assert server.ask(f"Bearer {server.token}").status == 200
